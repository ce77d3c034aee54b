//! The round of `published`: what passes a look, and what does not.

use super::*;
use SlotState::{Absent, Active, Inactive, Lost};

fn play() -> Play {
    Play::new(Round::published(timing(), Mode::Sweep))
}

fn waiting(play: &mut Play, look: &Look) {
    play.answer(&Want::Look, 0, Seen::Looked(look.clone()));
    play.stands(Standing::Waiting);
}

#[test]
fn an_empty_look_is_a_whole_round() {
    let mut play = play();
    assert!(!play.round.done_once());
    play.answer(&Want::Look, 0, Seen::Looked(look(&[])));
    assert!(play.round.done_once());
    play.stands(Standing::Idle);
    assert_eq!(play.want(), (Want::Look, 100));
}

/// D-10: a relay that lags has not passed the look, so its backlog is not sent twice; when it
/// has, the ledger insert gets its grace, and the position is read once more.
#[test]
fn a_lagging_relay_is_waited_for() {
    let (mut play, look) = (play(), look(&[3, 4]));
    waiting(&mut play, &look);
    play.answer(&Want::Slot, 0, slot(Active, Some(998)));
    play.answer(&Want::Slot, 1, slot(Active, Some(999)));
    play.stands(Standing::Waiting);
    play.answer(&Want::Slot, 1, slot(Active, Some(1_000)));
    play.answer(&Want::Slot, 5, slot(Active, Some(1_001)));
    assert!(!play.round.done_once());
    play.claims(&look, 0);
    assert!(play.round.done_once());
    play.stands(Standing::Idle);
    assert_eq!(play.want(), (Want::Look, 100));
}

/// D-10: connected and standing still is blocked: told, and nothing is sent, however long. The
/// look is replaced at every interval without ending the alarm.
#[test]
fn a_relay_that_stands_still_is_blocked() {
    let (mut play, look) = (play(), look(&[3]));
    waiting(&mut play, &look);
    play.answer(&Want::Slot, 0, slot(Active, Some(7)));
    for _ in 0..29 {
        play.answer(&Want::Slot, 1, slot(Active, Some(7)));
        play.stands(Standing::Waiting);
    }
    let mut looks = 0;
    for _ in 0..500 {
        let (want, _) = play.want();
        let seen = if want == Want::Look {
            looks += 1;
            Seen::Looked(look.clone())
        } else {
            assert_eq!(want, Want::Slot);
            slot(Active, Some(7))
        };
        play.round.see(seen, play.now);
        play.stands(Standing::Blocked);
    }
    assert_eq!(looks, 5);
    assert!(play.round.standing().is_alarm());
    play.answer(&Want::Slot, 1, slot(Active, Some(8)));
    play.stands(Standing::Waiting);
    play.answer(&Want::Slot, 1, slot(Active, Some(1_000)));
    play.answer(&Want::Slot, 5, slot(Active, Some(1_000)));
    play.claims(&look, 0);
}

/// What a blocked look held may arrive by other ways; then there is nothing to alarm about.
#[test]
fn a_blocked_round_ends_with_an_empty_look_and_heeds_a_request() {
    let mut play = play();
    waiting(&mut play, &look(&[3]));
    play.answer(&Want::Slot, 0, slot(Active, Some(7)));
    for _ in 0..30 {
        play.answer(&Want::Slot, 1, slot(Active, Some(7)));
    }
    play.stands(Standing::Blocked);
    play.round.request(play.now);
    play.answer(&Want::Slot, 1, slot(Active, Some(7)));
    play.answer(&Want::Look, 1, Seen::Looked(look(&[])));
    play.stands(Standing::Idle);
    // A later look gets its full time.
    play.answer(&Want::Look, 100, Seen::Looked(look(&[4])));
    play.answer(&Want::Slot, 0, slot(Active, Some(7)));
    play.stands(Standing::Waiting);
}

#[test]
fn without_a_slot_nobody_is_waited_for() {
    for state in [Absent, Lost] {
        let (mut play, look) = (play(), look(&[3]));
        waiting(&mut play, &look);
        play.answer(&Want::Slot, 0, slot(state, None));
        play.stands(Standing::NoRelay);
        play.answer(&Want::Slot, 5, slot(state, None));
        play.claims(&look, 0);
    }
}

/// It waits for every open transaction, maybe for long, and decodes nothing that a look saw.
#[test]
fn a_slot_that_is_being_made_is_not_waited_for() {
    let (mut play, look) = (play(), look(&[3]));
    waiting(&mut play, &look);
    play.answer(&Want::Slot, 0, slot(Active, None));
    play.stands(Standing::NoRelay);
    play.answer(&Want::Slot, 5, slot(Active, None));
    play.claims(&look, 0);
}

/// A slot that is made anew begins above the look's mark, so the same rule heals it.
#[test]
fn a_slot_made_anew_has_passed() {
    let (mut play, look) = (play(), look(&[3]));
    waiting(&mut play, &look);
    play.answer(&Want::Slot, 0, slot(Absent, None));
    play.answer(&Want::Slot, 5, slot(Active, Some(1_200)));
    play.claims(&look, 0);
}

