//! What is confirmed to Postgres, and when.

use super::*;

/// D-3: acknowledged rows move the position only in the order of their commits.
#[test]
fn confirmed_waits_for_the_oldest_open_transaction() {
    let mut walk = Walk::streaming();
    let first = walk.transaction(1, 110, 120);
    let second = walk.transaction(2, 120, 130);
    walk.step(keepalive(500));
    walk.step(Input::Acked(second));
    assert_eq!(walk.status_after(SECOND), None, "nothing new to say");
    let actions = walk.step(Input::Acked(first));
    assert!(actions.contains(&published(1, 1)));
    let status = status(&actions).unwrap();
    assert_eq!(
        status.confirmed,
        Lsn::new(500),
        "nothing is outstanding: the keepalive counts, D-4"
    );
}

/// D-3, C10: some rows of a transaction are not the transaction.
#[test]
fn a_transaction_counts_only_after_its_commit() {
    let mut walk = Walk::streaming();
    walk.step(begin(110));
    let tag = produced(&walk.step(insert(110, row(1, "9")))).unwrap();
    walk.step(Input::Acked(tag));
    walk.step(keepalive(110));
    assert_eq!(
        walk.status_after(4 * SECOND).unwrap().confirmed,
        Lsn::new(100)
    );
    assert_eq!(
        status(&walk.step(commit(110, 120))).unwrap().confirmed,
        Lsn::new(120)
    );
}

/// D-4, C19: a quiet outbox follows the server; C1 is in the properties.
#[test]
fn a_keepalive_that_asks_is_answered_with_its_own_position() {
    let mut walk = Walk::streaming();
    let actions = walk.step(Input::Keepalive {
        end: Lsn::new(900),
        reply_requested: true,
    });
    assert_eq!(status(&actions).unwrap().confirmed, Lsn::new(900));
    assert_eq!(walk.relay.gauges().idle_advances, 1);
}

/// C22: statuses leave in the middle of one huge transaction as well.
#[test]
fn statuses_leave_in_the_middle_of_a_transaction() {
    let mut walk = Walk::streaming();
    walk.step(begin(110));
    walk.step(insert(110, row(1, "9")));
    let status = walk.status_after(3 * SECOND).unwrap();
    assert_eq!(
        (status.confirmed, status.reply_requested),
        (Lsn::new(100), true)
    );
}

/// D-3: an acknowledgement of an earlier connection is no acknowledgement of this one, although
/// the transaction has the same place in the queue.
#[test]
fn late_acknowledgements_confirm_nothing_on_a_new_connection() {
    let mut walk = Walk::streaming();
    let old = walk.transaction(1, 110, 120);
    walk.step(Input::Lost(Lost::connection("gone")));
    walk.after(SECOND);
    walk.step(connected(100));
    walk.step(outbox());
    let new = walk.transaction(1, 110, 120);
    walk.step(Input::Acked(old));
    assert_eq!(
        walk.status_after(3 * SECOND).unwrap().confirmed,
        Lsn::new(100)
    );
    walk.step(Input::Acked(new));
    assert_eq!(walk.status_after(SECOND).unwrap().confirmed, Lsn::new(120));
}

/// The position is noted after acknowledged commits, at most every ten seconds, and not for idle
/// advances: those would write the log that causes the next one.
#[test]
fn positions_are_noted_rarely_and_only_for_commits() {
    let saved = |actions: &Actions| {
        actions
            .iter()
            .any(|action| matches!(action, Action::SavePosition(_)))
    };
    let mut walk = Walk::streaming();
    walk.step(keepalive(105));
    assert!(!saved(&walk.after(20 * SECOND)), "idle");
    let tag = walk.transaction(1, 110, 120);
    assert!(saved(&walk.step(Input::Acked(tag))));
    let tag = walk.transaction(2, 120, 130);
    assert!(!saved(&walk.step(Input::Acked(tag))), "too soon");
    assert!(saved(&walk.after(10 * SECOND)));
    walk.step(keepalive(900));
    assert!(!saved(&walk.after(60 * SECOND)), "idle again");
}
