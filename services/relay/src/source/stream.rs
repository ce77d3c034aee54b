//! The stream: connection → CopyData → pgoutput → input; statuses out.
//!
//! Statuses leave from a task of their own, which waits for the socket only, so that neither a
//! slow broker nor a busy loop silences the connection (C21). Only the latest one counts.

use std::time::{Duration, SystemTime};

use pgoutput::{CopyData, Message, StandbyStatus};
use replication::{Reader, ReplicationError, StreamEvent, Writer};
use runtime::report::chain;
use tokio::sync::watch;
use tokio_util::task::AbortOnDropHandle;
use tracing::{debug, info, warn};

use crate::core::{Input, Lost, Status};

/// How long a good-bye may take.
const FAREWELL: Duration = Duration::from_secs(3);

/// A running stream. Dropping it closes the socket; the slot stays.
#[derive(Debug)]
pub struct Stream {
    reader: Reader,
    status: watch::Sender<Option<StandbyStatus>>,
    writer: AbortOnDropHandle<Result<Writer, ReplicationError>>,
}

/// What came in.
#[derive(Debug)]
pub enum Incoming {
    /// For the core.
    Input(Input),
    /// A frame that nobody knows.
    Unknown,
    /// Nothing that matters.
    Nothing,
}

impl Stream {
    pub(super) fn new(reader: Reader, writer: Writer) -> Self {
        let (status, latest) = watch::channel(None);
        let writer = AbortOnDropHandle::new(tokio::spawn(speak(writer, latest)));
        Self {
            reader,
            status,
            writer,
        }
    }

    /// Waits for what comes next. After [`Input::Lost`] the stream is over.
    ///
    /// # Cancel safety
    /// Cancel-safe: nothing is lost.
    pub async fn next(&mut self) -> Incoming {
        match self.reader.next().await {
            Ok(Some(StreamEvent::CopyData(payload))) => decode(payload),
            Ok(Some(StreamEvent::Notice(notice))) => {
                // Version 18 skips the rows of a missing publication and only says so.
                if notice.severity == "WARNING" && notice.message.contains("publication") {
                    return Incoming::Input(Input::Lost(Lost::publication(format!(
                        "postgres skips rows: {}; they are for the sweep",
                        notice.message
                    ))));
                }
                info!(
                    severity = notice.severity,
                    message = notice.message,
                    "postgres says"
                );
                Incoming::Nothing
            }
            Ok(Some(StreamEvent::Unknown { tag })) => {
                debug!(tag, "unknown frame");
                Incoming::Unknown
            }
            Ok(Some(StreamEvent::Ended) | None) => {
                Incoming::Input(Input::Lost(Lost::connection("postgres ended the stream")))
            }
            Err(error) if error.is_publication_missing() => {
                Incoming::Input(Input::Lost(Lost::publication(format!(
                    "{}; once the publication is there again, the slot is moved past this point, and the sweep \
                     delivers the rows in between",
                    chain(&error)
                ))))
            }
            Err(error) => Incoming::Input(Input::Lost(Lost::connection(chain(&error).to_string()))),
        }
    }

    /// Sends a status, or rather has it sent.
    pub fn confirm(&self, status: Status) {
        self.status.send_replace(Some(StandbyStatus {
            written: status.received.max(status.confirmed),
            flushed: status.confirmed,
            applied: status.confirmed,
            sent_at: unix_micros(),
            reply_requested: status.reply_requested,
        }));
    }

    /// Sends the last status, says good-bye and waits until the server has read both.
    pub async fn close(self) {
        drop(self.status);
        let farewell = async {
            match self.writer.await {
                Ok(Ok(writer)) => {
                    writer.finish().await?;
                    self.reader.drain(FAREWELL).await
                }
                Ok(Err(error)) => Err(error),
                // The task neither panics nor is aborted while this handle lives.
                Err(_) => Ok(()),
            }
        };
        match tokio::time::timeout(FAREWELL * 2, farewell).await {
            Ok(Ok(())) => debug!("stream closed in good order"),
            Ok(Err(error)) => {
                warn!(error = %chain(&error), "stream closed without the server's good-bye")
            }
            Err(_) => warn!("stream closed without waiting any longer for the server's good-bye"),
        }
    }
}

/// Microseconds since 1970 by this machine's clock; for statuses and metrics only.
pub fn unix_micros() -> i64 {
    let since = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}

/// Writes the latest status whenever there is a new one; gives the writer back at the end.
async fn speak(
    mut writer: Writer,
    mut latest: watch::Receiver<Option<StandbyStatus>>,
) -> Result<Writer, ReplicationError> {
    while latest.changed().await.is_ok() {
        let status = *latest.borrow_and_update();
        if let Some(status) = status {
            writer.status(&status).await?;
        }
    }
    Ok(writer)
}

fn decode(payload: bytes::Bytes) -> Incoming {
    let broken = |error: &pgoutput::DecodeError| {
        Incoming::Input(Input::Lost(Lost::connection(format!(
            "postgres sent what cannot be read: {}",
            chain(error)
        ))))
    };
    match CopyData::decode(payload) {
        Ok(CopyData::XLog(data)) => match Message::decode(data.data) {
            Ok(message) => Incoming::Input(Input::Message(data.start.max(data.end), message)),
            Err(error) => broken(&error),
        },
        Ok(CopyData::Keepalive(keepalive)) => Incoming::Input(Input::Keepalive {
            end: keepalive.end,
            reply_requested: keepalive.reply_requested,
        }),
        Ok(CopyData::Unknown { .. }) => Incoming::Unknown,
        Err(error) => broken(&error),
    }
}
