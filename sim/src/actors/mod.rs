//! The processes: the real cores, and around each the hands that its event loop has. A process
//! that dies loses everything but its place.

pub(crate) mod fanout;
pub(crate) mod relay;
pub(crate) mod sweep;
pub(crate) mod writer;

use std::collections::VecDeque;

use events::{EventId, Stage};

use crate::{
    invariants,
    world::{MS, SECOND, World, postgres::index},
};

/// The name of the database, in the sources of records.
pub(crate) const DATABASE: &str = "db";
/// The namespace of topics.
pub(crate) const NAMESPACE: &str = "t";
/// How long after an event was noted its entry is in the ledger, or has failed: below the grace of
/// the sweep.
const ENTERED_WITHIN: u64 = 3 * SECOND;
/// How often an entry is tried.
const ATTEMPTS: u32 = 3;

#[derive(Clone, Copy, Debug)]
struct Entry {
    event: EventId,
    uid: u64,
    epoch: i64,
    due: u64,
    attempts: u32,
}

/// A process's writer of ledger entries: off every path, bounded, and it may fail.
#[derive(Debug)]
pub(crate) struct LedgerWriter {
    stage: Stage,
    waiting: VecDeque<Entry>,
    /// The newest epoch, once entries were refused because of it.
    pub(crate) newer_epoch: Option<i64>,
}

impl LedgerWriter {
    pub(crate) const fn new(stage: Stage) -> Self {
        Self {
            stage,
            waiting: VecDeque::new(),
            newer_epoch: None,
        }
    }

    /// Notes an event that is to be entered.
    pub(crate) fn note(&mut self, world: &World, event: EventId, uid: u64, epoch: i64) {
        self.waiting.push_back(Entry {
            event,
            uid,
            epoch,
            due: world.now + ENTERED_WITHIN,
            attempts: 0,
        });
    }

    /// Whether everything was entered or dropped.
    pub(crate) fn is_idle(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Writes what is at the front. Whether there was anything.
    pub(crate) fn flush(&mut self, world: &mut World) -> bool {
        let Some(mut entry) = self.waiting.pop_front() else {
            return false;
        };
        if !world.pg.is_up || world.fails(30) {
            entry.attempts += 1;
            if entry.attempts < ATTEMPTS {
                self.waiting.push_front(entry);
            } else {
                self.drop_entry(world, &entry);
            }
            return true;
        }
        self.enter(world, &entry);
        true
    }

    /// Before time passes: what would come too late for the grace is given up.
    pub(crate) fn hurry(&mut self, world: &mut World, until: u64) {
        while let Some(entry) = self
            .waiting
            .front()
            .copied()
            .filter(|entry| entry.due < until)
        {
            self.waiting.pop_front();
            if world.pg.is_up && !world.fails(30) {
                self.enter(world, &entry);
            } else {
                self.drop_entry(world, &entry);
            }
        }
    }

    /// The process dies.
    pub(crate) fn lose(&mut self, world: &mut World) {
        while let Some(entry) = self.waiting.pop_front() {
            self.drop_entry(world, &entry);
        }
    }

    fn enter(&mut self, world: &mut World, entry: &Entry) {
        let now = world.clock();
        let (stage, event, uid) = (self.stage, entry.event, entry.uid);
        match world.pg.enter(stage, [event], entry.epoch, now) {
            Ok(()) => {
                world.tell("ledger", || format!("event {event} is {}", stage.as_str()));
                invariants::at_entry(world, stage, uid);
            }
            Err(newest) => {
                self.newer_epoch = Some(newest);
                world.tell("ledger", || {
                    format!("event {event} refused: of another epoch")
                });
                world.truth.unentered[index(stage)].insert(uid);
            }
        }
    }

    fn drop_entry(&self, world: &mut World, entry: &Entry) {
        let (stage, event) = (self.stage, entry.event);
        world.tell("ledger", || {
            format!("entry of event {event} as {} lost", stage.as_str())
        });
        world.truth.unentered[index(stage)].insert(entry.uid);
    }
}

/// A process's own clocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clocks {
    /// When it was started: its monotonic clock counts from a moment of chance.
    origin: u64,
    /// How far its wall clock is off, microseconds.
    pub(crate) wall: i64,
}

impl Clocks {
    pub(crate) fn start(world: &mut World) -> Self {
        Self {
            origin: world.now.saturating_sub(world.rng.u64(0..MS)),
            wall: 0,
        }
    }

    /// Its monotonic clock, microseconds.
    pub(crate) const fn monotonic(&self, world: &World) -> u64 {
        world.now.saturating_sub(self.origin)
    }
}

/// Tries what a process may do, from one of chance on, until something was done.
pub(crate) fn any_of<P>(
    process: &mut P,
    world: &mut World,
    things: &[fn(&mut P, &mut World) -> bool],
) -> bool {
    let first = world.below(things.len());
    let (before, after) = things.split_at(first);
    after
        .iter()
        .chain(before)
        .any(|thing| thing(process, world))
}
