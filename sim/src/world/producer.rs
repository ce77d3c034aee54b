//! A producer: requests in flight to each partition in order, reports in any order.
//!
//! Idempotent, so a repeat of a request that was written changes nothing; what is left of it here
//! is that a report may come late, never, or tell of a failure although the record was written.
//! Records do not time out (`message.timeout.ms` is 0), so a failure that is not the record's own
//! is one of the client: nothing is written behind it.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use events::{
    Class,
    route::{Letter, Record},
    topic::TopicKind,
};

use super::{
    World,
    log::{self, Log, Rec},
    row::Flaw,
};
use crate::{bugs::Bug, invariants};

/// Where a record goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Lane {
    /// A partition of the posts topic.
    Posts(usize),
    /// The follows topic.
    Follows,
    /// A dead-letter topic: of the step that publishes.
    Letters,
    /// The sweep's probes.
    Probe,
}

/// A record on its way.
#[derive(Debug)]
pub(crate) struct Sending {
    pub(crate) tag: u64,
    pub(crate) lane: Lane,
    pub(crate) rec: Rec,
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Producer {
    queues: BTreeMap<Lane, VecDeque<Sending>>,
    reports: Vec<(u64, Result<(), Class>)>,
    /// The client has failed for good.
    is_broken: bool,
}

impl Producer {
    /// Hands a record over. `claim`: the sweep's claim that sends it.
    pub(crate) fn send(&mut self, tag: u64, record: Record, claim: Option<u64>) {
        let lane = match record.summary.kind {
            TopicKind::Posts => Lane::Posts(Log::partition_of(&record.key)),
            TopicKind::Follows => Lane::Follows,
        };
        let rec = Rec::of(record.key, record.payload, &record.headers, claim);
        self.push(Sending { tag, lane, rec });
    }

    /// Hands a dead letter over, of the row of this name: its headers may not carry it.
    pub(crate) fn send_letter(&mut self, tag: u64, letter: Letter, uid: u64, claim: Option<u64>) {
        let payload = letter.payload.unwrap_or_default();
        let mut rec = Rec::of(
            letter.key.unwrap_or_default(),
            payload,
            &letter.headers,
            claim,
        );
        rec.uid = uid;
        self.push(Sending {
            tag,
            lane: Lane::Letters,
            rec,
        });
    }

    /// Hands a probe over.
    pub(crate) fn probe(&mut self, tag: u64) {
        let rec = Rec::of(Bytes::new(), Bytes::new(), &Vec::new(), Some(0));
        self.push(Sending {
            tag,
            lane: Lane::Probe,
            rec,
        });
    }

    fn push(&mut self, sending: Sending) {
        self.queues
            .entry(sending.lane)
            .or_default()
            .push_back(sending);
    }

    /// Whether anything is on its way or unreported.
    pub(crate) fn is_idle(&self) -> bool {
        self.reports.is_empty() && self.queues.values().all(VecDeque::is_empty)
    }

    /// Some report, if there is one.
    pub(crate) fn report(&mut self, world: &mut World) -> Option<(u64, Result<(), Class>)> {
        let index = world.below(self.reports.len());
        (!self.reports.is_empty()).then(|| self.reports.swap_remove(index))
    }

    /// The broker takes the next record of some partition, or does not. Whether there was one.
    pub(crate) fn advance(&mut self, world: &mut World) -> bool {
        let busy: Vec<Lane> = self
            .queues
            .iter()
            .filter(|(_, queue)| !queue.is_empty())
            .map(|(lane, _)| *lane)
            .collect();
        if busy.is_empty() {
            return false;
        }
        let lane = busy[world.below(busy.len())];
        if self.is_broken || world.fails(4) {
            self.break_down(world);
            return self.fail_next(lane, Class::Outage);
        }
        if !world.log.is_up {
            return false;
        }
        let Some(sending) = self.queues.get_mut(&lane).and_then(VecDeque::pop_front) else {
            return false;
        };
        let is_refused = matches!(lane, Lane::Posts(_) | Lane::Follows)
            && flaw(world, sending.rec.uid) == Some(Flaw::Refused);
        let tag = sending.tag;
        let result = if is_refused {
            Err(Class::Record)
        } else {
            take(world, sending);
            // Written, and the client never learns it.
            if world.fails(4) {
                self.break_down(world);
                Err(Class::Unsure)
            } else {
                Ok(())
            }
        };
        self.reports.push((tag, result));
        true
    }

    /// A client whose records time out one by one would go on: see [`Bug::RetryBehindOthers`].
    fn break_down(&mut self, world: &World) {
        self.is_broken = !world.has_bug(Bug::RetryBehindOthers);
    }

    fn fail_next(&mut self, lane: Lane, class: Class) -> bool {
        let Some(sending) = self.queues.get_mut(&lane).and_then(VecDeque::pop_front) else {
            return false;
        };
        self.reports.push((sending.tag, Err(class)));
        true
    }

    /// The client is thrown away, or dies: what was on the wire may be written, in order, and
    /// nothing is reported any more.
    pub(crate) fn abandon(&mut self, world: &mut World) {
        let queues = std::mem::take(&mut self.queues);
        self.reports.clear();
        let was_broken = std::mem::take(&mut self.is_broken);
        for queue in queues.into_values() {
            let count = world.below(queue.len() + 1);
            let count = if world.log.is_up && !was_broken {
                count
            } else {
                0
            };
            for sending in queue.into_iter().take(count) {
                if flaw(world, sending.rec.uid) != Some(Flaw::Refused)
                    || sending.lane == Lane::Letters
                {
                    take(world, sending);
                }
            }
        }
    }
}

fn flaw(world: &World, uid: u64) -> Option<Flaw> {
    world.truth.rows.get(&uid).and_then(|row| row.flaw)
}

/// The broker has it.
fn take(world: &mut World, sending: Sending) {
    let rec = sending.rec;
    match sending.lane {
        Lane::Probe => {}
        Lane::Letters => {
            world.truth.in_letters.insert(rec.uid);
            invariants::at_letter(world, rec.uid);
        }
        Lane::Posts(_) | Lane::Follows => {
            world.truth.in_topic.insert(rec.uid);
            if rec.is_relayed {
                invariants::at_relayed(world, rec.uid, &rec.key);
            }
            if matches!(sending.lane, Lane::Posts(_)) {
                log::append(world, rec);
            }
        }
    }
}
