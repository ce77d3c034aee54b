//! Published ids into the delivery ledger, off the path of any LSN.
//!
//! The loop gathers ids in memory of its own and hands them over by the batch: a task that is
//! woken for each id would cost the relay more than everything else about the ledger.
//!
//! ```text
//!   loop: publish ─▶ gathered ── full, or due ──▶ one batch waits ──▶ writer ──▶ Postgres
//! ```
//!
//! Promise: bounded, and never in the way. One flush of at most one block of ids, begun at the
//! latest 250 ms after the first of them unless an earlier one is still being written, under the
//! epoch that each record names. An entry that cannot be written is tried a few times, then
//! dropped and counted: the sweep delivers those again, which is harmless. An entry of an epoch
//! that has ended is dropped at once, never entered under the newer one: the server that began it
//! may not have the row.

use std::time::Duration;

use database::{Error, Pool, delivery_ledger};
use events::{Class, EventId, Stage};
use prometheus::IntCounter;
use runtime::report::chain;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::task::AbortOnDropHandle;
use tracing::warn;

/// Ids of one flush, and so those that are gathered at most while a batch waits for one that is
/// being written. At full speed acknowledgements come partition by partition, so the ids at both
/// ends of a batch have holes: the larger it is, the fewer ranges per id.
const FLUSH_IDS: usize = 65_536;
const FLUSH_AFTER: Duration = Duration::from_millis(250);
/// The clock is looked at for every so many records: it has a price at 100 000 a second.
const LOOK_EVERY: u32 = 8;
const ATTEMPTS: u32 = 3;
const BETWEEN_ATTEMPTS: Duration = Duration::from_millis(500);

/// An event and the epoch that its record names.
type Entry = (EventId, i64);

/// The ledger as the loop has it.
#[derive(Debug)]
pub struct Ledger {
    gathered: Vec<Entry>,
    /// When the gathered ids have to go; none while there are none.
    due: Option<Instant>,
    /// How often the loop has asked in between.
    asked: u32,
    batches: mpsc::Sender<Vec<Entry>>,
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
    /// A ledger with its writer. `failures` counts ids that were dropped; unless it `enters`, none
    /// is taken.
    pub fn start(pool: Pool, failures: IntCounter, enters: bool) -> Self {
        let (batches, waiting) = mpsc::channel(1);
        let (newest, heard) = watch::channel(0);
        let writer = Writer {
            pool,
            newest,
            failures: failures.clone(),
        };
        Self {
            gathered: Vec::new(),
            due: None,
            asked: 0,
            batches,
            newest: heard,
            writer: AbortOnDropHandle::new(tokio::spawn(writer.run(waiting))),
            failures,
            enters,
        }
    }

    /// Enters an id some time soon. Never waits.
    pub fn publish(&mut self, id: EventId, epoch: i64) {
        if !self.enters {
            return;
        }
        if self.gathered.len() >= FLUSH_IDS {
            self.hand_over();
        }
        if self.gathered.len() >= FLUSH_IDS {
            self.failures.inc();
            return;
        }
        if self.due.is_none() {
            self.due = Some(Instant::now() + FLUSH_AFTER);
        }
        self.gathered.push((id, epoch));
    }

    /// Waits until entries were refused because a newer epoch has begun; answers its number.
    /// Meanwhile hands over what is due: the loop waits here among other things, whatever comes.
    ///
    /// # Cancel safety
    /// Cancel-safe: nothing is lost.
    pub async fn newer_epoch(&mut self) -> i64 {
        loop {
            tokio::select! {
                () = is_due(self.due, &self.batches) => self.hand_over(),
                // No more when the writer has ended: the loop looks for that by itself.
                Ok(()) = self.newest.changed() => return *self.newest.borrow_and_update(),
            }
        }
    }

    /// Hands over what is due, if the writer has room: for a loop that is at one piece of work for
    /// long. A position may be confirmed already, and a sweep gives the entries that follow it no
    /// more than its grace (D-10).
    pub fn hand_over_due(&mut self) {
        self.asked = self.asked.wrapping_add(1);
        let looks = self.asked.is_multiple_of(LOOK_EVERY);
        if looks && self.due.is_some_and(|at| Instant::now() >= at) {
            self.hand_over();
        }
    }

    /// Hands what was gathered to the writer, if that has room.
    fn hand_over(&mut self) {
        if let Ok(room) = self.batches.try_reserve() {
            self.due = None;
            room.send(std::mem::take(&mut self.gathered));
        }
    }

    /// Whether the writer has ended, which it never does by itself.
    pub fn is_dead(&self) -> bool {
        self.writer.is_finished()
    }

