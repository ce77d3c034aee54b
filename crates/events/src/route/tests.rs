//! Rows as the table holds them, and rows that it should never hold.

use bytes::Bytes;

use super::*;

const RELAY: Via = Via::Relay {
    commit_lsn: 0x1_0000_00AB,
    index: 3,
};

/// A row that owns its cells.
#[derive(Clone)]
struct Row {
    aggregate: &'static str,
    type_name: &'static str,
    created_at: &'static str,
    key: Option<Bytes>,
    payload: Option<Bytes>,
    traceparent: Option<Bytes>,
}

impl Row {
    fn as_row(&self) -> OutboxRow<'_> {
        OutboxRow {
            event: EventId(42),
            aggregate: self.aggregate,
            subject: "1001",
            type_name: self.type_name,
            created_at: self.created_at,
            key: self.key.as_ref(),
            payload: self.payload.as_ref(),
            traceparent: self.traceparent.as_ref(),
        }
    }
}

fn row() -> Row {
    Row {
        aggregate: "post",
        type_name: "tideline.post.created.v1",
        created_at: "2026-11-29 18:58:55.123456+00",
        key: Some(Bytes::from_static(b"9007")),
        payload: Some(Bytes::from_static(br#"{"post_id":"1001"}"#)),
        traceparent: None,
    }
}

fn changed(change: impl FnOnce(&mut Row)) -> Row {
    let mut row = row();
    change(&mut row);
    row
}

fn router(max_bytes: usize) -> Router {
    Router::new(
        &Namespace::new("t").unwrap(),
        "/tideline/db/outbox/4",
        |_| max_bytes,
    )
}

fn route(row: &Row) -> Routed {
    router(1_048_576).route(&row.as_row(), RELAY)
}

fn header<'a>(headers: &'a Headers, name: &str) -> Option<&'a str> {
    let (_, value) = headers.iter().find(|(each, _)| *each == name)?;
    std::str::from_utf8(value).ok()
}

fn letter(row: &Row) -> Letter {
    match route(row) {
        Routed::Letter(letter) => letter,
        Routed::Record(record) => panic!("{record:?} was to be a dead letter"),
    }
}

