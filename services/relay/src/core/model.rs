//! What the tests of the core share: messages as a server sends them.

use bytes::Bytes;
use events::Namespace;
use pgoutput::{
    Begin, Cell, Column, Commit, Insert, Lsn, Message, Oid, Relation, ReplicaIdentity, Tuple,
};

use crate::core::{Epoch, Input, Router};

pub(super) const OUTBOX: Oid = 7;

pub(super) const COLUMNS: [&str; 8] = [
    "id",
    "aggregatetype",
    "aggregateid",
    "partition_key",
    "type",
    "payload",
    "traceparent",
    "created_at",
];

pub(super) fn router() -> Router {
    let namespace = Namespace::new("t").unwrap();
    Router::new(&namespace, "/tideline/db/outbox/1", |_| 1_048_576)
}

pub(super) fn epoch(number: i64) -> Epoch {
    Epoch {
        number,
        source: events::envelope::source("db", number),
    }
}

pub(super) fn relation(oid: Oid, schema: &str, name: &str, columns: &[&str]) -> Relation {
    let column = |name: &&str| Column {
        key: false,
        name: (*name).to_owned(),
        type_oid: 25,
        type_modifier: -1,
    };
    Relation {
        oid,
        schema: schema.to_owned(),
        name: name.to_owned(),
        identity: ReplicaIdentity::Default,
        columns: columns.iter().map(column).collect(),
    }
}

pub(super) fn outbox() -> Input {
    Input::Message(
        Lsn::ZERO,
        Message::Relation(relation(OUTBOX, "tideline", "outbox", &COLUMNS)),
    )
}

pub(super) fn cell(text: &str) -> Cell {
    Cell::Text(Bytes::copy_from_slice(text.as_bytes()))
}

pub(super) fn row(id: i64, key: &str) -> Tuple {
    let cells = [
        cell(&id.to_string()),
        cell("post"),
        cell("1001"),
        cell(key),
        cell("tideline.post.created.v1"),
        cell(r#"{"post_id":"1001"}"#),
        Cell::Null,
        cell("2026-11-29 18:58:55.123456+00"),
    ];
    Tuple {
        cells: cells.into(),
    }
}

pub(super) fn begin(final_lsn: u64) -> Input {
    let begin = Begin {
        final_lsn: Lsn::new(final_lsn),
        commit_time: 0,
        xid: 1,
    };
    Input::Message(Lsn::new(final_lsn), Message::Begin(begin))
}

pub(super) fn insert(at: u64, new: Tuple) -> Input {
    Input::Message(
        Lsn::new(at),
        Message::Insert(Insert {
            relation: OUTBOX,
            new,
        }),
    )
}

pub(super) fn commit(final_lsn: u64, end_lsn: u64) -> Input {
    let commit = Commit {
        commit_lsn: Lsn::new(final_lsn),
        end_lsn: Lsn::new(end_lsn),
        commit_time: 0,
    };
    Input::Message(Lsn::new(end_lsn), Message::Commit(commit))
}

pub(super) fn keepalive(end: u64) -> Input {
    Input::Keepalive {
        end: Lsn::new(end),
        reply_requested: false,
    }
}
