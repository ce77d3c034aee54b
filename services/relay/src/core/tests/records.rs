//! What becomes of one record or message.

use super::*;

/// D-12: what each class of failure does to a record in flight.
#[test]
fn failures_by_class() {
    for class in [Class::Outage, Class::Unsure, Class::Bug] {
        let mut walk = Walk::streaming();
        let tag = walk.transaction(1, 110, 120);
        let actions = walk.step(Input::Failed(tag, class));
        assert!(
            actions.contains(&Action::RebuildSink) && actions.contains(&Action::Disconnect),
            "{class:?}"
        );
        assert_eq!(letter(&actions), None, "{class:?}: never a dead letter");
        assert_eq!(walk.relay.gauges().rows, 0);
    }
    let mut walk = Walk::streaming();
    let tag = walk.transaction(1, 110, 120);
    let actions = walk.step(Input::Failed(tag, Class::Config));
    assert!(matches!(
        actions.last(),
        Some(Action::Stop(StopReason::Config(_)))
    ));
}

/// C8, C9: a record that the broker refuses holds the position until its dead letter is safe.
#[test]
fn a_refused_record_becomes_a_dead_letter_and_the_stream_moves_on() {
    let mut walk = Walk::streaming();
    let tag = walk.transaction(1, 110, 120);
    let actions = walk.step(Input::Failed(tag, Class::Record));
    let (tag, reason) = letter(&actions).unwrap();
    assert_eq!(reason, DeadReason::Refused);
    assert_eq!(
        walk.status_after(3 * SECOND).unwrap().confirmed,
        Lsn::new(100)
    );
    let actions = walk.step(Input::Acked(tag));
    assert!(
        !actions
            .iter()
            .any(|action| matches!(action, Action::Published { .. })),
        "a dead letter is not published"
    );
    assert_eq!(walk.status_after(SECOND).unwrap().confirmed, Lsn::new(120));
}

#[test]
fn a_missing_column_is_a_schema_error_that_waits_for_repair() {
    let mut walk = Walk::streaming();
    let short: Vec<&str> = COLUMNS
        .into_iter()
        .filter(|name| *name != "payload")
        .collect();
    let described = Message::Relation(relation(OUTBOX, "tideline", "outbox", &short));
    walk.step(Input::Message(Lsn::ZERO, described));
    walk.step(begin(110));
    let actions = walk.step(insert(110, row(1, "9")));
    assert!(actions.contains(&Action::Disconnect));
    let told = actions.iter().find_map(|action| match action {
        Action::Enter(State::SchemaError, text) => Some(text.clone()),
        _ => None,
    });
    assert!(told.unwrap().contains("payload"));
    assert!(walk.after(SECOND).contains(&Action::Connect));
}

#[test]
fn what_means_nothing_is_counted_and_skipped() {
    let mut walk = Walk::streaming();
    let truncate = Truncate {
        cascade: false,
        restart_identity: false,
        relations: vec![OUTBOX],
    };
    let table = [
        (Message::Truncate(truncate), Ignored::Truncate),
        (
            Message::Unknown {
                tag: b'S',
                body: bytes::Bytes::new(),
            },
            Ignored::Unknown,
        ),
    ];
    for (message, kind) in table {
        let actions = walk.step(Input::Message(Lsn::new(101), message));
        assert!(actions.contains(&Action::Ignored(kind)), "{actions:?}");
    }
    let stray = Message::Relation(relation(8, "public", "outbox", &["id"]));
    walk.step(Input::Message(Lsn::ZERO, stray));
    walk.step(begin(110));
    let inserted = pgoutput::Insert {
        relation: 8,
        new: pgoutput::Tuple {
            cells: vec![Cell::Null],
        },
    };
    let actions = walk.step(Input::Message(Lsn::new(110), Message::Insert(inserted)));
    assert!(actions.contains(&Action::Ignored(Ignored::Stray)));
    walk.step(commit(110, 120));
    assert_eq!(
        walk.status_after(SECOND).unwrap().confirmed,
        Lsn::new(120),
        "what is skipped counts, C18"
    );
}
