//! The payloads of CopyData frames in both directions (manual, chapter
//! "Streaming Replication Protocol").
//!
//! One CopyData frame holds exactly one payload, so there is no partial input
//! here: bytes that end too early are wrong.

use bytes::{BufMut, Bytes, BytesMut};

use crate::{Cursor, DecodeError, Lsn};

/// 2000-01-01, the epoch of Postgres, in microseconds of the Unix epoch.
pub const PG_EPOCH_MICROS: i64 = 946_684_800_000_000;

/// One payload from the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CopyData {
    /// Output of the plugin.
    XLog(XLogData),
    /// A sign of life, with the server's position.
    Keepalive(Keepalive),
    /// Something a later server may send: count it and go on.
    Unknown {
        /// The first byte of the payload.
        tag: u8,
        /// The bytes behind it.
        body: Bytes,
    },
}

impl CopyData {
    /// Reads one payload. `data` of [`XLogData`] shares its memory.
    ///
    /// # Errors
    /// When the payload is too short for its tag.
    pub fn decode(payload: Bytes) -> Result<Self, DecodeError> {
        let mut cursor = Cursor::new(payload);
        match cursor.u8("copy data tag")? {
            b'w' => Ok(Self::XLog(XLogData {
                start: cursor.lsn("start position")?,
                end: cursor.lsn("end position")?,
                sent_at: cursor.micros("send time")?,
                data: cursor.rest(),
            })),
            b'k' => Ok(Self::Keepalive(Keepalive {
                end: cursor.lsn("keepalive position")?,
                sent_at: cursor.micros("keepalive time")?,
                reply_requested: cursor.u8("keepalive reply flag")? != 0,
            })),
            tag => Ok(Self::Unknown {
                tag,
                body: cursor.rest(),
            }),
        }
    }
}

/// Output of the plugin with its place in the log.
///
/// The positions of rows are no resume points: all rows of one COPY carry the
/// same one, and Relation messages carry `0/0`. Only the end of a commit and,
/// with nothing outstanding, the position of a keepalive may be confirmed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct XLogData {
    /// Where the data starts in the log.
    pub start: Lsn,
    /// The server's position when it sent this; logical slots repeat `start`.
    pub end: Lsn,
    /// The server's clock when it sent this, Unix microseconds.
    pub sent_at: i64,
    /// One message of the plugin: input of [`crate::Message::decode`].
    pub data: Bytes,
}

/// A sign of life from the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keepalive {
    /// How far the server has read its log for this slot.
    pub end: Lsn,
    /// The server's clock when it sent this, Unix microseconds.
    pub sent_at: i64,
    /// Whether the server will close the connection without a status soon.
    pub reply_requested: bool,
}

/// What the client tells the server about its progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StandbyStatus {
    /// Everything up to here was received.
    pub written: Lsn,
    /// Everything up to here is safe with the client: the only field that
    /// moves the slot and lets the server forget log.
    pub flushed: Lsn,
    /// Everything up to here is visible at the client.
    pub applied: Lsn,
    /// The client's clock, Unix microseconds.
    pub sent_at: i64,
    /// Asks the server for a keepalive at once.
    pub reply_requested: bool,
}

impl StandbyStatus {
    /// Appends the payload (34 bytes, without the frame's header).
    pub fn encode(&self, out: &mut BytesMut) {
        out.reserve(34);
        out.put_u8(b'r');
        out.put_u64(self.written.as_u64());
        out.put_u64(self.flushed.as_u64());
        out.put_u64(self.applied.as_u64());
        out.put_i64(self.sent_at.saturating_sub(PG_EPOCH_MICROS));
        out.put_u8(u8::from(self.reply_requested));
    }
}
