//! What was delivered, into the ledger and `post_delivery`.
//!
//! Owns the batches: flushed each [`EVERY`] or at [`AT_MOST`] deliveries, one transaction each.
//! Promise: never in the path of an offset. A full queue or an insert that keeps failing drops
//! deliveries, counted; the sweep finds them missing and delivers again, which changes no row.

use std::time::Duration;

use database::{
    Error, Pool, epoch,
    post_delivery::{self, Delivery},
};
use tokio::{
    sync::{mpsc, oneshot},
    task::JoinHandle,
    time::{MissedTickBehavior, interval, sleep},
};

use crate::metrics::FanoutMetrics;

/// How long a delivery waits for others.
const EVERY: Duration = Duration::from_millis(250);
/// Deliveries of one flush.
const AT_MOST: usize = 10_000;
/// Deliveries that wait while a flush runs (D-13).
const QUEUE: usize = 10_000;
/// How often a flush is tried.
const ATTEMPTS: u32 = 5;
/// The pause after the first failure; doubled after each.
const FIRST_PAUSE: Duration = Duration::from_millis(200);

/// Takes deliveries; cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Progress {
    queue: mpsc::Sender<Message>,
    metrics: FanoutMetrics,
}

#[derive(Debug)]
enum Message {
    Delivered(Delivery),
    Flush(oneshot::Sender<()>),
}

impl Progress {
    /// Starts the task that flushes; it ends when the last clone is dropped.
    pub(crate) fn start(pool: Pool, metrics: FanoutMetrics) -> (Self, JoinHandle<()>) {
        let (queue, receiver) = mpsc::channel(QUEUE);
        let flusher = Flusher {
            pool,
            metrics: metrics.clone(),
            epoch: None,
            batch: Vec::new(),
        };
        let task = tokio::spawn(flusher.run(receiver));
        (Self { queue, metrics }, task)
    }

    /// Notes a delivery. Never waits.
    pub(crate) fn delivered(&self, delivery: Delivery) {
        if self.queue.try_send(Message::Delivered(delivery)).is_err() {
            self.metrics.progress.with_label_values(&["dropped"]).inc();
        }
    }

    /// Flushes what was noted before, for at most `patience`.
    pub(crate) async fn flush(&self, patience: Duration) {
        let (done, flushed) = oneshot::channel();
        let flush = async {
            if self.queue.send(Message::Flush(done)).await.is_ok() {
                // The task answers or is gone; in both cases there is nothing left to wait for.
                let _answered = flushed.await;
            }
        };
        if tokio::time::timeout(patience, flush).await.is_err() {
            tracing::warn!("deliveries were not flushed in time");
        }
    }

    /// Asks for a flush without waiting for it.
    pub(crate) fn flush_soon(&self) {
        let (done, _nobody_waits) = oneshot::channel();
        // A full queue is flushed anyway.
        let _asked = self.queue.try_send(Message::Flush(done));
    }
}

struct Flusher {
    pool: Pool,
    metrics: FanoutMetrics,
    epoch: Option<i64>,
    batch: Vec<Delivery>,
}

impl Flusher {
    async fn run(mut self, mut queue: mpsc::Receiver<Message>) {
        let mut tick = interval(EVERY);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                message = queue.recv() => match message {
                    Some(Message::Delivered(delivery)) => {
                        self.batch.push(delivery);
                        if self.batch.len() >= AT_MOST {
                            self.flush().await;
                        }
                    }
                    Some(Message::Flush(done)) => {
                        self.flush().await;
                        let _nobody_waits_any_more = done.send(());
                    }
                    None => break,
                },
                _ = tick.tick() => self.flush().await,
            }
        }
        self.flush().await;
    }

    async fn flush(&mut self) {
        if self.batch.is_empty() {
            return;
        }
        let batch = std::mem::take(&mut self.batch);
        let count = batch.len() as u64;
        let mut pause = FIRST_PAUSE;
        for attempt in 1..=ATTEMPTS {
            let Err(error) = self.record(&batch).await else {
                self.metrics
                    .progress
                    .with_label_values(&["recorded"])
                    .inc_by(count);
                return;
            };
            // A failover may have begun a new epoch: read it again before the next attempt.
            self.epoch = None;
            tracing::warn!(error = %runtime::report::chain(&error), attempt, count, "flush of deliveries failed");
            if attempt < ATTEMPTS {
                sleep(pause).await;
                pause *= 2;
            }
        }
        self.metrics
            .progress
            .with_label_values(&["dropped"])
            .inc_by(count);
        tracing::error!(
            count,
            "deliveries dropped from the ledger, the sweep will repeat them"
        );
    }

    async fn record(&mut self, batch: &[Delivery]) -> Result<(), Error> {
        let mut client = self.pool.get().await?;
        let epoch = match self.epoch {
            Some(epoch) => epoch,
            None => epoch::current(&client).await?.epoch,
        };
        self.epoch = Some(epoch);
        post_delivery::record_many(&mut client, epoch, batch).await
    }
}
