//! Wire frames: a tag, a length and a body. Pure: bytes go in at one end, whole
//! frames come out at the other, and how the bytes were cut up on their way
//! makes no difference.
//!
//! The announced length is checked against the limit as soon as it is known,
//! before its bytes are stored, so a broken or hostile peer cannot make the
//! buffer grow. After an error the stream has lost its frames for good.

use bytes::{Buf, Bytes, BytesMut};

/// Tag and length.
const HEADER: usize = 5;

/// The length field counts itself.
const LENGTH_FIELD: usize = 4;

/// Room for one read: large enough that the server's small rows cost few
/// system calls.
const READ_ROOM: usize = 64 * 1024;

/// How much of an announced frame is reserved at once: the rest grows with the
/// bytes that really arrive.
const RESERVE_AT_MOST: usize = 1024 * 1024;

/// One frame of the wire protocol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Frame {
    /// What kind of message it is.
    pub(crate) tag: u8,
    /// The bytes behind the length; shares the buffer's memory.
    pub(crate) body: Bytes,
}

/// A stream that is not made of frames we accept.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// The announced length is less than the length field itself.
    #[error("frame with tag {tag:#04x} announces the impossible length {length}")]
    BadLength {
        /// The frame's tag.
        tag: u8,
        /// The announced length.
        length: i32,
    },
    /// The announced length is over the configured limit.
    #[error("frame with tag {tag:#04x} announces {length} bytes, the limit is {limit}")]
    TooLarge {
        /// The frame's tag.
        tag: u8,
        /// The announced length of its body.
        length: usize,
        /// The limit.
        limit: usize,
    },
}

/// Bytes that arrived and are not cut into frames yet.
#[derive(Debug)]
pub(crate) struct FrameBuffer {
    bytes: BytesMut,
    limit: usize,
}

impl FrameBuffer {
    /// An empty buffer that takes bodies of up to `limit` bytes.
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            bytes: BytesMut::new(),
            limit,
        }
    }

    /// Cuts the next whole frame off, or answers nothing when more bytes are
    /// needed. Takes nothing away in that case.
    pub(crate) fn next_frame(&mut self) -> Result<Option<Frame>, FrameError> {
        let Some((tag, length)) = self.header()? else {
            return Ok(None);
        };
        if self.bytes.len() < HEADER + length {
            return Ok(None);
        }
        self.bytes.advance(HEADER);
        Ok(Some(Frame {
            tag,
            body: self.bytes.split_to(length).freeze(),
        }))
    }

    /// Where the next read appends, with room reserved.
    pub(crate) fn room(&mut self) -> &mut BytesMut {
        let announced = match self.header() {
            Ok(Some((_, length))) => (HEADER + length).saturating_sub(self.bytes.len()),
            // Too few bytes for a length; a wrong one is refused before this.
            Ok(None) | Err(_) => 0,
        };
        let spare = self.bytes.capacity() - self.bytes.len();
        if spare < announced.clamp(READ_ROOM / 8, READ_ROOM) {
            self.bytes
                .reserve(announced.clamp(READ_ROOM, RESERVE_AT_MOST));
        }
        &mut self.bytes
    }

    /// Whether no byte waits here: the stream may end at this point.
    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    fn header(&self) -> Result<Option<(u8, usize)>, FrameError> {
        let Some([tag, length @ ..]) = self.bytes.first_chunk::<HEADER>() else {
            return Ok(None);
        };
        let (tag, length) = (*tag, i32::from_be_bytes(*length));
        let body = usize::try_from(length)
            .ok()
            .and_then(|all| all.checked_sub(LENGTH_FIELD));
        match body {
            None => Err(FrameError::BadLength { tag, length }),
            Some(length) if length > self.limit => Err(FrameError::TooLarge {
                tag,
                length,
                limit: self.limit,
            }),
            Some(length) => Ok(Some((tag, length))),
        }
    }
}

#[cfg(test)]
mod tests;