#[test]
fn a_row_becomes_a_record_with_the_whole_envelope() {
    let traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let Routed::Record(record) = route(&changed(|row| {
        row.traceparent = Some(Bytes::from_static(traceparent.as_bytes()))
    })) else {
        panic!("a letter")
    };
    assert_eq!(&*record.topic, "t.posts.v1");
    assert_eq!(record.key, "9007");
    assert_eq!(record.payload, r#"{"post_id":"1001"}"#);
    let expected = [
        (envelope::SPEC_VERSION, "1.0"),
        (envelope::ID, "42"),
        (envelope::SOURCE, "/tideline/db/outbox/4"),
        (envelope::TYPE, "tideline.post.created.v1"),
        (envelope::SUBJECT, "1001"),
        (envelope::CONTENT_TYPE, "application/json"),
        (envelope::PATH, "cdc"),
        (envelope::ATTEMPT, "1"),
        (envelope::TRACEPARENT, traceparent),
        (envelope::TIME, "2026-11-29T18:58:55.123456Z"),
        (envelope::SEQUENCE, "00000001000000ab-00000003"),
        (envelope::COMMIT_LSN, "1/AB"),
    ];
    assert_eq!(record.headers.len(), expected.len());
    for (name, value) in expected {
        assert_eq!(header(&record.headers, name), Some(value), "{name}");
    }
    let Routed::Record(record) = route(&row()) else {
        panic!("a letter")
    };
    assert_eq!(
        header(&record.headers, envelope::TRACEPARENT),
        None,
        "null is no header"
    );
}

#[test]
fn the_topic_follows_the_type() {
    let follow = changed(|row| {
        row.type_name = "tideline.follow.created.v1";
        row.aggregate = "follow";
    });
    let Routed::Record(record) = route(&follow) else {
        panic!("a letter")
    };
    assert_eq!(&*record.topic, "t.follows.v1");
}

/// C47: payloads are bytes.
#[test]
fn payloads_are_passed_through_unread() {
    for payload in [
        "",
        "not json",
        r#"{"a":"\ud800"}"#,
        "{\"emoji\":\"🌊\",\"rtl\":\"שלום\"}",
        "1e999999",
    ] {
        let Routed::Record(record) = route(&changed(|row| {
            row.payload = Some(Bytes::from_static(payload.as_bytes()))
        })) else {
            panic!("a letter")
        };
        assert_eq!(record.payload, payload);
    }
}

/// C45, C48: what can never be produced, with its reason and its topic.
#[test]
fn rows_that_can_never_be_produced() {
    let foreign = changed(|row| {
        row.type_name = "somebody.else.v1";
        row.aggregate = "follow";
    });
    let table = [
        (
            changed(|row| row.key = None),
            DeadReason::NoKey,
            "t.posts.v1.relay.dlq",
        ),
        (
            changed(|row| row.key = Some(Bytes::new())),
            DeadReason::NoKey,
            "t.posts.v1.relay.dlq",
        ),
        (
            changed(|row| row.payload = None),
            DeadReason::NoPayload,
            "t.posts.v1.relay.dlq",
        ),
        (
            changed(|row| row.created_at = "infinity"),
            DeadReason::BadTime,
            "t.posts.v1.relay.dlq",
        ),
        (
            changed(|row| row.aggregate = "follow"),
            DeadReason::WrongAggregate,
            "t.posts.v1.relay.dlq",
        ),
        (foreign, DeadReason::UnknownType, "t.follows.v1.relay.dlq"),
        (
            changed(|row| row.type_name = "tideline.post.created.v9"),
            DeadReason::UnknownType,
            "t.posts.v1.relay.dlq",
        ),
    ];
    for (row, reason, topic) in table {
        let letter = letter(&row);
        assert_eq!((letter.reason, &*letter.topic), (reason, topic));
        assert_eq!(header(&letter.headers, DLQ_REASON), Some(reason.as_str()));
        assert_eq!(header(&letter.headers, envelope::ID), Some("42"));
        assert_eq!(
            letter.payload.is_some(),
            reason != DeadReason::NoPayload,
            "a letter is whole where it can be"
        );
    }
    let both = changed(|row| {
        row.type_name = "somebody.else.v1";
        row.aggregate = "unheard of";
    });
    assert_eq!(&*letter(&both).topic, "t.posts.v1.relay.dlq");
}

/// C46: the limit is that of the whole batch, key and headers included, to the byte.
#[test]
fn the_limit_holds_to_the_byte() {
    let payload =
        |length: usize| changed(|row| row.payload = Some(Bytes::from(vec![b'1'; length])));
    let sized = |length: usize| {
        let Routed::Record(record) = route(&payload(length)) else {
            panic!("a letter")
        };
        record.bytes()
    };
    let limit = sized(100_000);
    for (length, fits) in [(99_999, true), (100_000, true), (100_001, false)] {
        match router(limit).route(&payload(length).as_row(), RELAY) {
            Routed::Record(_) => assert!(fits, "{length}"),
            Routed::Letter(letter) => {
                assert!(!fits, "{length}");
                assert_eq!(letter.reason, DeadReason::Oversize);
                assert_eq!(letter.payload, None, "its payload stays in the outbox");
                assert_eq!(letter.key.as_deref(), Some(&b"9007"[..]));
                assert_eq!(
                    header(&letter.headers, DLQ_SIZE),
                    Some((limit + 1).to_string().as_str())
                );
            }
        }
    }
}

/// D-5: a record of the sweep says so, and claims no place in the order of commits.
#[test]
fn d_5_records_of_the_sweep_differ_only_in_their_path() {
    let Routed::Record(relayed) = route(&row()) else {
        panic!("a letter")
    };
    let via = Via::Sweep { attempt: 3 };
    let Routed::Record(swept) = router(1_048_576).route(&row().as_row(), via) else {
        panic!("a letter")
    };
    assert_eq!(header(&swept.headers, envelope::PATH), Some("sweep"));
    assert_eq!(header(&swept.headers, envelope::ATTEMPT), Some("3"));
    assert_eq!(header(&swept.headers, envelope::SEQUENCE), None);
    assert_eq!(header(&swept.headers, envelope::COMMIT_LSN), None);
    for (name, value) in &swept.headers {
        if ![envelope::PATH, envelope::ATTEMPT].contains(name) {
            assert!(relayed.headers.contains(&(*name, value.clone())), "{name}");
        }
    }
    assert_eq!(
        (&swept.topic, &swept.key, &swept.payload),
        (&relayed.topic, &relayed.key, &relayed.payload)
    );
}

#[test]
fn a_letter_names_the_step_that_gave_up() {
    let router = router(1_048_576);
    let nameless = changed(|row| row.key = None);
    for (via, step, attempts) in [
        (RELAY, "relay", "1"),
        (Via::Sweep { attempt: 2 }, "sweep", "2"),
    ] {
        let Routed::Letter(letter) = router.route(&nameless.as_row(), via) else {
            panic!("a record")
        };
        let Routed::Record(record) = router.route(&row().as_row(), via) else {
            panic!("a letter")
        };
        for letter in [letter, router.refused(&record.summary)] {
            assert_eq!(header(&letter.headers, DLQ_STEP), Some(step));
            assert_eq!(header(&letter.headers, DLQ_ATTEMPTS), Some(attempts));
        }
    }
}

#[test]
fn a_new_epoch_is_in_the_next_source() {
    let mut router = router(1_048_576);
    router.set_source("/tideline/db/outbox/5");
    let Routed::Record(record) = router.route(&row().as_row(), RELAY) else {
        panic!("a letter")
    };
    assert_eq!(
        header(&record.headers, envelope::SOURCE),
        Some("/tideline/db/outbox/5")
    );
}
