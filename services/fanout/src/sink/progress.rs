//! What was delivered, into the ledger and `post_delivery`.
//!
//! Owns the batches: flushed each [`EVERY`] or at [`AT_MOST`] deliveries, one transaction each.
//! Promise: never in the path of an offset. A full queue or an insert that keeps failing drops
//! deliveries, counted; the sweep finds them missing and delivers again, which changes no row.
//!
//! A delivery is entered under the epoch that its record names, never under the newest one: what
//! was delivered for a row of a server that is gone says nothing about the row that has its id
//! now. Deliveries of an epoch that has ended are dropped, counted, and delivered again under the
//! new one.

use std::{collections::BTreeMap, time::Duration};

use database::{
    Error, Pool,
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
    Delivered { epoch: i64, delivery: Delivery },
    Flush(oneshot::Sender<()>),
}

impl Progress {
    /// Starts the task that flushes; it ends when the last clone is dropped.
    pub(crate) fn start(pool: Pool, metrics: FanoutMetrics) -> (Self, JoinHandle<()>) {
        let (queue, receiver) = mpsc::channel(QUEUE);
        let flusher = Flusher {
            pool,
            metrics: metrics.clone(),
            batch: Vec::new(),
        };
        let task = tokio::spawn(flusher.run(receiver));
        (Self { queue, metrics }, task)
    }

    /// Notes a delivery for a record of this epoch; `None` when its source names none of ours, and
    /// then there is nothing to enter it under. Never waits.
    pub(crate) fn delivered(&self, epoch: Option<i64>, delivery: Delivery) {
        let Some(epoch) = epoch else {
            tracing::warn!(
                event = delivery.event.0,
                "record names no epoch: its delivery is not in the ledger"
            );
            self.metrics
                .progress
                .with_label_values(&["other_epoch"])
                .inc();
            return;
        };
        let message = Message::Delivered { epoch, delivery };
        if self.queue.try_send(message).is_err() {
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
    batch: Vec<(i64, Delivery)>,
}

impl Flusher {
    async fn run(mut self, mut queue: mpsc::Receiver<Message>) {
        let mut tick = interval(EVERY);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                message = queue.recv() => match message {
                    Some(Message::Delivered { epoch, delivery }) => {
                        self.batch.push((epoch, delivery));
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
        // More than one only around the beginning of an epoch.
        let mut by_epoch: BTreeMap<i64, Vec<Delivery>> = BTreeMap::new();
        for (epoch, delivery) in self.batch.drain(..) {
            by_epoch.entry(epoch).or_default().push(delivery);
        }
        for (epoch, batch) in by_epoch {
            let became = self.enter(epoch, &batch).await;
            self.metrics
                .progress
                .with_label_values(&[became])
                .inc_by(batch.len() as u64);
        }
    }

    /// Enters what was delivered for records of one epoch. Answers what became of it.
    async fn enter(&self, epoch: i64, batch: &[Delivery]) -> &'static str {
        let count = batch.len();
        let mut pause = FIRST_PAUSE;
        for attempt in 1..=ATTEMPTS {
            let outcome = async {
                post_delivery::record_many(&mut self.pool.get().await?, epoch, batch).await
            };
            let error = match outcome.await {
                Ok(()) => return "recorded",
                Err(Error::OtherEpoch { given, current }) => {
                    tracing::warn!(
                        given,
                        current,
                        count,
                        "deliveries of an epoch that has ended, the sweep will repeat them"
                    );
                    return "other_epoch";
                }
                Err(error) => error,
            };
            tracing::warn!(error = %runtime::report::chain(&error), attempt, count, "flush of deliveries failed");
            if attempt < ATTEMPTS {
                sleep(pause).await;
                pause *= 2;
            }
        }
        tracing::error!(
            count,
            "deliveries dropped from the ledger, the sweep will repeat them"
        );
        "dropped"
    }
}
