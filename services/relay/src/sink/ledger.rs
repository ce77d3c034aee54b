//! Published ids into the delivery ledger, off the path of any LSN.
//!
//! Promise: bounded, and never in the way. One row per flush of at most 10 000 ids, at the latest
//! 250 ms after the first of them. An entry that cannot be written is tried a few times, then
//! dropped and counted: the sweep delivers those again, which is harmless.

use std::time::Duration;

use database::{Pool, delivery_ledger};
use events::{Class, EventId, Stage};
use prometheus::IntCounter;
use runtime::report::chain;
use tokio::sync::mpsc::{self, error::TrySendError};
use tokio::time::{Instant, sleep, timeout_at};
use tokio_util::task::AbortOnDropHandle;
use tracing::warn;

const FLUSH_IDS: usize = 10_000;
const FLUSH_AFTER: Duration = Duration::from_millis(250);
const ATTEMPTS: u32 = 3;
const BETWEEN_ATTEMPTS: Duration = Duration::from_millis(500);
/// Ids that wait while one flush is being written.
const WAITING: usize = 65_536;

/// The ledger's writer.
#[derive(Debug)]
pub struct Ledger {
    ids: mpsc::Sender<EventId>,
    writer: AbortOnDropHandle<()>,
    failures: IntCounter,
}

impl Ledger {
    /// A writer for this epoch. `failures` counts ids that were dropped.
    pub fn start(pool: Pool, epoch: i64, failures: IntCounter) -> Self {
        let (ids, waiting) = mpsc::channel(WAITING);
        let writer =
            AbortOnDropHandle::new(tokio::spawn(write(pool, epoch, waiting, failures.clone())));
        Self {
            ids,
            writer,
            failures,
        }
    }

    /// Enters an id some time soon. Never waits.
    pub fn publish(&self, id: EventId) {
        if let Err(TrySendError::Full(_) | TrySendError::Closed(_)) = self.ids.try_send(id) {
            self.failures.inc();
        }
    }

    /// Whether the writer has ended, which it never does by itself.
    pub fn is_dead(&self) -> bool {
        self.writer.is_finished()
    }

    /// Writes what waits, for at most `patience`.
    pub async fn close(self, patience: Duration) {
        drop(self.ids);
        if tokio::time::timeout(patience, self.writer).await.is_err() {
            warn!("ledger entries left behind at the end: the sweep will deliver them again");
        }
    }
}

async fn write(pool: Pool, epoch: i64, mut waiting: mpsc::Receiver<EventId>, failures: IntCounter) {
    let mut batch = Vec::new();
    while let Some(first) = waiting.recv().await {
        batch.push(first);
        let deadline = Instant::now() + FLUSH_AFTER;
        while batch.len() < FLUSH_IDS {
            let room = FLUSH_IDS - batch.len();
            match timeout_at(deadline, waiting.recv_many(&mut batch, room)).await {
                Ok(0) | Err(_) => break,
                Ok(_) => {}
            }
        }
        flush(&pool, epoch, &batch, &failures).await;
        batch.clear();
    }
}

async fn flush(pool: &Pool, epoch: i64, ids: &[EventId], failures: &IntCounter) {
    for attempt in 1..=ATTEMPTS {
        let outcome = async {
            delivery_ledger::record(&pool.get().await?, Stage::Published, ids, epoch).await
        };
        let Err(error) = outcome.await else { return };
        let last = attempt == ATTEMPTS || error.class() == Class::Record;
        warn!(error = %chain(&error), ids = ids.len(), attempt, last, "ledger entry not written");
        if last {
            break;
        }
        sleep(BETWEEN_ATTEMPTS).await;
    }
    failures.inc_by(u64::try_from(ids.len()).unwrap_or(u64::MAX));
}
