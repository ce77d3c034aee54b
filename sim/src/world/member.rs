//! A member of the group as its polling thread keeps it: positions, generations, what waits.
//!
//! The rules of `kafka`'s consumer, without its client: a jump of offsets is told before the record;
//! only one that goes back begins a generation; commits of a generation that has ended are dropped.

use std::{
    collections::{BTreeMap, VecDeque},
    rc::Rc,
};

use fanout::core::state::{Input, Revocation};

use super::{
    World,
    log::{self, Rec},
    truth::Place,
};
use crate::bugs::Bug;

/// Records between the thread and the service.
const CHANNEL: usize = 6;

/// What waits for the service.
#[derive(Debug)]
pub(crate) enum Fetched {
    /// A record.
    Record {
        input: Input,
        rec: Rc<Rec>,
        place: Place,
    },
    /// Offsets jumped.
    Jump(Input),
}

/// Partitions that are being taken away.
#[derive(Debug)]
pub(crate) struct Revoking {
    pub(crate) partitions: Vec<i32>,
    pub(crate) since: u64,
    revocation: Revocation,
    /// What the service said: the offsets to commit.
    pub(crate) answer: Option<BTreeMap<i32, i64>>,
}

#[derive(Clone, Copy, Debug)]
struct Position {
    generation: u64,
    /// The topic that it was read from last, as the world knows it: a client does not.
    topic: u32,
    /// The offset that should come.
    expected: Option<i64>,
    /// Where the client fetches.
    fetch: i64,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) name: u64,
    /// The coordinator has given it up, and it does not know yet; or its thread stands still.
    pub(crate) is_frozen: bool,
    pub(crate) control: VecDeque<Input>,
    pub(crate) fetched: VecDeque<Fetched>,
    pub(crate) revoking: Option<Revoking>,
    positions: BTreeMap<i32, Position>,
    pending: BTreeMap<i32, (u64, i64)>,
    generation: u64,
    revocations: u64,
}

impl Member {
    pub(crate) const fn new(name: u64) -> Self {
        Self {
            name,
            is_frozen: false,
            control: VecDeque::new(),
            fetched: VecDeque::new(),
            revoking: None,
            positions: BTreeMap::new(),
            pending: BTreeMap::new(),
            generation: 0,
            revocations: 0,
        }
    }

    /// Whether its thread does anything but wait for an answer.
    pub(crate) const fn is_polling(&self) -> bool {
        !self.is_frozen && self.revoking.is_none()
    }

    /// Whether it has any partition.
    pub(crate) fn has_partitions(&self) -> bool {
        !self.positions.is_empty()
    }

    pub(super) fn assign(&mut self, partition: i32, topic: u32, expected: Option<i64>, fetch: i64) {
        self.generation += 1;
        let generation = self.generation;
        let position = Position {
            generation,
            topic,
            expected,
            fetch,
        };
        self.positions.insert(partition, position);
        self.control.push_back(Input::Assigned {
            partitions: vec![partition],
            generation,
        });
    }

    /// Asks the service for these partitions.
    pub(crate) fn revoke(&mut self, partitions: Vec<i32>, now: u64) {
        self.revocations += 1;
        let revocation = Revocation(self.revocations);
        self.control.push_back(Input::Revoked {
            partitions: partitions.clone(),
            lost: false,
            revocation,
        });
        self.revoking = Some(Revoking {
            partitions,
            since: now,
            revocation,
            answer: None,
        });
    }

    /// Everything it had belongs to somebody else already.
    pub(crate) fn lose_all(&mut self) {
        let partitions: Vec<i32> = self.positions.keys().copied().collect();
        self.positions.clear();
        self.revoking = None;
        self.revocations += 1;
        self.control.push_back(Input::Revoked {
            partitions,
            lost: true,
            revocation: Revocation(self.revocations),
        });
    }

    /// All that it has, for a good-bye.
    pub(crate) fn revoke_all(&mut self, now: u64) {
        let partitions: Vec<i32> = self.positions.keys().copied().collect();
        self.revoke(partitions, now);
    }

    /// The service's answer to a revocation. One that comes late means nothing.
    pub(crate) fn answer(&mut self, revocation: Revocation, offsets: BTreeMap<i32, i64>) {
        if let Some(revoking) = self
            .revoking
            .as_mut()
            .filter(|each| each.revocation == revocation)
        {
            revoking.answer = Some(offsets);
        }
    }

    /// The topic that a partition was read from last.
    pub(super) fn topic_of(&self, partition: i32) -> Option<u32> {
        self.positions
            .get(&partition)
            .map(|position| position.topic)
    }

    /// Whether this is the generation of a partition.
    pub(crate) fn is_current(&self, partition: i32, generation: u64) -> bool {
        let position = self.positions.get(&partition);
        position.is_some_and(|position| position.generation == generation)
    }

    pub(super) fn forget(&mut self, partition: i32) {
        self.positions.remove(&partition);
    }

    /// Lets the thread commit soon.
    pub(crate) fn commit(&mut self, partition: i32, generation: u64, offset: i64) {
        self.pending.insert(partition, (generation, offset));
    }

    /// The thread sends what may be committed still.
    pub(crate) fn send_commits(&mut self, world: &mut World) -> bool {
        if self.pending.is_empty() || !self.is_polling() {
            return false;
        }
        for (partition, (generation, offset)) in std::mem::take(&mut self.pending) {
            let position = self.positions.get(&partition);
            if let Some(position) = position.filter(|position| position.generation == generation) {
                log::commit(world, self.name, partition, position.topic, offset);
            }
        }
        true
    }

    /// The thread fetches the next record of some partition. Whether there was one.
    pub(crate) fn fetch(&mut self, world: &mut World) -> bool {
        if !self.is_polling() || !world.log.is_up || self.fetched.len() >= CHANNEL {
            return false;
        }
        let first = world.below(self.positions.len());
        let assigned: Vec<i32> = self.positions.keys().copied().collect();
        let (before, after) = assigned.split_at(first.min(assigned.len()));
        after
            .iter()
            .chain(before)
            .any(|partition| self.fetch_from(world, *partition))
    }

    fn fetch_from(&mut self, world: &mut World, partition: i32) -> bool {
        let Some(position) = self.positions.get_mut(&partition) else {
            return false;
        };
        let goes_to_the_end = world.has_bug(Bug::LatestOnReset);
        let part = &mut world.log.posts[usize::try_from(partition).unwrap_or_default()];
        if position.fetch > part.end() || position.fetch < part.low {
            // Out of range: back to the earliest, never to the latest.
            position.fetch = part.low;
            part.judged = part.low;
            if goes_to_the_end {
                position.fetch = part.end();
                position.expected = None;
            }
        }
        let offset = position.fetch;
        let Some(rec) = part.get(offset).map(Rc::clone) else {
            return false;
        };
        position.fetch = offset + 1;
        if position.topic != part.topic && !goes_to_the_end {
            // The offsets of the topic before fit this one, so nobody can notice: what lies below
            // is the sweep's.
            part.judged = part.judged.max(offset);
        }
        position.topic = part.topic;
        let expected = position.expected.replace(offset + 1);
        if let Some(expected) = expected.filter(|expected| *expected != offset) {
            if expected > offset {
                self.generation += 1;
                position.generation = self.generation;
            }
            self.fetched.push_back(Fetched::Jump(Input::OffsetLost {
                partition,
                generation: position.generation,
            }));
        }
        let input = Input::Record {
            partition,
            generation: position.generation,
            offset,
        };
        let place = (partition, part.topic, offset);
        self.fetched
            .push_back(Fetched::Record { input, rec, place });
        true
    }
}
