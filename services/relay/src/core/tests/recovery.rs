//! What a new connection carries over: epochs, gaps, the quiet server's position.

use super::*;

fn source_of(actions: &Actions) -> String {
    let record = actions.iter().find_map(|action| match action {
        Action::Produce(_, record) => Some(record),
        _ => None,
    });
    let source = record.and_then(|record| {
        let source = record.headers.iter().find(|(name, _)| *name == "ce_source");
        Some(String::from_utf8(source?.1.to_vec()).unwrap())
    });
    source.expect("a record with its source")
}

/// A record that is acknowledged late is accounted under the epoch that it names, never under the
/// one that began meanwhile.
#[test]
fn records_keep_the_epoch_they_were_made_under() {
    let mut walk = Walk::streaming();
    walk.step(begin(110));
    let old = walk.step(insert(110, row(1, "9")));
    assert_eq!(source_of(&old), "/tideline/db/outbox/1");
    walk.step(Input::Epoch(epoch(2)));
    walk.step(Input::Epoch(epoch(1)));
    let new = walk.step(insert(110, row(2, "9")));
    assert_eq!(source_of(&new), "/tideline/db/outbox/2");
    walk.step(commit(110, 120));
    let old = walk.step(Input::Acked(produced(&old).unwrap()));
    assert!(old.contains(&published(1, 1)), "{old:?}");
    let new = walk.step(Input::Acked(produced(&new).unwrap()));
    assert!(new.contains(&published(2, 2)), "{new:?}");

    walk.step(Input::Lost(Lost::connection("failover")));
    walk.after(SECOND);
    walk.step(Input::Connected {
        confirmed: Lsn::new(50),
        status_interval_us: 3 * SECOND,
        epoch: epoch(3),
    });
    walk.step(outbox());
    walk.step(begin(60));
    let third = walk.step(insert(60, row(3, "9")));
    assert_eq!(source_of(&third), "/tideline/db/outbox/3");
}

/// C34: after a publication gap the next attempts are told to move the slot, until one has, or
/// until another relay holds it.
#[test]
fn a_publication_gap_is_remembered_until_it_is_mended() {
    let mut walk = Walk::streaming();
    walk.step(Input::Lost(Lost::connection("gone")));
    assert!(!walk.relay.attempt().behind_gap);
    walk.after(SECOND);
    walk.step(connected(100));
    walk.step(Input::Lost(Lost::publication("no publication")));
    assert!(walk.relay.attempt().behind_gap);
    walk.step(refused(State::PublicationGap, Class::Outage));
    assert!(walk.relay.attempt().behind_gap, "it is still missing");
    walk.step(Input::GapMended);
    assert!(!walk.relay.attempt().behind_gap);

    walk.after(20 * SECOND);
    walk.step(connected(100));
    walk.step(Input::Lost(Lost::publication("no publication")));
    walk.step(refused(State::Standby, Class::Outage));
    assert!(!walk.relay.attempt().behind_gap, "the other relay's gap");
}

/// C15: the next attempt knows what this process has confirmed, so that a slot which somebody
/// moved further is noticed.
#[test]
fn the_next_attempt_knows_what_was_confirmed() {
    let mut walk = Walk::new();
    assert_eq!(walk.relay.attempt().confirmed, Lsn::ZERO);
    walk.step(Input::Tick);
    walk.step(connected(100));
    walk.step(keepalive(900));
    walk.step(Input::Lost(Lost::connection("gone")));
    assert_eq!(walk.relay.attempt().confirmed, Lsn::new(900));
}

/// The note follows a slot that stands further back than the one before: of another server, or
/// made anew after a restore.
#[test]
fn positions_are_noted_after_a_step_back() {
    let mut walk = Walk::streaming();
    let tag = walk.transaction(1, 110, 120);
    walk.step(Input::Acked(tag));
    walk.after(20 * SECOND);
    walk.step(Input::Lost(Lost::connection("failover")));
    walk.after(SECOND);
    walk.step(connected(50));
    walk.step(outbox());
    let tag = walk.transaction(2, 60, 70);
    let mut actions = walk.step(Input::Acked(tag));
    actions.extend(walk.after(10 * SECOND));
    let noted = actions
        .iter()
        .any(|action| matches!(action, Action::SavePosition(lsn) if *lsn >= Lsn::new(70)));
    assert!(noted, "{actions:?}");
}

/// D-4: an idle relay confirms a keepalive's position within a second of it, once: a status makes
/// no log, so the same position is not told again before the periodic status.
#[test]
fn d_4_an_idle_relay_confirms_soon_and_once() {
    let mut walk = Walk::streaming();
    walk.now = walk.now.plus(10);
    walk.step(keepalive(900));
    let mut told = Vec::new();
    for _ in 0..29 {
        walk.now = walk.now.plus(SECOND / 10);
        // What a server does that has nothing to send: the same position again and again.
        let mut actions = walk.step(keepalive(900));
        actions.extend(walk.step(Input::Tick));
        told.extend(status(&actions).map(|status| (walk.now, status.confirmed)));
    }
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(
        told[0].0 <= Moment(SECOND) && told[0].1 == Lsn::new(900),
        "{told:?}"
    );
}
