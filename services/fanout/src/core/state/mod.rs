//! Partitions and their offsets: what is in work, what may be committed, when to take more.
//!
//! ```text
//!              Assigned                Record
//!   (unknown) ─────────▶ idle ◀──────────────────▶ running
//!                          │      all finished        │
//!                          │ Revoked                  │ Revoked
//!                          ▼                          ▼
//!                       revoked ◀───────────────── draining
//!                              finished or deadline
//! ```
//!
//! Owns: the ack-tracker of each partition, the generation of each assignment, and the two
//! reasons to take no records: enough is in work, or a dependency is down.
//!
//! Promise: an offset is given out for commit only when every record of that partition below it
//! is finished (D-6); what was assigned in another generation counts for nothing.

use std::{collections::BTreeMap, num::NonZeroUsize};

use ack_tracker::Ticket;

mod partition;

use partition::Partition;

/// Limits of what is in work (D-13).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// At this many unfinished records, no more are taken.
    pub high: usize,
    /// At this many, they are taken again.
    pub low: usize,
    /// Records of one partition behind its oldest unfinished one, finished ones included.
    pub window: NonZeroUsize,
    /// How long the records of a revoked partition may take to finish, microseconds.
    pub drain_us: u64,
}

/// Names one record in work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Job {
    /// Its partition.
    pub partition: i32,
    /// Its place in the tracker of that generation.
    pub ticket: Ticket,
    /// The generation of the assignment.
    pub generation: u64,
}

/// Names one revocation that waits for its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Revocation(pub u64);

/// What happens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// Partitions were assigned.
    Assigned {
        /// Which.
        partitions: Vec<i32>,
        /// The number of the assignment.
        generation: u64,
    },
    /// Partitions are taken away; the answer is waited for.
    Revoked {
        /// Which.
        partitions: Vec<i32>,
        /// They belong to somebody else already.
        lost: bool,
        /// Comes back in [`Action::Answer`].
        revocation: Revocation,
    },
    /// A record came.
    Record {
        /// Its partition.
        partition: i32,
        /// The generation it was read in.
        generation: u64,
        /// Its offset.
        offset: i64,
    },
    /// Offsets do not go on where they should.
    OffsetLost {
        /// The partition.
        partition: i32,
        /// The generation from here on.
        generation: u64,
    },
    /// A record is finished: rows written, or dead letter stored.
    Finished(Job),
    /// So many pieces of work wait for a dependency that is down.
    Outages(usize),
    /// Time passes.
    Tick,
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Work on the record that came with this input.
    Start(Job),
    /// Ignore the record that came with this input: it is another owner's.
    Ignore,
    /// Commit the offset of the next record to read.
    Commit {
        /// The partition.
        partition: i32,
        /// The generation it is valid for.
        generation: u64,
        /// The offset.
        offset: i64,
    },
    /// Answer a revocation with what is finished.
    Answer {
        /// Which.
        revocation: Revocation,
        /// By partition: the generation it was worked on in, and the offset of the next record
        /// to read.
        offsets: BTreeMap<i32, (u64, i64)>,
    },
    /// Give up what is still in work for this partition; its next owner does it again.
    Abandon {
        /// The partition.
        partition: i32,
        /// Work of this generation and of earlier ones.
        generation: u64,
    },
    /// Take no records.
    Pause,
    /// Take records again.
    Resume,
    /// The program is wrong.
    Fault(&'static str),
}

/// The state of the lane.
#[derive(Debug)]
pub struct State {
    limits: Limits,
    partitions: BTreeMap<i32, Partition>,
    draining: BTreeMap<Revocation, Draining>,
    outages: usize,
    paused: bool,
    lost: bool,
}

#[derive(Debug)]
struct Draining {
    partitions: BTreeMap<i32, Partition>,
    deadline_us: u64,
}

/// What the lane looks like, for metrics and health.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Partitions held.
    pub assigned: usize,
    /// Unfinished records, those of revoked partitions included.
    pub in_work: usize,
    /// How long the oldest unfinished record has been in work, microseconds.
    pub oldest_us: u64,
    /// No records are taken.
    pub paused: bool,
    /// Revocations wait for their answer.
    pub draining: bool,
    /// The group took everything away without asking, and has not been heard of since.
    pub lost: bool,
}

