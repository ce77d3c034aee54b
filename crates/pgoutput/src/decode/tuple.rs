//! Insert, Update, Delete and the tuples in them.

use crate::cursor::invalid;
use crate::{Cell, Cursor, DecodeError, Delete, Insert, OldTuple, Tuple, Update};

pub(super) fn insert(cursor: &mut Cursor) -> Result<Insert, DecodeError> {
    let relation = cursor.u32("insert table oid")?;
    marker(cursor, "insert tuple kind", b'N')?;
    Ok(Insert {
        relation,
        new: tuple(cursor)?,
    })
}

pub(super) fn update(cursor: &mut Cursor) -> Result<Update, DecodeError> {
    let relation = cursor.u32("update table oid")?;
    let offset = cursor.offset();
    let old = match cursor.u8("update tuple kind")? {
        b'N' => {
            return Ok(Update {
                relation,
                old: None,
                new: tuple(cursor)?,
            });
        }
        b'K' => OldTuple::Key(tuple(cursor)?),
        b'O' => OldTuple::Full(tuple(cursor)?),
        other => return Err(invalid("update tuple kind", offset, other.into())),
    };
    marker(cursor, "update new tuple kind", b'N')?;
    Ok(Update {
        relation,
        old: Some(old),
        new: tuple(cursor)?,
    })
}

pub(super) fn delete(cursor: &mut Cursor) -> Result<Delete, DecodeError> {
    let relation = cursor.u32("delete table oid")?;
    let offset = cursor.offset();
    let old = match cursor.u8("delete tuple kind")? {
        b'K' => OldTuple::Key(tuple(cursor)?),
        b'O' => OldTuple::Full(tuple(cursor)?),
        other => return Err(invalid("delete tuple kind", offset, other.into())),
    };
    Ok(Delete { relation, old })
}

fn marker(cursor: &mut Cursor, field: &'static str, expected: u8) -> Result<(), DecodeError> {
    let offset = cursor.offset();
    let found = cursor.u8(field)?;
    if found == expected {
        Ok(())
    } else {
        Err(invalid(field, offset, found.into()))
    }
}

fn tuple(cursor: &mut Cursor) -> Result<Tuple, DecodeError> {
    let count = cursor.count16("tuple column count")?;
    // A cell takes one byte at least.
    let mut cells = Vec::with_capacity(count.min(cursor.remaining()));
    for _ in 0..count {
        cells.push(cell(cursor)?);
    }
    Ok(Tuple { cells })
}

fn cell(cursor: &mut Cursor) -> Result<Cell, DecodeError> {
    let offset = cursor.offset();
    match cursor.u8("cell kind")? {
        b'n' => Ok(Cell::Null),
        b'u' => Ok(Cell::Unchanged),
        b't' => Ok(Cell::Text(cursor.counted_bytes("text cell")?)),
        b'b' => Ok(Cell::Binary(cursor.counted_bytes("binary cell")?)),
        // Without its length an unknown kind cannot be skipped.
        other => Err(invalid("cell kind", offset, other.into())),
    }
}
