//! A stream as text, one line per payload, for people who review it.

use std::fmt::Write;

use bytes::Bytes;
use pgoutput::{Cell, Column, CopyData, Message, OldTuple, Relation, Tuple};

pub(crate) fn stream(payloads: &[Bytes]) -> String {
    let mut out = String::new();
    for payload in payloads {
        let line = match CopyData::decode(payload.clone()).unwrap() {
            CopyData::XLog(data) => {
                let message = message(&Message::decode(data.data).unwrap());
                format!("{:<10} {message}", data.start.to_string())
            }
            CopyData::Keepalive(keepalive) => format!(
                "{:<10} keepalive sent_at={} reply_requested={}",
                keepalive.end.to_string(),
                keepalive.sent_at,
                keepalive.reply_requested
            ),
            CopyData::Unknown { tag, body } => format!("unknown {tag:#04x} {body:?}"),
        };
        writeln!(out, "{line}").unwrap();
    }
    out
}

fn message(message: &Message) -> String {
    match message {
        Message::Begin(begin) => {
            format!(
                "begin final={} time={} xid={}",
                begin.final_lsn, begin.commit_time, begin.xid
            )
        }
        Message::Commit(commit) => format!(
            "commit at={} end={} time={}",
            commit.commit_lsn, commit.end_lsn, commit.commit_time
        ),
        Message::Origin(origin) => format!("origin {:?} commit={}", origin.name, origin.commit_lsn),
        Message::Relation(each) => relation(each),
        Message::Type(each) => format!("type {} {}.{}", each.oid, each.schema, each.name),
        Message::Insert(insert) => format!("insert {} {}", insert.relation, tuple(&insert.new)),
        Message::Update(update) => {
            let old = update.old.as_ref().map(old).unwrap_or_default();
            format!("update {} {old}{}", update.relation, tuple(&update.new))
        }
        Message::Delete(delete) => format!("delete {} {}", delete.relation, old(&delete.old)),
        Message::Truncate(truncate) => format!(
            "truncate {:?} cascade={} restart_identity={}",
            truncate.relations, truncate.cascade, truncate.restart_identity
        ),
        Message::Logical(logical) => format!(
            "message {:?} transactional={} at={} {:?}",
            logical.prefix, logical.transactional, logical.lsn, logical.content
        ),
        Message::Unknown { tag, body } => format!("unknown {tag:#04x} {body:?}"),
    }
}

fn relation(relation: &Relation) -> String {
    let mut line = format!(
        "relation {} {}.{} identity={:?}",
        relation.oid, relation.schema, relation.name, relation.identity
    );
    for column in &relation.columns {
        let key = if column.key { " key" } else { "" };
        let Column {
            name,
            type_oid,
            type_modifier,
            ..
        } = column;
        write!(line, " [{name} type={type_oid} mod={type_modifier}{key}]").unwrap();
    }
    line
}

fn old(old: &OldTuple) -> String {
    match old {
        OldTuple::Key(key) => format!("key={} ", tuple(key)),
        OldTuple::Full(row) => format!("old={} ", tuple(row)),
    }
}

fn tuple(tuple: &Tuple) -> String {
    let cells: Vec<_> = tuple.cells.iter().map(cell).collect();
    format!("({})", cells.join(", "))
}

fn cell(cell: &Cell) -> String {
    match cell {
        Cell::Null => "null".to_owned(),
        Cell::Unchanged => "unchanged".to_owned(),
        Cell::Text(text) => format!("{:?}", std::str::from_utf8(text).unwrap()),
        Cell::Binary(bytes) => format!("binary {bytes:?}"),
    }
}
