//! Begin, Commit, Origin.

use crate::{Begin, Commit, Cursor, DecodeError, Origin};

pub(super) fn begin(cursor: &mut Cursor) -> Result<Begin, DecodeError> {
    Ok(Begin {
        final_lsn: cursor.lsn("begin final position")?,
        commit_time: cursor.micros("begin commit time")?,
        xid: cursor.u32("begin transaction id")?,
    })
}

pub(super) fn commit(cursor: &mut Cursor) -> Result<Commit, DecodeError> {
    // No flag is defined; one that a later server sets must not stop the relay.
    cursor.u8("commit flags")?;
    Ok(Commit {
        commit_lsn: cursor.lsn("commit position")?,
        end_lsn: cursor.lsn("commit end position")?,
        commit_time: cursor.micros("commit time")?,
    })
}

pub(super) fn origin(cursor: &mut Cursor) -> Result<Origin, DecodeError> {
    Ok(Origin {
        commit_lsn: cursor.lsn("origin commit position")?,
        name: cursor.c_string("origin name")?,
    })
}
