//! The round of `delivered`: which offsets pass a look.

use super::*;

fn play(hops: usize) -> Play {
    let mut play = Play::new(Round::delivered(timing(), hops));
    play.answer(&Want::Look, 0, Seen::Looked(look(&[3])));
    play
}

fn mark(partition: i32, low: i64, end: i64, committed: impl Into<Option<i64>>) -> Mark {
    Mark {
        partition,
        low,
        end,
        committed: committed.into(),
    }
}

/// The hop has passed: grace, a last reading of the life, claim.
fn claims(play: &mut Play) {
    play.answer(&Want::Slot, 5, slot(SlotState::Absent, None));
    play.claims(&look(&[3]), 0);
    play.stands(Standing::Idle);
}

/// D-10: the end offsets after the look are the target; what comes later is not waited for.
#[test]
fn the_group_must_reach_the_first_end_on_every_partition() {
    let mut play = play(1);
    let hop = Want::Hop(0);
    play.answer(&hop, 0, Seen::Hop(vec![mark(0, 0, 9, 9), mark(1, 0, 5, 4)]));
    play.answer(
        &hop,
        1,
        Seen::Hop(vec![mark(0, 0, 12, 10), mark(1, 0, 8, 4)]),
    );
    play.stands(Standing::Waiting);
    play.answer(
        &hop,
        1,
        Seen::Hop(vec![mark(0, 0, 20, 10), mark(1, 0, 8, 5)]),
    );
    claims(&mut play);
}

/// A group that went back on a partition reads it again, so it is waited for again.
#[test]
fn a_group_that_goes_back_has_not_passed() {
    let mut play = play(1);
    let hop = Want::Hop(0);
    play.answer(&hop, 0, Seen::Hop(vec![mark(0, 0, 9, 9), mark(1, 0, 5, 4)]));
    play.answer(&hop, 1, Seen::Hop(vec![mark(0, 0, 9, 2), mark(1, 0, 5, 5)]));
    play.answer(&hop, 1, Seen::Hop(vec![mark(0, 0, 9, 9), mark(1, 0, 5, 5)]));
    claims(&mut play);
}

#[test]
fn an_empty_partition_has_passed() {
    for committed in [None, Some(3), Some(12)] {
        let mut play = play(1);
        play.answer(
            &Want::Hop(0),
            0,
            Seen::Hop(vec![mark(0, 9, 9, committed), mark(1, 0, 2, 2)]),
        );
        claims(&mut play);
    }
}

#[test]
fn a_partition_that_is_no_longer_there_is_not_waited_for() {
    let mut play = play(1);
    play.answer(
        &Want::Hop(0),
        0,
        Seen::Hop(vec![mark(0, 0, 9, 9), mark(1, 0, 2, 1)]),
    );
    play.answer(&Want::Hop(0), 1, Seen::Hop(vec![mark(0, 0, 9, 9)]));
    claims(&mut play);
}

/// D-10: a group that does not move on one partition is told about, and nothing is sent.
#[test]
fn a_group_that_cannot_pass_is_blocked() {
    let mut play = play(1);
    play.answer(
        &Want::Hop(0),
        0,
        Seen::Hop(vec![mark(0, 0, 900, 1), mark(1, 0, 9, None)]),
    );
    for step in 1..100_i64 {
        // Partition 0 moves all the time.
        play.answer(
            &Want::Hop(0),
            1,
            Seen::Hop(vec![mark(0, 0, 900, 1 + step), mark(1, 0, 9, None)]),
        );
        let standing = if step < 30 {
            Standing::Waiting
        } else {
            Standing::Blocked
        };
        play.stands(standing);
    }
    let last = Seen::Hop(vec![mark(0, 0, 900, 101), mark(1, 0, 9, None)]);
    play.answer(&Want::Hop(0), 1, last);
    // The look is replaced, and stands as it did from its first positions on.
    play.answer(&Want::Look, 1, Seen::Looked(look(&[3])));
    play.stands(Standing::Blocked);
    play.answer(
        &Want::Hop(0),
        0,
        Seen::Hop(vec![mark(0, 0, 999, 102), mark(1, 0, 9, None)]),
    );
    play.stands(Standing::Blocked);
    play.answer(
        &Want::Hop(0),
        1,
        Seen::Hop(vec![mark(0, 0, 999, 999), mark(1, 0, 9, 9)]),
    );
    play.stands(Standing::Waiting);
    claims(&mut play);
}

/// A topic without partitions is away, which is no reason to send anything.
#[test]
fn no_partition_at_all_is_not_a_passage() {
    let mut play = play(1);
    for step in 0..60 {
        play.answer(&Want::Hop(0), step.min(1), Seen::Hop(Vec::new()));
    }
    play.stands(Standing::Blocked);
    play.answer(&Want::Hop(0), 1, Seen::Hop(vec![mark(0, 0, 2, 2)]));
    claims(&mut play);
}

