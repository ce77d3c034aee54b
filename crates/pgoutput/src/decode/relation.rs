//! Relation, Type, Truncate: messages about tables rather than rows.

use crate::{Column, Cursor, DecodeError, Relation, ReplicaIdentity, Truncate, Type};

/// Flags, an empty name, type and modifier.
const SMALLEST_COLUMN: usize = 10;

pub(super) fn relation(cursor: &mut Cursor) -> Result<Relation, DecodeError> {
    let oid = cursor.u32("relation oid")?;
    let schema = cursor.c_string("relation schema")?;
    let name = cursor.c_string("relation name")?;
    let identity = match cursor.u8("relation replica identity")? {
        b'd' => ReplicaIdentity::Default,
        b'n' => ReplicaIdentity::Nothing,
        b'f' => ReplicaIdentity::Full,
        b'i' => ReplicaIdentity::Index,
        other => ReplicaIdentity::Other(other),
    };
    let count = cursor.count16("relation column count")?;
    let mut columns = Vec::with_capacity(count.min(cursor.remaining() / SMALLEST_COLUMN));
    for _ in 0..count {
        columns.push(column(cursor)?);
    }
    Ok(Relation {
        oid,
        schema,
        name,
        identity,
        columns,
    })
}

pub(super) fn type_name(cursor: &mut Cursor) -> Result<Type, DecodeError> {
    Ok(Type {
        oid: cursor.u32("type oid")?,
        schema: cursor.c_string("type schema")?,
        name: cursor.c_string("type name")?,
    })
}

pub(super) fn truncate(cursor: &mut Cursor) -> Result<Truncate, DecodeError> {
    let count = cursor.count32("truncate table count")?;
    let flags = cursor.u8("truncate flags")?;
    let mut relations = Vec::with_capacity(count.min(cursor.remaining() / 4));
    for _ in 0..count {
        relations.push(cursor.u32("truncate table oid")?);
    }
    Ok(Truncate {
        cascade: flags & 1 != 0,
        restart_identity: flags & 2 != 0,
        relations,
    })
}

fn column(cursor: &mut Cursor) -> Result<Column, DecodeError> {
    Ok(Column {
        key: cursor.u8("column flags")? & 1 != 0,
        name: cursor.c_string("column name")?,
        type_oid: cursor.u32("column type")?,
        type_modifier: cursor.i32("column type modifier")?,
    })
}