impl State {
    /// A lane without partitions.
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            partitions: BTreeMap::new(),
            draining: BTreeMap::new(),
            outages: 0,
            paused: false,
            lost: false,
        }
    }

    /// Takes in what happened at `now_us` (a clock that never goes back) and says what to do.
    pub fn step(&mut self, input: Input, now_us: u64) -> Vec<Action> {
        let mut actions = Vec::new();
        match input {
            Input::Assigned {
                partitions,
                generation,
            } => {
                // A member that gets nothing is told so too, by an empty assignment.
                self.lost = false;
                for id in partitions {
                    let fresh = Partition::new(generation, self.limits.window);
                    let _before = self.partitions.insert(id, fresh);
                }
            }
            Input::Revoked {
                partitions,
                lost,
                revocation,
            } => {
                self.revoke(&partitions, lost, revocation, now_us, &mut actions);
            }
            Input::Record {
                partition,
                generation,
                offset,
            } => {
                actions.push(self.record(partition, generation, offset, now_us));
            }
            Input::OffsetLost {
                partition,
                generation,
            } => {
                if let Some(known) = self.partitions.get_mut(&partition) {
                    known.restart(generation, self.limits.window);
                }
            }
            Input::Finished(job) => self.finished(job, &mut actions),
            Input::Outages(waiting) => self.outages = waiting,
            Input::Tick => self.tick(now_us, &mut actions),
        }
        self.take_or_not(&mut actions);
        actions
    }

    /// Whether records are to be taken.
    pub fn takes_records(&self) -> bool {
        !self.paused
    }

    /// What the lane looks like at `now_us`.
    pub fn summary(&self, now_us: u64) -> Summary {
        Summary {
            assigned: self.partitions.len(),
            in_work: self.in_work(),
            oldest_us: self
                .every_partition()
                .filter_map(|p| p.oldest_us(now_us))
                .max()
                .unwrap_or(0),
            paused: self.paused,
            draining: !self.draining.is_empty(),
            lost: self.lost,
        }
    }

    fn record(&mut self, id: i32, generation: u64, offset: i64, now_us: u64) -> Action {
        let Some(partition) = self
            .partitions
            .get_mut(&id)
            .filter(|p| p.generation() == generation)
        else {
            return Action::Ignore;
        };
        match partition.push(offset, now_us) {
            Ok(ticket) => Action::Start(Job {
                partition: id,
                ticket,
                generation,
            }),
            Err(_) => Action::Fault("a record came out of order, or while none were taken"),
        }
    }

    fn finished(&mut self, job: Job, actions: &mut Vec<Action>) {
        if let Some(partition) = self.partitions.get_mut(&job.partition) {
            partition.complete(job.generation, job.ticket);
        }
        for draining in self.draining.values_mut() {
            if let Some(partition) = draining.partitions.get_mut(&job.partition) {
                partition.complete(job.generation, job.ticket);
            }
        }
        self.answer(
            |draining| draining.partitions.values().all(|p| p.open_count() == 0),
            actions,
        );
    }

    fn revoke(
        &mut self,
        partitions: &[i32],
        lost: bool,
        revocation: Revocation,
        now_us: u64,
        actions: &mut Vec<Action>,
    ) {
        self.lost = lost;
        let taken: BTreeMap<_, _> = partitions
            .iter()
            .filter_map(|id| self.partitions.remove_entry(id))
            .collect();
        if lost {
            // A commit would be refused, so nothing is waited for.
            for (&partition, gone) in &taken {
                actions.push(Action::Abandon {
                    partition,
                    generation: gone.generation(),
                });
            }
            actions.push(Action::Answer {
                revocation,
                offsets: BTreeMap::new(),
            });
            return;
        }
        let deadline_us = now_us.saturating_add(self.limits.drain_us);
        let _none_before = self.draining.insert(
            revocation,
            Draining {
                partitions: taken,
                deadline_us,
            },
        );
        self.answer(
            |draining| draining.partitions.values().all(|p| p.open_count() == 0),
            actions,
        );
    }

    fn tick(&mut self, now_us: u64, actions: &mut Vec<Action>) {
        self.answer(|draining| now_us >= draining.deadline_us, actions);
        for (&id, partition) in &mut self.partitions {
            if let Some(offset) = partition.take_commit() {
                actions.push(Action::Commit {
                    partition: id,
                    generation: partition.generation(),
                    offset,
                });
            }
        }
    }

    /// Answers the revocations that are ready. What is unfinished then is given up.
    fn answer(&mut self, is_ready: impl Fn(&Draining) -> bool, actions: &mut Vec<Action>) {
        for (revocation, draining) in self
            .draining
            .extract_if(.., |_, draining| is_ready(draining))
        {
            let mut offsets = BTreeMap::new();
            for (id, mut partition) in draining.partitions {
                if partition.open_count() > 0 {
                    actions.push(Action::Abandon {
                        partition: id,
                        generation: partition.generation(),
                    });
                }
                if let Some(offset) = partition.take_commit() {
                    let _none_before = offsets.insert(id, (partition.generation(), offset));
                }
            }
            actions.push(Action::Answer {
                revocation,
                offsets,
            });
        }
    }

    /// Pause and resume, with distance between the two.
    fn take_or_not(&mut self, actions: &mut Vec<Action>) {
        let in_work = self.in_work();
        let fullest = self
            .partitions
            .values()
            .map(Partition::held)
            .max()
            .unwrap_or(0);
        let window = self.limits.window.get();
        let enough = in_work >= self.limits.high || fullest >= window;
        let room = in_work <= self.limits.low && fullest <= window / 2;
        if !self.paused && (enough || self.outages > 0) {
            self.paused = true;
            actions.push(Action::Pause);
        } else if self.paused && room && self.outages == 0 {
            self.paused = false;
            actions.push(Action::Resume);
        }
    }

    fn in_work(&self) -> usize {
        self.every_partition().map(Partition::open_count).sum()
    }

    fn every_partition(&self) -> impl Iterator<Item = &Partition> {
        self.partitions.values().chain(
            self.draining
                .values()
                .flat_map(|draining| draining.partitions.values()),
        )
    }
}

#[cfg(test)]
mod tests;
