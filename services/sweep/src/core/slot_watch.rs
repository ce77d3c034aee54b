//! Whether the log's reader has passed a look.
//!
//! Owns the rule for `published`: confirmed at or above the look's mark; or no relay is live,
//! which is a slot that is absent or lost, or one that has been inactive for long enough while
//! the broker could be reached all the time.

use crate::core::{Moment, SlotState, SlotView, Timing};

/// What is remembered of the slot. The patience goes on over looks, so that a relay that is away
/// is waited for once and not at every round.
#[derive(Clone, Debug, Default)]
pub(super) struct SlotWatch {
    confirmed: Option<u64>,
    /// When the position last moved, or the look was taken.
    moved: Moment,
    /// Since when the slot has been seen inactive at one position with the broker in reach.
    inactive: Option<Moment>,
}

/// What the slot says about a look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Passage {
    /// The relay has acknowledged everything the look saw.
    Passed,
    /// Nobody will ever deliver it.
    NoRelay,
    /// Nobody is connected; whether a relay is to be waited for depends on the broker.
    Inactive,
    /// The relay is on its way.
    NotYet,
    /// The relay is connected and does not move.
    Blocked,
}

impl SlotWatch {
    /// A new look waits. One that replaces a look that was `stuck` takes over since when nothing
    /// moved.
    pub(super) fn begin(&mut self, stuck: bool, now: Moment) {
        if !stuck {
            self.moved = now;
        }
    }

    /// Judges the slot for a look whose mark is at `lsn`.
    pub(super) fn see(
        &mut self,
        slot: &SlotView,
        lsn: u64,
        now: Moment,
        timing: &Timing,
    ) -> Passage {
        if slot.confirmed != self.confirmed {
            // Also when it fell: then the slot was made anew.
            self.confirmed = slot.confirmed;
            self.moved = now;
            self.inactive = None;
        }
        if slot.state != SlotState::Inactive {
            self.inactive = None;
        }
        if slot.confirmed.is_some_and(|confirmed| confirmed >= lsn) {
            return Passage::Passed;
        }
        match slot.state {
            SlotState::Absent | SlotState::Lost => Passage::NoRelay,
            // It is being made, which waits for every open transaction: what a look saw was
            // committed before the place from which it will decode.
            SlotState::Active if slot.confirmed.is_none() => Passage::NoRelay,
            SlotState::Inactive => {
                self.inactive.get_or_insert(now);
                Passage::Inactive
            }
            SlotState::Active if now.since(self.moved) >= timing.blocked_after => Passage::Blocked,
            SlotState::Active => Passage::NotYet,
        }
    }

    /// Neither Postgres nor the broker may have been in reach, so a relay could not have come
    /// back: the wait starts again.
    pub(super) fn out_of_reach(&mut self, now: Moment) {
        self.inactive = self.inactive.map(|_| now);
    }

    /// Whether the slot has been inactive for the whole patience.
    pub(super) fn is_given_up(&self, now: Moment, timing: &Timing) -> bool {
        self.inactive
            .is_some_and(|since| now.since(since) >= timing.relay_patience)
    }
}
