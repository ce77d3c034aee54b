//! Arbitrary messages, as a server could send them.

use bytes::Bytes;
use pgoutput::{
    Begin, Cell, Column, Commit, CopyData, Delete, Insert, Keepalive, LogicalMessage, Lsn, Message,
    OldTuple, Origin, Relation, ReplicaIdentity, Truncate, Tuple, Type, Update, XLogData,
};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

pub(crate) fn message() -> impl Strategy<Value = Message> {
    prop_oneof![
        (lsn(), micros(), any::<u32>()).prop_map(|(final_lsn, commit_time, xid)| {
            Message::Begin(Begin {
                final_lsn,
                commit_time,
                xid,
            })
        }),
        (lsn(), lsn(), micros()).prop_map(|(commit_lsn, end_lsn, commit_time)| {
            Message::Commit(Commit {
                commit_lsn,
                end_lsn,
                commit_time,
            })
        }),
        (lsn(), name()).prop_map(|(commit_lsn, name)| Message::Origin(Origin { commit_lsn, name })),
        relation().prop_map(Message::Relation),
        (any::<u32>(), name(), name()).prop_map(|(oid, schema, name)| Message::Type(Type {
            oid,
            schema,
            name
        })),
        (any::<u32>(), tuple())
            .prop_map(|(relation, new)| Message::Insert(Insert { relation, new })),
        (any::<u32>(), option::of(old()), tuple())
            .prop_map(|(relation, old, new)| Message::Update(Update { relation, old, new })),
        (any::<u32>(), old()).prop_map(|(relation, old)| Message::Delete(Delete { relation, old })),
        (any::<bool>(), any::<bool>(), vec(any::<u32>(), 0..5)).prop_map(
            |(cascade, restart_identity, relations)| {
                Message::Truncate(Truncate {
                    cascade,
                    restart_identity,
                    relations,
                })
            }
        ),
        (any::<bool>(), lsn(), name(), bytes()).prop_map(
            |(transactional, lsn, prefix, content)| {
                Message::Logical(LogicalMessage {
                    transactional,
                    lsn,
                    prefix,
                    content,
                })
            }
        ),
        (unknown_tag(b"BCORYIUDTM"), bytes())
            .prop_map(|(tag, body)| Message::Unknown { tag, body }),
    ]
}

pub(crate) fn copy_data() -> impl Strategy<Value = CopyData> {
    prop_oneof![
        (lsn(), lsn(), micros(), bytes()).prop_map(|(start, end, sent_at, data)| {
            CopyData::XLog(XLogData {
                start,
                end,
                sent_at,
                data,
            })
        }),
        (lsn(), micros(), any::<bool>()).prop_map(|(end, sent_at, reply_requested)| {
            CopyData::Keepalive(Keepalive {
                end,
                sent_at,
                reply_requested,
            })
        }),
        (unknown_tag(b"wk"), bytes()).prop_map(|(tag, body)| CopyData::Unknown { tag, body }),
    ]
}

pub(crate) fn lsn() -> impl Strategy<Value = Lsn> {
    any::<u64>().prop_map(Lsn::new)
}

/// Times that both epochs can say.
pub(crate) fn micros() -> impl Strategy<Value = i64> {
    -1_000_000_000_000_000_000..1_000_000_000_000_000_000_i64
}

fn relation() -> impl Strategy<Value = Relation> {
    let column = (any::<bool>(), name(), any::<u32>(), any::<i32>()).prop_map(
        |(key, name, type_oid, type_modifier)| Column {
            key,
            name,
            type_oid,
            type_modifier,
        },
    );
    let identity = prop_oneof![
        Just(ReplicaIdentity::Default),
        Just(ReplicaIdentity::Nothing),
        Just(ReplicaIdentity::Full),
        Just(ReplicaIdentity::Index),
        Just(ReplicaIdentity::Other(b'?')),
    ];
    (any::<u32>(), name(), name(), identity, vec(column, 0..6)).prop_map(
        |(oid, schema, name, identity, columns)| Relation {
            oid,
            schema,
            name,
            identity,
            columns,
        },
    )
}

fn old() -> impl Strategy<Value = OldTuple> {
    prop_oneof![
        tuple().prop_map(OldTuple::Key),
        tuple().prop_map(OldTuple::Full)
    ]
}

fn tuple() -> impl Strategy<Value = Tuple> {
    let cell = prop_oneof![
        Just(Cell::Null),
        Just(Cell::Unchanged),
        bytes().prop_map(Cell::Text),
        bytes().prop_map(Cell::Binary),
    ];
    vec(cell, 0..8).prop_map(|cells| Tuple { cells })
}

fn bytes() -> impl Strategy<Value = Bytes> {
    vec(any::<u8>(), 0..40).prop_map(Bytes::from)
}

/// Anything without a zero byte, which ends strings on the wire.
fn name() -> impl Strategy<Value = String> {
    vec(
        any::<char>().prop_filter("ends strings", |letter| *letter != '\0'),
        0..12,
    )
    .prop_map(|letters| letters.into_iter().collect())
}

fn unknown_tag(known: &'static [u8]) -> impl Strategy<Value = u8> {
    any::<u8>().prop_filter("is known", move |tag| !known.contains(tag))
}