/// D-10: an offset beyond the end belongs to a topic that is gone. It does not count, not even
/// when the new topic has grown past it, until the group commits again.
#[test]
fn a_stale_offset_counts_only_after_the_group_commits_again() {
    let mut play = play(1);
    let hop = Want::Hop(0);
    play.answer(&hop, 0, Seen::Hop(vec![mark(0, 0, 4, 700)]));
    play.stands(Standing::OffsetLost);
    assert!(play.round.standing().is_alarm());
    play.answer(&hop, 1, Seen::Hop(vec![mark(0, 0, 900, 700)]));
    play.stands(Standing::OffsetLost);
    play.answer(&hop, 1, Seen::Hop(vec![mark(0, 0, 900, 2)]));
    play.stands(Standing::Waiting);
    play.answer(&hop, 1, Seen::Hop(vec![mark(0, 0, 900, 4)]));
    claims(&mut play);
}

/// The same over two looks: the second finds the offset below the end, and it is stale still.
#[test]
fn a_stale_offset_is_remembered_over_looks() {
    let mut play = play(1);
    let hop = Want::Hop(0);
    // Empty passes, whatever is committed.
    play.answer(&hop, 0, Seen::Hop(vec![mark(0, 0, 0, 700)]));
    claims(&mut play);
    play.answer(&Want::Look, 100, Seen::Looked(look(&[3])));
    play.answer(&hop, 0, Seen::Hop(vec![mark(0, 0, 800, 700)]));
    play.stands(Standing::OffsetLost);
    // The offsets of the group were removed with the topic.
    play.answer(&hop, 1, Seen::Hop(vec![mark(0, 0, 800, None)]));
    play.stands(Standing::Waiting);
    play.answer(&hop, 1, Seen::Hop(vec![mark(0, 0, 800, 800)]));
    claims(&mut play);
}

/// A group that has read the new topic to the very number of its old offset has passed, though the
/// number never changed: after a while at rest it counts.
#[test]
fn a_stale_offset_that_the_new_topic_ends_at_is_not_waited_for_for_ever() {
    let mut play = play(1);
    let hop = Want::Hop(0);
    play.answer(&hop, 0, Seen::Hop(vec![mark(0, 0, 3, 7)]));
    play.answer(&hop, 1, Seen::Hop(vec![mark(0, 0, 5, 7)]));
    for _ in 0..30 {
        play.answer(&hop, 1, Seen::Hop(vec![mark(0, 0, 7, 7)]));
        play.stands(Standing::OffsetLost);
    }
    play.answer(&hop, 1, Seen::Hop(vec![mark(0, 0, 7, 7)]));
    claims(&mut play);
}

/// A topic made anew while its old end is waited for: the old target could never be reached.
#[test]
fn an_end_that_falls_lowers_the_target() {
    let mut play = play(1);
    let hop = Want::Hop(0);
    play.answer(&hop, 0, Seen::Hop(vec![mark(0, 0, 700, 650)]));
    play.answer(&hop, 1, Seen::Hop(vec![mark(0, 0, 3, None)]));
    play.answer(&hop, 1, Seen::Hop(vec![mark(0, 0, 50, 3)]));
    claims(&mut play);
}

/// The ends of a hop are read after the hop before it has passed, since records move on.
#[test]
fn hops_are_passed_one_after_the_other() {
    let mut play = play(2);
    play.answer(&Want::Hop(0), 0, Seen::Hop(vec![mark(0, 0, 5, 4)]));
    play.answer(&Want::Hop(0), 1, Seen::Failed);
    play.answer(&Want::Hop(0), 1, Seen::Hop(vec![mark(0, 0, 5, 5)]));
    play.answer(&Want::Hop(1), 0, Seen::Hop(vec![mark(0, 0, 2, 1)]));
    play.answer(&Want::Hop(1), 1, Seen::Hop(vec![mark(0, 0, 9, 2)]));
    claims(&mut play);
}

/// Offsets do not tell lives apart, so the life is read before the claim.
#[test]
fn a_look_of_another_life_is_not_claimed() {
    let mut play = play(1);
    play.answer(&Want::Hop(0), 0, Seen::Hop(vec![mark(0, 0, 5, 5)]));
    let other = Seen::Slot {
        life: Life {
            pg_timeline: 2,
            ..life(1)
        },
        slot: SlotView {
            state: SlotState::Active,
            confirmed: Some(9),
        },
    };
    play.answer(&Want::Slot, 5, other);
    assert_eq!(play.want(), (Want::Look, 1));
    assert!(!play.round.done_once());
}

#[test]
fn without_hops_only_the_ledger_is_waited_for() {
    let mut play = play(0);
    claims(&mut play);
}
