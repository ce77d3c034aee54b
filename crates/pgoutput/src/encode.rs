//! The other direction: messages to bytes, for round trips and for fake
//! servers in tests (feature `encode`).
//!
//! Writes what a server writes, so `decode(encode(x)) == x` for everything
//! that fits the wire; what does not fit is an error, never cut short.

use bytes::{BufMut, Bytes, BytesMut};

use crate::copy_data::PG_EPOCH_MICROS;
use crate::{
    Cell, CopyData, Cursor, DecodeError, LogicalMessage, Message, OldTuple, Relation,
    ReplicaIdentity, StandbyStatus, Tuple,
};

/// A message that the wire cannot carry.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    /// More elements or bytes than the count field can say.
    #[error("{field} is too large for the wire")]
    TooLarge {
        /// The field.
        field: &'static str,
    },
    /// A zero-terminated string with a zero byte inside.
    #[error("{field} contains a zero byte")]
    ZeroByte {
        /// The field.
        field: &'static str,
    },
}

impl CopyData {
    /// Appends the payload, as a server would send it.
    pub fn encode(&self, out: &mut BytesMut) {
        match self {
            Self::XLog(data) => {
                out.put_u8(b'w');
                out.put_u64(data.start.as_u64());
                out.put_u64(data.end.as_u64());
                put_micros(data.sent_at, out);
                out.put_slice(&data.data);
            }
            Self::Keepalive(keepalive) => {
                out.put_u8(b'k');
                out.put_u64(keepalive.end.as_u64());
                put_micros(keepalive.sent_at, out);
                out.put_u8(u8::from(keepalive.reply_requested));
            }
            Self::Unknown { tag, body } => {
                out.put_u8(*tag);
                out.put_slice(body);
            }
        }
    }
}

impl StandbyStatus {
    /// Reads a status as a server does.
    ///
    /// # Errors
    /// When the payload is no complete standby status.
    pub fn decode(payload: Bytes) -> Result<Self, DecodeError> {
        let mut cursor = Cursor::new(payload);
        let tag = cursor.u8("status tag")?;
        if tag != b'r' {
            return Err(crate::cursor::invalid("status tag", 0, tag.into()));
        }
        Ok(Self {
            written: cursor.lsn("written position")?,
            flushed: cursor.lsn("flushed position")?,
            applied: cursor.lsn("applied position")?,
            sent_at: cursor.micros("status time")?,
            reply_requested: cursor.u8("status reply flag")? != 0,
        })
    }
}

impl Message {
    /// Appends the message, as a server would send it.
    ///
    /// # Errors
    /// When a string holds a zero byte or something is too long. What was
    /// appended until then must not be sent.
    pub fn encode(&self, out: &mut BytesMut) -> Result<(), EncodeError> {
        match self {
            Self::Begin(begin) => {
                out.put_u8(b'B');
                out.put_u64(begin.final_lsn.as_u64());
                put_micros(begin.commit_time, out);
                out.put_u32(begin.xid);
            }
            Self::Commit(commit) => {
                out.put_slice(b"C\0");
                out.put_u64(commit.commit_lsn.as_u64());
                out.put_u64(commit.end_lsn.as_u64());
                put_micros(commit.commit_time, out);
            }
            Self::Origin(origin) => {
                out.put_u8(b'O');
                out.put_u64(origin.commit_lsn.as_u64());
                put_string("origin name", &origin.name, out)?;
            }
            Self::Relation(relation) => put_relation(relation, out)?,
            Self::Type(each) => {
                out.put_u8(b'Y');
                out.put_u32(each.oid);
                put_string("type schema", &each.schema, out)?;
                put_string("type name", &each.name, out)?;
            }
            Self::Insert(insert) => {
                out.put_u8(b'I');
                out.put_u32(insert.relation);
                put_tuple(b'N', &insert.new, out)?;
            }
            Self::Update(update) => {
                out.put_u8(b'U');
                out.put_u32(update.relation);
                if let Some(old) = &update.old {
                    put_old(old, out)?;
                }
                put_tuple(b'N', &update.new, out)?;
            }
            Self::Delete(delete) => {
                out.put_u8(b'D');
                out.put_u32(delete.relation);
                put_old(&delete.old, out)?;
            }
            Self::Truncate(truncate) => {
                out.put_u8(b'T');
                put_count32("truncated tables", truncate.relations.len(), out)?;
                let cascade = u8::from(truncate.cascade);
                out.put_u8(cascade | u8::from(truncate.restart_identity) << 1);
                truncate.relations.iter().for_each(|oid| out.put_u32(*oid));
            }
            Self::Logical(message) => put_logical(message, out)?,
            Self::Unknown { tag, body } => {
                out.put_u8(*tag);
                out.put_slice(body);
            }
        }
        Ok(())
    }
}

