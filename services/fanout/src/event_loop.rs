//! Turns what happens into inputs of the state machine and carries out its actions.
//!
//! Decides nothing and waits for nothing but the next event: records are worked on in tasks of a
//! `JoinSet`, the consumer polls on its own thread, progress is flushed by its own task.

use std::{
    collections::BTreeMap,
    panic::AssertUnwindSafe,
    sync::Arc,
    time::{Duration, Instant},
};

use futures::FutureExt;
use kafka::Consumed;
use runtime::{Health, Shutdown};
use timeline_store::TimelineStore;
use tokio::{
    task::JoinSet,
    time::{MissedTickBehavior, interval, sleep_until},
};
use tokio_util::sync::CancellationToken;

use crate::{
    core::state::{Action, Input, Job, State},
    error::FanoutError,
    lane::posts::Posts,
    metrics::FanoutMetrics,
    sink::requests::Requests,
    source::consume::{Arrival, Source},
};

/// How often offsets are committed and gauges set.
const TICK: Duration = Duration::from_millis(250);
/// How long leaving the group may take, draining included, before the process ends without it.
const LEAVE_WITHIN: Duration = Duration::from_secs(8);
/// How long the last deliveries may take into the ledger.
const FLUSH_WITHIN: Duration = Duration::from_secs(3);

/// The loop of one lane.
pub(crate) struct EventLoop<S> {
    source: Source,
    state: State,
    lane: Arc<Posts<S>>,
    requests: Arc<Requests>,
    metrics: FanoutMetrics,
    health: Health,
    work: JoinSet<(Job, Ended)>,
    /// Cancels the work of a partition's generation.
    tokens: BTreeMap<(i32, u64), CancellationToken>,
    began: Instant,
}

/// How the work on a record ended.
enum Ended {
    Finished,
    Abandoned,
    Failed(FanoutError),
}

impl<S: TimelineStore + Clone> EventLoop<S> {
    pub(crate) fn new(
        source: Source,
        state: State,
        lane: Arc<Posts<S>>,
        requests: Arc<Requests>,
        metrics: FanoutMetrics,
        health: Health,
    ) -> Self {
        Self {
            source,
            state,
            lane,
            requests,
            metrics,
            health,
            work: JoinSet::new(),
            tokens: BTreeMap::new(),
            began: Instant::now(),
        }
    }

    /// Runs until `shutdown` or until something stops the lane. Leaves the group either way.
    pub(crate) async fn run(mut self, shutdown: &Shutdown) -> Result<(), FanoutError> {
        let outcome = self.turn(shutdown).await;
        // After a failure the group is left without draining; what is unfinished is done again.
        self.work.shutdown().await;
        self.lane.progress.flush(FLUSH_WITHIN).await;
        self.source.close();
        if matches!(outcome, Err(FanoutError::Fenced { .. })) {
            // Whoever joins again is not to meet this member.
            let _left = self.source.ended(LEAVE_WITHIN).await;
        }
        outcome
    }

    async fn turn(&mut self, shutdown: &Shutdown) -> Result<(), FanoutError> {
        let mut tick = interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let outages = self.lane.attempts.outages.clone();
        let mut leave_by = None;
        loop {
            let take_records = self.state.takes_records() && leave_by.is_none();
            tokio::select! {
                arrival = self.source.recv(take_records) => match arrival? {
                    Some(arrival) => self.arrived(arrival)?,
                    None if leave_by.is_some() => {
                        let _left = self.source.ended(LEAVE_WITHIN).await;
                        return Ok(());
                    }
                    None => return Err(FanoutError::ConsumerEnded),
                },
                Some(joined) = self.work.join_next(), if !self.work.is_empty() => {
                    let (job, ended) = joined.map_err(|error| FanoutError::Panicked { text: error.to_string() })?;
                    match ended {
                        Ended::Finished => self.step(Input::Finished(job), None)?,
                        Ended::Abandoned => {}
                        Ended::Failed(error) => return Err(error),
                    }
                }
                () = outages.changed() => self.step(Input::Outages(outages.waiting()), None)?,
                _ = tick.tick() => self.tick()?,
                () = shutdown.requested(), if leave_by.is_none() => {
                    tracing::info!("leaving the group");
                    self.source.close();
                    leave_by = Some(tokio::time::Instant::now() + LEAVE_WITHIN);
                }
                () = expired(leave_by) => {
                    tracing::warn!("the group was not left in time; its records will be done again");
                    return Ok(());
                }
            }
        }
    }

