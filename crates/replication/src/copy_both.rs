//! The stream: both directions carry data at the same time, so each is its own
//! half and may live in its own task.
//!
//! The reading half never reads more than one buffer ahead of its caller; a
//! caller that stops calling is what slows the server down. The writing half
//! waits for the socket only. Closing in order: last status, [`Writer::finish`],
//! then [`Reader::drain`]; dropping both instead is safe for the data, but the
//! last status may be lost with the connection.

use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use pgoutput::StandbyStatus;
use postgres_protocol::message::frontend;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

use crate::connection::within;
use crate::frame::Frame;
use crate::query;
use crate::wire::{FrameReader, FrameWriter};
use crate::{ReplicationError, ServerMessage, Step};

/// Tag and length in front of a CopyData payload.
const COPY_DATA_HEADER: usize = 5;

/// What the server sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StreamEvent {
    /// One payload: input of [`pgoutput::CopyData::decode`].
    CopyData(Bytes),
    /// A notice. From PostgreSQL 18 on this is how a missing publication shows:
    /// its rows are skipped.
    Notice(Box<ServerMessage>),
    /// The server ends the stream in good order: it shuts down, or answers
    /// [`Writer::finish`]. No more data will come.
    Ended,
    /// A message this client does not know. Count it and go on.
    Unknown {
        /// Its tag.
        tag: u8,
    },
}

/// The incoming half.
#[derive(Debug)]
pub struct Reader {
    frames: FrameReader<OwnedReadHalf>,
    progress: Progress,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    Streaming,
    /// [`StreamEvent::Ended`] was given; the rest is formality.
    Ended,
    /// Nothing more can come.
    Over,
}

impl Reader {
    pub(crate) fn new(frames: FrameReader<OwnedReadHalf>) -> Self {
        Self {
            frames,
            progress: Progress::Streaming,
        }
    }

    /// Waits for the next event; nothing after the stream ended in good order.
    /// Has no time limit: the server sends keepalives, and the caller knows how
    /// long it wants to wait for one.
    ///
    /// # Errors
    /// When the server reports an error, closes without a word or sends bytes
    /// that are no frames. The stream is over then.
    ///
    /// # Cancel safety
    /// Cancel-safe: no byte and no event is lost.
    pub async fn next(&mut self) -> Result<Option<StreamEvent>, ReplicationError> {
        const STEP: Step = Step::Stream;
        let decode = |source| ReplicationError::Decode { step: STEP, source };
        while self.progress != Progress::Over {
            let Some(Frame { tag, body }) = self.frames.next(STEP).await? else {
                if self.progress == Progress::Streaming {
                    return Err(ReplicationError::Closed { step: STEP });
                }
                break;
            };
            match tag {
                b'd' => return Ok(Some(StreamEvent::CopyData(body))),
                b'N' => {
                    let notice = Box::new(ServerMessage::decode(body).map_err(decode)?);
                    return Ok(Some(StreamEvent::Notice(notice)));
                }
                b'E' => {
                    let source = Box::new(ServerMessage::decode(body).map_err(decode)?);
                    return Err(ReplicationError::Server { step: STEP, source });
                }
                // CopyDone answers ours; a server that shuts down sends
                // CommandComplete alone.
                b'c' | b'C' => {
                    if self.progress == Progress::Streaming {
                        self.progress = Progress::Ended;
                        return Ok(Some(StreamEvent::Ended));
                    }
                }
                b'Z' => break,
                // A changed parameter or a NOTIFY: neither concerns the stream.
                b'S' | b'A' => {}
                tag => return Ok(Some(StreamEvent::Unknown { tag })),
            }
        }
        self.progress = Progress::Over;
        Ok(None)
    }

    /// Throws away what still arrives until the server has closed in good
    /// order, so that it reads our last status before the socket goes.
    ///
    /// # Errors
    /// When that takes longer than `patience` (the server does not interrupt a
    /// large transaction) or ends in another way.
    pub async fn drain(mut self, patience: Duration) -> Result<(), ReplicationError> {
        within(patience, Step::Finish, async move {
            while self.next().await?.is_some() {}
            Ok(())
        })
        .await
    }
}

/// The outgoing half.
#[derive(Debug)]
pub struct Writer {
    frames: FrameWriter<OwnedWriteHalf>,
    patience: Duration,
}

impl Writer {
    pub(crate) fn new(frames: FrameWriter<OwnedWriteHalf>, patience: Duration) -> Self {
        Self { frames, patience }
    }

    /// Tells the server how far we are.
    ///
    /// # Errors
    /// When the socket fails or takes longer than `query_timeout`.
    ///
    /// # Cancel safety
    /// The stream stays whole after a dropped call; whether that status was
    /// sent is open, so send the next one.
    pub async fn status(&mut self, status: &StandbyStatus) -> Result<(), ReplicationError> {
        let mut payload = BytesMut::new();
        status.encode(&mut payload);
        let send = self.frames.send(Step::Stream, |out| {
            out.reserve(COPY_DATA_HEADER + payload.len());
            out.put_u8(b'd');
            // The length counts itself; a status has 34 bytes.
            out.put_i32(4 + 34);
            out.put_slice(&payload);
        });
        within(self.patience, Step::Stream, send).await
    }

    /// Says that we are done (CopyDone) and leave (Terminate). The server
    /// answers with the end of the stream and closes: see [`Reader::drain`].
    ///
    /// # Errors
    /// When the socket fails or takes longer than `query_timeout`.
    pub async fn finish(mut self) -> Result<(), ReplicationError> {
        let send = self.frames.send(Step::Finish, |out| {
            frontend::copy_done(out);
            frontend::terminate(out);
        });
        within(self.patience, Step::Finish, send).await
    }
}

/// Sends START_REPLICATION and waits for CopyBothResponse.
pub(crate) async fn start(
    reader: &mut FrameReader<impl AsyncRead + Unpin>,
    writer: &mut FrameWriter<impl AsyncWrite + Unpin>,
    command: &str,
) -> Result<(), ReplicationError> {
    const STEP: Step = Step::Start;
    let decode = |source| ReplicationError::Decode { step: STEP, source };
    query::send(writer, STEP, command).await?;
    loop {
        let Frame { tag, body } = reader.expect(STEP).await?;
        match tag {
            // CopyBothResponse; its formats say nothing for replication.
            b'W' => return Ok(()),
            b'E' => {
                let source = Box::new(ServerMessage::decode(body).map_err(decode)?);
                return Err(ReplicationError::Server { step: STEP, source });
            }
            b'N' => tracing::debug!(
                notice = %ServerMessage::decode(body).map_err(decode)?,
                "notice at the start of the stream"
            ),
            b'S' => {}
            tag => return Err(ReplicationError::Unexpected { step: STEP, tag }),
        }
    }
}
