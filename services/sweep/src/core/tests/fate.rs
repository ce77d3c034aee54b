//! The fate of one missing id, as a table.

use super::*;
use crate::core::fate::{FIRST_WAIT_US, LONGEST_WAIT_US, wait_us};

const MINUTE: i64 = 60_000_000;
const HORIZON: i64 = 7 * 24 * Micros::HOUR;
const CREATED: Micros = Micros(1_000 * Micros::HOUR);
/// Two hours after the row.
const LOOK: Micros = Micros(1_002 * Micros::HOUR);

fn facts() -> Facts {
    Facts {
        created_us: CREATED,
        post_exists: Some(true),
        attempts: 0,
        last_us: None,
        dead_letter_open: false,
        discarded: false,
    }
}

/// Attempted so often, last at this time.
fn tried(attempts: u32, last_us: Micros) -> Facts {
    Facts {
        attempts,
        last_us: Some(last_us),
        ..facts()
    }
}

fn redeliver(attempt: u32, alarm: bool) -> Fate {
    Fate::Redeliver { attempt, alarm }
}

#[test]
fn every_row_of_the_table() {
    let now = LOOK.plus(10);
    let due_us = LOOK.plus(-1).plus(MINUTE);
    let old = CREATED.plus(HORIZON);
    let letter = Facts {
        dead_letter_open: true,
        ..facts()
    };
    let ghost = Facts {
        post_exists: Some(false),
        ..facts()
    };
    let discarded = Facts {
        discarded: true,
        ..letter
    };
    let follow = Facts {
        post_exists: None,
        ..facts()
    };
    let table = [
        ("lost", facts(), now, redeliver(1, false)),
        ("not about a post", follow, now, redeliver(1, false)),
        (
            "a letter",
            letter,
            old.plus(1),
            Fate::Leave(Why::DeadLetter),
        ),
        (
            "discarded",
            discarded,
            old.plus(1),
            Fate::Leave(Why::Discarded),
        ),
        ("no post", ghost, now, Fate::Discard(DiscardReason::NoPost)),
        ("at the horizon", facts(), old, redeliver(1, false)),
        (
            "past it",
            facts(),
            old.plus(1),
            Fate::Discard(DiscardReason::TooOld),
        ),
        (
            "past it, no post",
            ghost,
            old.plus(1),
            Fate::Discard(DiscardReason::TooOld),
        ),
        (
            "sent at the look",
            tried(1, LOOK),
            now,
            Fate::Leave(Why::Newer),
        ),
        (
            "sent after it",
            tried(1, LOOK.plus(5)),
            now,
            Fate::Leave(Why::Newer),
        ),
        (
            "sent before it",
            tried(1, LOOK.plus(-1)),
            now,
            Fate::Leave(Why::NotDue { due_us }),
        ),
        (
            "due to the microsecond",
            tried(1, LOOK.plus(-1)),
            due_us,
            redeliver(2, false),
        ),
        (
            "the third",
            tried(2, LOOK.plus(-2 * MINUTE)),
            now,
            redeliver(3, true),
        ),
        (
            "the tenth",
            tried(9, LOOK.plus(-3 * MINUTE)),
            now,
            Fate::Leave(Why::NotDue {
                due_us: LOOK.plus(-3 * MINUTE).plus(256 * MINUTE),
            }),
        ),
    ];
    for (name, facts, now, expected) in table {
        assert_eq!(fate(&facts, LOOK, now, HORIZON), expected, "{name}");
    }
}

/// What was just sent again may still arrive, so it is not discarded before it is due.
#[test]
fn too_old_is_judged_only_when_due() {
    let facts = tried(1, LOOK.plus(-1));
    let decide = |now| fate(&facts, LOOK, now, Micros::HOUR);
    assert!(matches!(
        decide(LOOK.plus(1)),
        Fate::Leave(Why::NotDue { .. })
    ));
    assert_eq!(
        decide(LOOK.plus(MINUTE)),
        Fate::Discard(DiscardReason::TooOld)
    );
}

#[test]
fn attempts_wait_a_minute_doubling_to_six_hours() {
    let minutes: Vec<i64> = (1..12).map(|attempts| wait_us(attempts) / MINUTE).collect();
    assert_eq!(minutes, [1, 2, 4, 8, 16, 32, 64, 128, 256, 360, 360]);
    assert_eq!(wait_us(0), FIRST_WAIT_US);
    assert_eq!(wait_us(u32::MAX), LONGEST_WAIT_US);
    let last = tried(u32::MAX, CREATED);
    assert_eq!(
        fate(&last, LOOK, CREATED.plus(LONGEST_WAIT_US), HORIZON),
        redeliver(u32::MAX, true)
    );
}

#[test]
fn the_words_are_those_of_the_tables() {
    let words = DiscardReason::ALL.map(DiscardReason::as_str);
    assert_eq!(words, ["too_old", "no_post"]);
    let due_us = Micros(7);
    assert_eq!(
        Why::NotDue { due_us }.to_string(),
        "its next attempt is due at 7 µs"
    );
}
