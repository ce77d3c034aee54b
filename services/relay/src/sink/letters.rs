//! Rows of dead letters: entered after the dead-letter topic has acknowledged, before the
//! position moves.
//!
//! Promise: a letter counts as finished only when its row is written, however long Postgres is
//! away. A row that Postgres refuses for itself is told as an error and given up: the topic has
//! the letter.

use std::time::Duration;

use database::{Pool, dead_letters::DeadLetter};
use events::{Class, PostId, Stage, topic::TopicKind};
use runtime::report::chain;
use tokio::sync::mpsc;
use tokio::time::sleep;
use tokio_util::task::AbortOnDropHandle;
use tracing::{error, warn};

use crate::core::Letter;

const BETWEEN_ATTEMPTS: Duration = Duration::from_secs(1);

/// What the row will say, kept while the letter is on its way.
#[derive(Debug)]
pub(super) struct Row {
    letter: DeadLetter,
}

impl Row {
    pub(super) fn of(letter: &Letter) -> Self {
        let post = match letter.kind {
            TopicKind::Posts => letter.subject.parse().ok().map(PostId),
            TopicKind::Follows => None,
        };
        Self {
            letter: DeadLetter {
                stage: Stage::Published,
                event: Some(letter.event),
                post,
                topic: letter.topic.to_string(),
                partition: 0,
                offset: 0,
                reason: letter.reason.as_str().to_owned(),
            },
        }
    }
}

/// The writer of the rows.
#[derive(Debug)]
pub struct Letters {
    rows: mpsc::Sender<(u64, DeadLetter)>,
    written: mpsc::Receiver<u64>,
    writer: AbortOnDropHandle<()>,
}

impl Letters {
    /// A writer that holds at most `limit` rows.
    pub fn start(pool: Pool, limit: usize) -> Self {
        let (rows, waiting) = mpsc::channel(limit);
        let (done, written) = mpsc::channel(limit);
        let writer = AbortOnDropHandle::new(tokio::spawn(write(pool, waiting, done)));
        Self {
            rows,
            written,
            writer,
        }
    }

    /// Whether the writer has ended, which it never does by itself.
    pub(super) fn is_dead(&self) -> bool {
        self.writer.is_finished()
    }

    /// Enters the row of a letter that is at this place. `false` when there is no room.
    pub(super) fn enter(&self, tag: u64, row: Row, partition: i32, offset: i64) -> bool {
        self.rows
            .try_send((
                tag,
                DeadLetter {
                    partition,
                    offset,
                    ..row.letter
                },
            ))
            .is_ok()
    }

    /// The tag of the next letter whose row is written; `None` when the writer has ended, which
    /// it never does by itself.
    ///
    /// # Cancel safety
    /// Cancel-safe.
    pub async fn written(&mut self) -> Option<u64> {
        self.written.recv().await
    }
}

async fn write(
    pool: Pool,
    mut waiting: mpsc::Receiver<(u64, DeadLetter)>,
    done: mpsc::Sender<u64>,
) {
    while let Some((tag, letter)) = waiting.recv().await {
        loop {
            let outcome =
                async { database::dead_letters::record(&pool.get().await?, &letter).await };
            let Err(failure) = outcome.await else { break };
            if matches!(failure.class(), Class::Record | Class::Bug) {
                error!(error = %chain(&failure), event = ?letter.event, "row of a dead letter refused: only the topic has it");
                break;
            }
            warn!(error = %chain(&failure), event = ?letter.event, "row of a dead letter not written yet");
            sleep(BETWEEN_ATTEMPTS).await;
        }
        if done.send(tag).await.is_err() {
            return;
        }
    }
}
