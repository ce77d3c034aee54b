//! Logical decoding messages.

use crate::{Cursor, DecodeError, LogicalMessage};

pub(super) fn logical(cursor: &mut Cursor) -> Result<LogicalMessage, DecodeError> {
    let flags = cursor.u8("logical message flags")?;
    Ok(LogicalMessage {
        transactional: flags & 1 != 0,
        lsn: cursor.lsn("logical message position")?,
        prefix: cursor.c_string("logical message prefix")?,
        content: cursor.counted_bytes("logical message content")?,
    })
}
