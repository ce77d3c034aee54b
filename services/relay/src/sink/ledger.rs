//! Published ids into the delivery ledger, off the path of any LSN.
//!
//! Promise: bounded, and never in the way. One flush of at most 10 000 ids, at the latest 250 ms
//! after the first of them, under the epoch that each record names. An entry that cannot be
//! written is tried a few times, then dropped and counted: the sweep delivers those again, which
//! is harmless. An entry of an epoch that has ended is dropped at once, never entered under the
//! newer one: the server that began it may not have the row.

use std::collections::BTreeMap;
use std::time::Duration;

use database::{Error, Pool, delivery_ledger};
use events::{Class, EventId, Stage};
use prometheus::IntCounter;
use runtime::report::chain;
use tokio::sync::{
    mpsc::{self, error::TrySendError},
    watch,
};
use tokio::time::{Instant, sleep, timeout_at};
use tokio_util::task::AbortOnDropHandle;
use tracing::warn;

const FLUSH_IDS: usize = 10_000;
const FLUSH_AFTER: Duration = Duration::from_millis(250);
const ATTEMPTS: u32 = 3;
const BETWEEN_ATTEMPTS: Duration = Duration::from_millis(500);
/// Ids that wait while one flush is being written.
const WAITING: usize = 65_536;

/// An event and the epoch that its record names.
type Entry = (EventId, i64);

/// The ledger's writer.
#[derive(Debug)]
pub struct Ledger {
    entries: mpsc::Sender<Entry>,
    newest: watch::Receiver<i64>,
    writer: AbortOnDropHandle<()>,
    failures: IntCounter,
    enters: bool,
}

struct Writer {
    pool: Pool,
    newest: watch::Sender<i64>,
    failures: IntCounter,
}

impl Ledger {
    /// A writer. `failures` counts ids that were dropped; unless it `enters`, none is taken.
    pub fn start(pool: Pool, failures: IntCounter, enters: bool) -> Self {
        let (entries, waiting) = mpsc::channel(WAITING);
        let (newest, heard) = watch::channel(0);
        let writer = Writer {
            pool,
            newest,
            failures: failures.clone(),
        };
        Self {
            entries,
            newest: heard,
            writer: AbortOnDropHandle::new(tokio::spawn(writer.run(waiting))),
            failures,
            enters,
        }
    }

    /// Enters an id some time soon. Never waits.
    pub fn publish(&self, id: EventId, epoch: i64) {
        if !self.enters {
            return;
        }
        if let Err(TrySendError::Full(_) | TrySendError::Closed(_)) =
            self.entries.try_send((id, epoch))
        {
            self.failures.inc();
        }
    }

    /// Waits until entries were refused because a newer epoch has begun; answers its number.
    ///
    /// # Cancel safety
    /// Cancel-safe: nothing is lost.
    pub async fn newer_epoch(&mut self) -> i64 {
        if self.newest.changed().await.is_err() {
            // The writer has ended: the loop looks for that by itself.
            std::future::pending::<()>().await;
        }
        *self.newest.borrow_and_update()
    }

    /// Whether the writer has ended, which it never does by itself.
    pub fn is_dead(&self) -> bool {
        self.writer.is_finished()
    }

    /// Writes what waits, for at most `patience`.
    pub async fn close(self, patience: Duration) {
        drop(self.entries);
        if tokio::time::timeout(patience, self.writer).await.is_err() {
            warn!("ledger entries left behind at the end: the sweep will deliver them again");
        }
    }
}

impl Writer {
    async fn run(self, mut waiting: mpsc::Receiver<Entry>) {
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
            // More than one only where an epoch has just begun.
            let mut by_epoch: BTreeMap<i64, Vec<EventId>> = BTreeMap::new();
            for (id, epoch) in batch.drain(..) {
                by_epoch.entry(epoch).or_default().push(id);
            }
            for (epoch, ids) in by_epoch {
                self.flush(epoch, &ids).await;
            }
        }
    }

    async fn flush(&self, epoch: i64, ids: &[EventId]) {
        for attempt in 1..=ATTEMPTS {
            let outcome = async {
                delivery_ledger::record(&self.pool.get().await?, Stage::Published, ids, epoch).await
            };
            let Err(error) = outcome.await else { return };
            if let Error::OtherEpoch { current, .. } = error {
                self.newest.send_replace(current);
            }
            let last = attempt == ATTEMPTS || error.class() == Class::Record;
            warn!(error = %chain(&error), ids = ids.len(), attempt, last, "ledger entry not written");
            if last {
                break;
            }
            sleep(BETWEEN_ATTEMPTS).await;
        }
        self.failures
            .inc_by(u64::try_from(ids.len()).unwrap_or(u64::MAX));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn without_a_ledger_nothing_is_entered_and_nothing_counts_as_dropped() {
        let dropped = |enters| {
            let pool = Pool::new("postgresql://nobody@127.0.0.1:1/none", 1, "test").unwrap();
            let failures = IntCounter::new("dropped", "Dropped ids.").unwrap();
            let ledger = Ledger::start(pool, failures.clone(), enters);
            // More than can wait, and the writer has had no turn.
            for id in 0..=WAITING {
                ledger.publish(EventId(i64::try_from(id).unwrap()), 1);
            }
            failures.get()
        };
        assert_eq!((dropped(true), dropped(false)), (1, 0));
    }
}
