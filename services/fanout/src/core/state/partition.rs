//! One assigned partition: its tracker, and those of the logs it had before.

use std::num::NonZeroUsize;

use ack_tracker::{PushError, Ticket, Tracker};

/// One assigned partition.
#[derive(Debug)]
pub(super) struct Partition {
    tracker: Tracker<i64>,
    /// Trackers of generations before the offsets went back, as long as they have unfinished
    /// records. Nothing is committed until they are empty: should the log be the same one after
    /// all, a commit would pass those records (D-6).
    earlier: Vec<Tracker<i64>>,
    /// The last offset given out.
    committed: Option<i64>,
}

impl Partition {
    pub(super) fn new(generation: u64, window: NonZeroUsize) -> Self {
        Self {
            tracker: Tracker::with_generation(window, generation),
            earlier: Vec::new(),
            committed: None,
        }
    }

    pub(super) fn generation(&self) -> u64 {
        self.tracker.generation()
    }

    /// Goes on in a new generation, whose offsets may be lower. Does nothing in the same one.
    pub(super) fn restart(&mut self, generation: u64, window: NonZeroUsize) {
        if generation == self.generation() {
            return;
        }
        let before = std::mem::replace(
            &mut self.tracker,
            Tracker::with_generation(window, generation),
        );
        if before.open_count() > 0 {
            self.earlier.push(before);
        }
        self.committed = None;
    }

    pub(super) fn push(&mut self, offset: i64, now_us: u64) -> Result<Ticket, PushError<i64>> {
        self.tracker.push(offset, now_us)
    }

    /// Marks a record as finished. A ticket of another time is stale and does nothing.
    pub(super) fn complete(&mut self, generation: u64, ticket: Ticket) {
        let trackers = self.earlier.iter_mut().chain([&mut self.tracker]);
        for tracker in trackers.filter(|tracker| tracker.generation() == generation) {
            let _stale_or_repeated = tracker.complete(ticket);
        }
        self.earlier.retain(|tracker| tracker.open_count() > 0);
    }

    /// The offset to commit, if it is a new one: of the record behind the last finished one.
    pub(super) fn take_commit(&mut self) -> Option<i64> {
        if !self.earlier.is_empty() {
            return None;
        }
        let offset = self.tracker.done()? + 1;
        if self.committed == Some(offset) {
            return None;
        }
        self.committed = Some(offset);
        Some(offset)
    }

    pub(super) fn open_count(&self) -> usize {
        self.tracker.open_count() + self.earlier.iter().map(Tracker::open_count).sum::<usize>()
    }

    pub(super) fn held(&self) -> usize {
        self.tracker.held()
    }

    pub(super) fn oldest_us(&self, now_us: u64) -> Option<u64> {
        let oldest = self
            .earlier
            .iter()
            .chain([&self.tracker])
            .filter_map(Tracker::oldest_open);
        oldest.map(|open| open.age_us(now_us)).max()
    }
}