    fn arrived(&mut self, arrival: Arrival) -> Result<(), FanoutError> {
        match arrival {
            Arrival::Record(input, record) => self.step(input, Some(*record)),
            Arrival::OffsetLost {
                input,
                expected,
                found,
            } => {
                self.metrics.offsets_lost.inc();
                tracing::error!(expected, found, input = ?input, "offsets jumped: records are gone, the sweep delivers what the ledger lacks");
                self.requests.offset_lost();
                self.step(input, None)
            }
            Arrival::CommitFailed(code) => {
                self.metrics.commits.with_label_values(&["refused"]).inc();
                tracing::warn!(code, "commit refused");
                Ok(())
            }
            Arrival::Input(input) => {
                self.rebalanced(&input);
                if let Input::Assigned {
                    partitions,
                    generation,
                } = &input
                {
                    // Work of earlier assignments is drained or given up already.
                    partitions
                        .iter()
                        .for_each(|&partition| self.abandon(partition, generation - 1));
                }
                self.step(input, None)
            }
        }
    }

    fn rebalanced(&self, input: &Input) {
        let kind = match input {
            Input::Assigned { .. } => "assigned",
            Input::Revoked { lost: true, .. } => "lost",
            Input::Revoked { .. } => "revoked",
            _ => return,
        };
        self.metrics.rebalances.with_label_values(&[kind]).inc();
        tracing::info!(kind, input = ?input, "assignment changed");
        // The next owner may look into the ledger soon.
        self.lane.progress.flush_soon();
    }

    fn step(&mut self, input: Input, mut record: Option<Consumed>) -> Result<(), FanoutError> {
        for action in self.state.step(input, self.now_us()) {
            match action {
                Action::Start(job) => {
                    if let Some(record) = record.take() {
                        self.start(job, record);
                    }
                }
                Action::Ignore => {}
                Action::Commit {
                    partition,
                    generation,
                    offset,
                } => {
                    self.metrics
                        .commits
                        .with_label_values(&["handed_over"])
                        .inc();
                    self.source.commit(partition, generation, offset);
                }
                Action::Answer {
                    revocation,
                    offsets,
                } => self.source.answer(revocation, offsets),
                Action::Abandon {
                    partition,
                    generation,
                } => self.abandon(partition, generation),
                Action::Pause => tracing::debug!("taking no records"),
                Action::Resume => tracing::debug!("taking records again"),
                Action::Fault(text) => return Err(FanoutError::Order { text }),
            }
        }
        Ok(())
    }

    fn start(&mut self, job: Job, record: Consumed) {
        let token = self
            .tokens
            .entry((job.partition, job.generation))
            .or_default()
            .clone();
        let lane = Arc::clone(&self.lane);
        let _abort = self.work.spawn(async move {
            let work = AssertUnwindSafe(lane.handle(record)).catch_unwind();
            let ended = tokio::select! {
                outcome = work => match outcome {
                    Ok(Ok(())) => Ended::Finished,
                    Ok(Err(error)) => Ended::Failed(error),
                    Err(panic) => Ended::Failed(FanoutError::panicked(&*panic)),
                },
                () = token.cancelled() => Ended::Abandoned,
            };
            (job, ended)
        });
    }

    fn abandon(&mut self, partition: i32, generation: u64) {
        for (_, token) in self
            .tokens
            .extract_if((partition, 0)..=(partition, generation), |_, _| true)
        {
            token.cancel();
        }
    }

    fn tick(&mut self) -> Result<(), FanoutError> {
        self.step(Input::Tick, None)?;
        let summary = self.state.summary(self.now_us());
        let gauge = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        self.metrics.assigned.set(gauge(summary.assigned));
        self.metrics.records_in_flight.set(gauge(summary.in_work));
        #[expect(clippy::cast_precision_loss, reason = "a gauge of seconds")]
        self.metrics
            .oldest_unfinished
            .set(summary.oldest_us as f64 / 1e6);
        self.metrics.enter(match summary {
            s if s.draining => "draining",
            s if s.paused => "paused",
            s if s.assigned == 0 => "standby",
            _ => "running",
        });
        let waiting = self.lane.attempts.outages.waiting();
        self.health.turned();
        self.health.set(
            "consumer",
            self.source.is_polling() && !summary.lost,
            "polls its group, which answers, assigned or standby",
        );
        self.health.set(
            "dependencies",
            waiting == 0,
            format!("{waiting} steps wait for one to answer"),
        );
        Ok(())
    }

    fn now_us(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX)
    }
}

/// Waits until the deadline, for ever without one.
async fn expired(deadline: Option<tokio::time::Instant>) {
    match deadline {
        Some(at) => sleep_until(at).await,
        None => std::future::pending().await,
    }
}
