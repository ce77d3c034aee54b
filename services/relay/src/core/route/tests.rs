//! Rows as the table holds them, and rows that it should never hold.

use bytes::Bytes;
use pgoutput::{Cell, Lsn, Tuple};

use super::*;
use crate::core::model::{COLUMNS, cell, relation, row};

const PLACE: Place = Place {
    lsn: Lsn::new(0x1_0000_00AB),
    index: 3,
};

fn router(max_bytes: usize) -> Router {
    Router::new(
        &Namespace::new("t").unwrap(),
        "/tideline/db/outbox/4",
        |_| max_bytes,
    )
}

fn columns() -> Columns {
    Columns::find(&relation(7, "tideline", "outbox", &COLUMNS)).unwrap()
}

fn with(column: &str, cell: Cell) -> Tuple {
    let mut row = row(42, "9007");
    row.cells[COLUMNS.iter().position(|name| *name == column).unwrap()] = cell;
    row
}

fn route(row: &Tuple) -> Routed {
    router(1_048_576).route(&columns(), row, PLACE).unwrap()
}

fn header<'a>(headers: &'a Headers, name: &str) -> Option<&'a str> {
    let (_, value) = headers.iter().find(|(each, _)| *each == name)?;
    std::str::from_utf8(value).ok()
}

fn letter(row: &Tuple) -> Letter {
    match route(row) {
        Routed::Letter(letter) => letter,
        Routed::Record(record) => panic!("{record:?} was to be a dead letter"),
    }
}

#[test]
fn a_row_becomes_a_record_with_the_whole_envelope() {
    let traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let Routed::Record(record) = route(&with("traceparent", cell(traceparent))) else {
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
    let Routed::Record(record) = route(&row(42, "9007")) else {
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
    let mut follow = with("type", cell("tideline.follow.created.v1"));
    follow.cells[1] = cell("follow");
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
        let Routed::Record(record) = route(&with("payload", cell(payload))) else {
            panic!("a letter")
        };
        assert_eq!(record.payload, payload);
    }
}

/// C45, C48: what can never be produced, with its reason and its topic.
#[test]
fn rows_that_can_never_be_produced() {
    let mut foreign = with("type", cell("somebody.else.v1"));
    foreign.cells[1] = cell("follow");
    let table = [
        (
            with("partition_key", Cell::Null),
            DeadReason::NoKey,
            "t.posts.v1.relay.dlq",
        ),
        (
            with("partition_key", cell("")),
            DeadReason::NoKey,
            "t.posts.v1.relay.dlq",
        ),
        (
            with("payload", Cell::Null),
            DeadReason::NoPayload,
            "t.posts.v1.relay.dlq",
        ),
        (
            with("created_at", cell("infinity")),
            DeadReason::BadTime,
            "t.posts.v1.relay.dlq",
        ),
        (
            with("aggregatetype", cell("follow")),
            DeadReason::WrongAggregate,
            "t.posts.v1.relay.dlq",
        ),
        (foreign, DeadReason::UnknownType, "t.follows.v1.relay.dlq"),
        (
            with("type", cell("tideline.post.created.v9")),
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
    let mut both = with("type", cell("somebody.else.v1"));
    both.cells[1] = cell("unheard of");
    assert_eq!(&*letter(&both).topic, "t.posts.v1.relay.dlq");
}

/// C46: the limit is that of the whole batch, key and headers included, to the byte.
#[test]
fn the_limit_holds_to_the_byte() {
    let payload = |length: usize| with("payload", Cell::Text(Bytes::from(vec![b'1'; length])));
    let sized = |length: usize| {
        let Routed::Record(record) = route(&payload(length)) else {
            panic!("a letter")
        };
        record.bytes()
    };
    let limit = sized(100_000);
    for (length, fits) in [(99_999, true), (100_000, true), (100_001, false)] {
        match router(limit)
            .route(&columns(), &payload(length), PLACE)
            .unwrap()
        {
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

#[test]
fn columns_are_found_by_name() {
    let mut names = COLUMNS.to_vec();
    names.reverse();
    names.insert(2, "something_new");
    let columns = Columns::find(&relation(7, "tideline", "outbox", &names)).unwrap();
    let mut cells = row(42, "9007").cells;
    cells.reverse();
    cells.insert(2, cell("ignored"));
    let routed = router(1_048_576)
        .route(&columns, &Tuple { cells }, PLACE)
        .unwrap();
    assert_eq!(routed, route(&row(42, "9007")));
    for missing in COLUMNS {
        let names: Vec<_> = COLUMNS
            .into_iter()
            .filter(|name| *name != missing)
            .collect();
        let found = Columns::find(&relation(7, "tideline", "outbox", &names));
        match missing {
            "traceparent" => assert!(found.is_ok(), "optional"),
            _ => assert_eq!(found.unwrap_err().column, missing),
        }
    }
}

#[test]
fn a_cell_of_another_type_is_a_schema_error() {
    let error = router(1_048_576)
        .route(&columns(), &with("id", cell("abc")), PLACE)
        .unwrap_err();
    assert!(error.to_string().contains("id"), "{error}");
}
