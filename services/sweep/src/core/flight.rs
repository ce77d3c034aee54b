//! What of the missing is still on its way to the broker (D-9).
//!
//! Owns the answer from the log's position, so that what is in flight is not what is unaccounted
//! for under another name: an event that is missing and that the log's reader has passed is lost,
//! or its entry is late.

use crate::core::{Mode, SlotState, SlotView};

/// What the last look with a mark found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Marked {
    /// Events that were not published.
    pub events: u64,
    /// The mark in the log: a reader that has confirmed it has passed all of them.
    pub lsn: u64,
}

/// How many of the events that are `missing` now somebody still carries to the broker.
pub const fn unpublished(mode: Mode, missing: u64, marked: Marked, slot: &SlotView) -> u64 {
    match (mode, slot.state) {
        // A dispatcher looks for them itself.
        (Mode::Dispatch, _) => missing,
        // What comes back reads from a later position, or nothing does.
        (Mode::Sweep, SlotState::Absent | SlotState::Lost) => 0,
        (Mode::Sweep, SlotState::Inactive | SlotState::Active) => match slot.confirmed {
            // Those that came after the look are still before the reader.
            Some(confirmed) if confirmed >= marked.lsn => missing.saturating_sub(marked.events),
            Some(_) | None => missing,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn d_9_what_the_log_has_passed_is_not_in_flight() {
        let slot = |state, confirmed| SlotView { state, confirmed };
        let active = |confirmed| slot(SlotState::Active, confirmed);
        let marked = Marked {
            events: 5,
            lsn: 100,
        };
        let of = |slot: SlotView| unpublished(Mode::Sweep, 7, marked, &slot);
        assert_eq!(of(active(Some(99))), 7);
        assert_eq!(of(active(None)), 7);
        assert_eq!(
            of(slot(SlotState::Inactive, Some(99))),
            7,
            "it is waited for"
        );
        assert_eq!(of(active(Some(100))), 2, "two came after the look");
        assert_eq!(unpublished(Mode::Sweep, 3, marked, &active(Some(100))), 0);
        assert_eq!(of(slot(SlotState::Lost, Some(5))), 0);
        assert_eq!(of(slot(SlotState::Absent, None)), 0);
        let none = slot(SlotState::Absent, None);
        assert_eq!(unpublished(Mode::Dispatch, 7, marked, &none), 7);
    }
}