#[test]
fn an_inactive_slot_is_given_up_after_the_patience_with_the_broker_in_reach() {
    let (mut play, look) = (play(), look(&[3]));
    waiting(&mut play, &look);
    play.answer(&Want::Slot, 0, slot(Inactive, Some(7)));
    for _ in 0..60 {
        play.answer(&Want::Probe, 0, Seen::Probed(true));
        play.stands(Standing::Waiting);
        play.answer(&Want::Slot, 1, slot(Inactive, Some(7)));
    }
    play.answer(&Want::Probe, 0, Seen::Probed(true));
    play.stands(Standing::NoRelay);
    play.answer(&Want::Slot, 5, slot(Inactive, Some(7)));
    play.claims(&look, 0);

    // The next round knows already, but asks the broker again.
    let next = super::look(&[9]);
    play.answer(&Want::Look, 100, Seen::Looked(next.clone()));
    play.answer(&Want::Slot, 0, slot(Inactive, Some(7)));
    play.answer(&Want::Probe, 0, Seen::Probed(true));
    play.answer(&Want::Slot, 5, slot(Inactive, Some(7)));
    play.claims(&next, 0);
}

/// The patience starts again with a probe that is not acknowledged, with Postgres out of reach,
/// with a relay that connects, and with a position that moved.
#[test]
fn the_patience_counts_only_time_in_which_a_relay_could_have_come_back() {
    type Disturbance = fn(&mut Play) -> u64;
    let disturbances: [Disturbance; 5] = [
        |play| {
            play.answer(&Want::Probe, 0, Seen::Probed(false));
            7
        },
        |play| {
            play.answer(&Want::Probe, 0, Seen::Failed);
            7
        },
        |play| {
            play.answer(&Want::Probe, 0, Seen::Probed(true));
            play.answer(&Want::Slot, 1, Seen::Failed);
            7
        },
        |play| {
            play.answer(&Want::Probe, 0, Seen::Probed(true));
            play.answer(&Want::Slot, 1, slot(Active, Some(7)));
            7
        },
        |play| {
            play.answer(&Want::Probe, 0, Seen::Probed(true));
            play.answer(&Want::Slot, 1, slot(Inactive, Some(8)));
            play.answer(&Want::Probe, 0, Seen::Probed(true));
            8
        },
    ];
    for disturb in disturbances {
        let mut play = play();
        waiting(&mut play, &look(&[3]));
        play.answer(&Want::Slot, 0, slot(Inactive, Some(7)));
        for _ in 0..58 {
            play.answer(&Want::Probe, 0, Seen::Probed(true));
            play.answer(&Want::Slot, 1, slot(Inactive, Some(7)));
        }
        let confirmed = disturb(&mut play);
        for _ in 0..59 {
            play.answer(&Want::Slot, 1, slot(Inactive, Some(confirmed)));
            play.answer(&Want::Probe, 0, Seen::Probed(true));
            play.stands(Standing::Waiting);
        }
    }
}

/// D-10: a relay that comes back during the grace still holds its backlog.
#[test]
fn a_relay_that_comes_back_before_the_claim_is_waited_for() {
    let (mut play, look) = (play(), look(&[3]));
    waiting(&mut play, &look);
    play.answer(&Want::Slot, 0, slot(Inactive, Some(7)));
    while play.round.standing() != Standing::NoRelay {
        play.answer(&Want::Probe, 0, Seen::Probed(true));
        if play.round.standing() == Standing::Waiting {
            play.answer(&Want::Slot, 1, slot(Inactive, Some(7)));
        }
    }
    play.answer(&Want::Slot, 5, slot(Active, Some(7)));
    play.stands(Standing::Waiting);
    play.answer(&Want::Slot, 1, slot(Active, Some(1_000)));
    play.answer(&Want::Slot, 5, slot(Active, Some(1_000)));
    play.claims(&look, 0);
}

/// A look of another life says nothing: it is thrown away, whenever that is noticed.
#[test]
fn a_look_of_another_life_is_thrown_away() {
    let other = || Seen::Slot {
        life: life(2),
        slot: SlotView {
            state: Active,
            confirmed: Some(9_000),
        },
    };
    let mut early = play();
    waiting(&mut early, &look(&[3]));
    early.answer(&Want::Slot, 0, other());
    early.stands(Standing::Idle);
    assert!(!early.round.done_once());
    assert_eq!(early.want(), (Want::Look, 1));

    let mut late = play();
    waiting(&mut late, &look(&[3]));
    late.answer(&Want::Slot, 0, slot(Active, Some(2_000)));
    late.answer(&Want::Slot, 5, other());
    assert_eq!(late.want(), (Want::Look, 1));
}

