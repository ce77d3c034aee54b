//! Which ids a look reads.
//!
//! Owns the rotation and the hourly reading of settled gaps. A look holds a bounded number of ids,
//! so the next one goes on behind a full one: what cannot move never hides what can. Settled gaps
//! are left out of most passes and read again at least once an hour, because a row that exists
//! always beats a note that there is none.

use events::{EventId, IdRange, IdRanges};

use crate::core::{
    Look, Moment,
    voids::{self, Snapshot, Void},
};

/// How often settled gaps are read, microseconds.
pub const WHOLE_EVERY_US: u64 = 3_600_000_000;

/// Where the looks of one stage are. A new one begins with a whole pass.
#[derive(Clone, Debug, Default)]
pub struct Reader {
    /// The last id of the look before, when that was full.
    after: Option<EventId>,
    /// When the present pass began, if it reads everything.
    whole_since: Option<Moment>,
    /// When the last finished whole pass began.
    whole_at: Option<Moment>,
}

impl Reader {
    /// What to read now of the `candidates`, which are the ids that the stage does not have.
    pub fn ranges(
        &mut self,
        candidates: &IdRanges,
        noted: &[Void],
        snapshot: &Snapshot,
        now: Moment,
    ) -> IdRanges {
        let is_due = self
            .whole_at
            .is_none_or(|at| now.since(at) >= WHOLE_EVERY_US);
        if is_due && self.whole_since.is_none() {
            self.after = None;
            self.whole_since = Some(now);
        }
        let rest = match self.after {
            Some(id) => candidates.within(IdRange {
                low: id.0.saturating_add(1),
                high: i64::MAX,
            }),
            None => candidates.clone(),
        };
        if self.whole_since.is_some() {
            rest
        } else {
            rest.subtract(&voids::settled(noted, snapshot))
        }
    }

    /// The part of `ranges` that a look has really read: all, or up to its last id if it is full.
    pub fn read(ranges: &IdRanges, look: &Look) -> IdRanges {
        match look.ids.last() {
            Some(last) if look.truncated => ranges.within(IdRange {
                low: i64::MIN,
                high: last.0.saturating_add(1),
            }),
            None if look.truncated => IdRanges::new(),
            _ => ranges.clone(),
        }
    }

    /// The look was taken.
    pub fn looked(&mut self, look: &Look) {
        if look.truncated {
            self.after = look.ids.last().copied().or(self.after);
            return;
        }
        self.after = None;
        if let Some(since) = self.whole_since.take() {
            self.whole_at = Some(since);
        }
    }
}