    /// Writes what waits, for at most `patience`.
    pub async fn close(self, patience: Duration) {
        let Self {
            gathered,
            batches,
            writer,
            ..
        } = self;
        let ending = async move {
            let handed_over = gathered.is_empty() || batches.send(gathered).await.is_ok();
            drop(batches);
            handed_over && writer.await.is_ok()
        };
        if tokio::time::timeout(patience, ending).await != Ok(true) {
            warn!("ledger entries left behind at the end: the sweep will deliver them again");
        }
    }
}

/// Waits for the moment, and then until the writer has room. Never ends where there is neither.
async fn is_due(due: Option<Instant>, batches: &mpsc::Sender<Vec<Entry>>) {
    let Some(at) = due else {
        return std::future::pending().await;
    };
    // The clock, and not a timer alone: timers fire when the runtime has a moment for them, which it
    // has late or never while the loop always finds something to do.
    if Instant::now() < at {
        sleep_until(at).await;
    }
    if batches.reserve().await.is_err() {
        std::future::pending::<()>().await;
    }
}

impl Writer {
    async fn run(self, mut waiting: mpsc::Receiver<Vec<Entry>>) {
        while let Some(batch) = waiting.recv().await {
            // More than one only where an epoch has just begun.
            for entries in batch.chunk_by(|one, next| one.1 == next.1) {
                if let Some((_, epoch)) = entries.first() {
                    let ids: Vec<EventId> = entries.iter().map(|(id, _)| *id).collect();
                    self.flush(*epoch, &ids).await;
                }
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
    use futures::FutureExt;

    use super::*;

    fn ledger(enters: bool) -> (Ledger, IntCounter) {
        // Nobody answers there.
        let pool = Pool::new("postgresql://nobody@127.0.0.1:1/none", 1, "test").unwrap();
        let failures = IntCounter::new("dropped", "Dropped ids.").unwrap();
        (Ledger::start(pool, failures.clone(), enters), failures)
    }

    fn publish(ledger: &mut Ledger, count: usize) {
        for id in 0..count {
            ledger.publish(EventId(i64::try_from(id).unwrap()), 1);
        }
    }

    #[tokio::test]
    async fn without_a_ledger_nothing_is_entered_and_nothing_counts_as_dropped() {
        let dropped = |enters| {
            let (mut ledger, failures) = ledger(enters);
            // One more than can be gathered beside a batch that waits; the writer has no turn.
            publish(&mut ledger, 2 * FLUSH_IDS + 1);
            (failures.get(), ledger.gathered.len())
        };
        assert_eq!((dropped(true), dropped(false)), ((1, FLUSH_IDS), (0, 0)));
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_gathered_goes_after_a_while_and_only_then() {
        let (mut ledger, _failures) = ledger(true);
        publish(&mut ledger, 1);
        let early = tokio::time::timeout(FLUSH_AFTER / 2, ledger.newer_epoch()).await;
        assert!(early.is_err(), "no epoch has begun");
        assert_eq!(ledger.gathered.len(), 1, "it is not due yet");
        let later = tokio::time::timeout(FLUSH_AFTER, ledger.newer_epoch()).await;
        assert!(later.is_err(), "no epoch has begun");
        assert_eq!((ledger.gathered.len(), ledger.due), (0, None));
    }

    #[tokio::test(start_paused = true)]
    async fn a_loop_that_is_busy_for_long_hands_over_what_is_due_meanwhile() {
        let (mut ledger, _failures) = ledger(true);
        publish(&mut ledger, 1);
        let turn = |ledger: &mut Ledger| (0..LOOK_EVERY).for_each(|_| ledger.hand_over_due());
        turn(&mut ledger);
        assert_eq!(ledger.gathered.len(), 1, "it is not due yet");
        tokio::time::advance(FLUSH_AFTER).await;
        turn(&mut ledger);
        assert_eq!((ledger.gathered.len(), ledger.due), (0, None));
    }

    /// While the loop never waits, or its thread was busy, no timer has its turn.
    #[tokio::test(flavor = "multi_thread")]
    async fn what_is_due_goes_at_the_next_turn_of_the_loop() {
        let (mut ledger, _failures) = ledger(true);
        publish(&mut ledger, 1);
        std::thread::sleep(FLUSH_AFTER + Duration::from_millis(1));
        let epoch = ledger.newer_epoch().now_or_never();
        assert_eq!(epoch, None, "no epoch has begun");
        assert_eq!((ledger.gathered.len(), ledger.due), (0, None));
    }

    #[tokio::test(start_paused = true)]
    async fn what_cannot_be_written_is_counted_once_also_at_the_end() {
        let (mut ledger, failures) = ledger(true);
        publish(&mut ledger, 3);
        ledger.hand_over();
        publish(&mut ledger, 4);
        // Both flushes with all their attempts.
        ledger.close(Duration::from_secs(600)).await;
        assert_eq!(failures.get(), 7);
    }
}
