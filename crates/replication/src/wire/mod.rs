//! Frames over a socket, one type per direction. Knows bytes and frames, no
//! message.

use std::io;

use bytes::{Buf, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::frame::{Frame, FrameBuffer};
use crate::{ReplicationError, Step};

/// The incoming direction.
#[derive(Debug)]
pub(crate) struct FrameReader<R> {
    socket: R,
    frames: FrameBuffer,
}

impl<R: AsyncRead + Unpin> FrameReader<R> {
    /// Reads frames with bodies of up to `limit` bytes.
    pub(crate) fn new(socket: R, limit: usize) -> Self {
        Self {
            socket,
            frames: FrameBuffer::new(limit),
        }
    }

    /// The next frame, or nothing when the peer closed between two frames.
    ///
    /// # Cancel safety
    /// Cancel-safe: a read either appends to the buffer or did not happen, and
    /// a frame leaves the buffer only as the return value.
    pub(crate) async fn next(&mut self, step: Step) -> Result<Option<Frame>, ReplicationError> {
        loop {
            if let Some(frame) = self.frames.next_frame()? {
                return Ok(Some(frame));
            }
            let read = self.socket.read_buf(self.frames.room()).await;
            match read {
                Ok(0) if self.frames.is_empty() => return Ok(None),
                Ok(0) => return Err(ReplicationError::Closed { step }),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(source) => return Err(ReplicationError::Io { step, source }),
            }
        }
    }

    /// The next frame; that the peer closed is an error.
    ///
    /// # Cancel safety
    /// Cancel-safe like [`Self::next`].
    pub(crate) async fn expect(&mut self, step: Step) -> Result<Frame, ReplicationError> {
        self.next(step)
            .await?
            .ok_or(ReplicationError::Closed { step })
    }
}

/// The outgoing direction.
#[derive(Debug)]
pub(crate) struct FrameWriter<W> {
    socket: W,
    /// What is left to be written of the message that was handed over last.
    unsent: BytesMut,
}

impl<W: AsyncWrite + Unpin> FrameWriter<W> {
    pub(crate) fn new(socket: W) -> Self {
        Self {
            socket,
            unsent: BytesMut::new(),
        }
    }

    /// Writes one or more whole messages.
    ///
    /// # Cancel safety
    /// Never tears a message: what a cancelled call left over is written before
    /// the next message. The message of a cancelled call may be lost as a
    /// whole, when an earlier one was still waiting.
    pub(crate) async fn send(
        &mut self,
        step: Step,
        build: impl FnOnce(&mut BytesMut),
    ) -> Result<(), ReplicationError> {
        self.flush(step).await?;
        build(&mut self.unsent);
        self.flush(step).await
    }

    async fn flush(&mut self, step: Step) -> Result<(), ReplicationError> {
        while self.unsent.has_remaining() {
            match self.socket.write_buf(&mut self.unsent).await {
                Ok(0) => return Err(ReplicationError::Closed { step }),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(source) => return Err(ReplicationError::Io { step, source }),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