/// The outcome of a failed claim is unknown: the position is read again, then the same look is
/// claimed again.
#[test]
fn a_failure_repeats_the_step() {
    let (mut play, look) = (play(), look(&[3]));
    let claim = Want::Claim(std::sync::Arc::new(look.clone()));
    play.answer(&Want::Look, 0, Seen::Failed);
    play.answer(&Want::Look, 1, Seen::Looked(look.clone()));
    play.answer(&Want::Slot, 0, Seen::Failed);
    play.answer(&Want::Slot, 1, slot(Active, Some(1_000)));
    play.answer(&Want::Slot, 5, Seen::Failed);
    play.answer(&Want::Slot, 1, slot(Active, Some(1_000)));
    play.answer(&claim, 0, Seen::Failed);
    play.answer(&Want::Slot, 1, slot(Active, Some(1_000)));
    play.claims(&look, 0);
    assert!(play.round.done_once());
}

#[test]
fn a_claim_that_stops_early_goes_on_after_the_position_was_read() {
    let (mut play, look) = (play(), look(&[3, 4]));
    let claim = Want::Claim(std::sync::Arc::new(look.clone()));
    waiting(&mut play, &look);
    play.answer(&Want::Slot, 0, slot(Absent, None));
    play.answer(&Want::Slot, 5, slot(Absent, None));
    let part = Seen::Claimed(Claimed {
        redelivered: 1,
        more: true,
        ..Claimed::default()
    });
    play.answer(&claim, 0, part);
    assert!(!play.round.done_once());
    play.answer(&Want::Slot, 0, slot(Absent, None));
    play.claims(&look, 0);
    assert!(play.round.done_once());
}

/// A full look is followed by the next at once, unless nothing of it could be moved; the round is
/// not done before a look that held everything.
#[test]
fn a_full_look_goes_on_at_once() {
    for (moved, pause) in [(2, 0), (0, 1)] {
        let mut play = play();
        let full = Look {
            truncated: true,
            ..look(&[3, 4])
        };
        waiting(&mut play, &full);
        play.answer(&Want::Slot, 0, slot(Absent, None));
        play.answer(&Want::Slot, 5, slot(Absent, None));
        let want = Want::Claim(std::sync::Arc::new(full));
        play.answer(&want, 0, claimed(moved));
        assert!(!play.round.done_once());
        play.answer(&Want::Look, pause, Seen::Looked(look(&[])));
        assert!(play.round.done_once());
    }
}

/// A part that was thrown away is not dealt with, so the pass it belongs to is not the one.
#[test]
fn a_pass_with_a_look_that_was_thrown_away_is_not_done() {
    let mut play = play();
    let full = Look {
        truncated: true,
        ..look(&[3, 4])
    };
    waiting(&mut play, &full);
    let other = Seen::Slot {
        life: life(2),
        slot: SlotView {
            state: Active,
            confirmed: None,
        },
    };
    play.answer(&Want::Slot, 0, other);
    play.answer(&Want::Look, 1, Seen::Looked(look(&[])));
    assert!(!play.round.done_once());
    play.answer(&Want::Look, 1, Seen::Looked(look(&[])));
    assert!(play.round.done_once());
}

/// A request is honoured by a look that begins after it, whatever the round is doing.
#[test]
fn a_request_leads_to_a_look_that_begins_after_it() {
    let mut play = play();
    play.answer(&Want::Look, 0, Seen::Looked(look(&[])));
    play.round.request(play.now);
    assert_eq!(play.want(), (Want::Look, 0));
    // While that look is being taken: it may have missed what the request is about.
    play.round.request(play.now);
    play.round.see(Seen::Looked(look(&[])), play.now);
    let found = look(&[3]);
    play.answer(&Want::Look, 0, Seen::Looked(found.clone()));
    play.round.request(play.now);
    play.answer(&Want::Slot, 0, slot(Active, Some(1_000)));
    play.answer(&Want::Slot, 5, slot(Active, Some(1_000)));
    play.claims(&found, 0);
    play.answer(&Want::Look, 0, Seen::Looked(look(&[])));
    assert_eq!(play.want(), (Want::Look, 100));
    // After a failed look, without waiting out the interval.
    play.round.see(Seen::Failed, play.now);
    play.round.request(play.now);
    assert_eq!(play.want(), (Want::Look, 0));
}

#[test]
fn a_report_that_fits_no_question_is_ignored() {
    let mut play = play();
    play.answer(&Want::Look, 0, Seen::Probed(true));
    waiting(&mut play, &look(&[3]));
    for stray in [Seen::Looked(look(&[8])), Seen::Hop(Vec::new()), claimed(1)] {
        play.answer(&Want::Slot, 0, stray);
    }
    play.stands(Standing::Waiting);
}

/// Without logical replication the same round has an empty position condition.
#[test]
fn a_dispatcher_claims_at_once() {
    let mut play = Play::new(Round::published(timing(), Mode::Dispatch));
    let look = look(&[3]);
    play.answer(&Want::Look, 0, Seen::Looked(look.clone()));
    let claim = Want::Claim(std::sync::Arc::new(look.clone()));
    play.answer(&claim, 0, Seen::Failed);
    play.claims(&look, 1);
    assert!(play.round.done_once());
    assert_eq!(play.want(), (Want::Look, 100));
}