fn put_relation(relation: &Relation, out: &mut BytesMut) -> Result<(), EncodeError> {
    out.put_u8(b'R');
    out.put_u32(relation.oid);
    put_string("relation schema", &relation.schema, out)?;
    put_string("relation name", &relation.name, out)?;
    out.put_u8(match relation.identity {
        ReplicaIdentity::Default => b'd',
        ReplicaIdentity::Nothing => b'n',
        ReplicaIdentity::Full => b'f',
        ReplicaIdentity::Index => b'i',
        ReplicaIdentity::Other(letter) => letter,
    });
    put_count16("relation columns", relation.columns.len(), out)?;
    for column in &relation.columns {
        out.put_u8(u8::from(column.key));
        put_string("column name", &column.name, out)?;
        out.put_u32(column.type_oid);
        out.put_i32(column.type_modifier);
    }
    Ok(())
}

fn put_logical(message: &LogicalMessage, out: &mut BytesMut) -> Result<(), EncodeError> {
    out.put_u8(b'M');
    out.put_u8(u8::from(message.transactional));
    out.put_u64(message.lsn.as_u64());
    put_string("logical message prefix", &message.prefix, out)?;
    put_count32("logical message content", message.content.len(), out)?;
    out.put_slice(&message.content);
    Ok(())
}

fn put_old(old: &OldTuple, out: &mut BytesMut) -> Result<(), EncodeError> {
    match old {
        OldTuple::Key(tuple) => put_tuple(b'K', tuple, out),
        OldTuple::Full(tuple) => put_tuple(b'O', tuple, out),
    }
}

fn put_tuple(kind: u8, tuple: &Tuple, out: &mut BytesMut) -> Result<(), EncodeError> {
    out.put_u8(kind);
    put_count16("tuple columns", tuple.cells.len(), out)?;
    for cell in &tuple.cells {
        let (kind, value) = match cell {
            Cell::Null => (b'n', None),
            Cell::Unchanged => (b'u', None),
            Cell::Text(value) => (b't', Some(value)),
            Cell::Binary(value) => (b'b', Some(value)),
        };
        out.put_u8(kind);
        if let Some(value) = value {
            put_count32("cell", value.len(), out)?;
            out.put_slice(value);
        }
    }
    Ok(())
}

fn put_micros(unix_micros: i64, out: &mut BytesMut) {
    out.put_i64(unix_micros.saturating_sub(PG_EPOCH_MICROS));
}

fn put_string(field: &'static str, text: &str, out: &mut BytesMut) -> Result<(), EncodeError> {
    if text.contains('\0') {
        return Err(EncodeError::ZeroByte { field });
    }
    out.put_slice(text.as_bytes());
    out.put_u8(0);
    Ok(())
}

fn put_count16(field: &'static str, count: usize, out: &mut BytesMut) -> Result<(), EncodeError> {
    out.put_i16(i16::try_from(count).map_err(|_| EncodeError::TooLarge { field })?);
    Ok(())
}

fn put_count32(field: &'static str, count: usize, out: &mut BytesMut) -> Result<(), EncodeError> {
    out.put_i32(i32::try_from(count).map_err(|_| EncodeError::TooLarge { field })?);
    Ok(())
}
