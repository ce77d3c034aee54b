//! Turns what a round wants into one call each, and what came of it into what it sees.
//!
//! Decides nothing. Promise: one call at a time; a call that fails is told once per kind of
//! failure and reported as failed, however long the outage is (D-12); a claim that has begun is
//! ended in good order when the process is asked to stop.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use database::Pool;
use events::{Namespace, Stage};
use kafka::Admin;
use runtime::{Health, Shutdown, report::chain};
use tokio::{sync::watch, time::sleep};

use crate::{
    core::{Claimed, Look, Moment, Next, Round, Seen, Standing, Want},
    error::SweepError,
    metrics::SweepMetrics,
    requests::{Asked, Requests},
    sink::redeliver::Redeliver,
    source::{hops, life, missing::Looks},
};

/// The round of one stage with everything it needs.
#[derive(Debug)]
pub(crate) struct StageLoop {
    pub(crate) stage: Stage,
    pub(crate) looks: Looks,
    pub(crate) redeliver: Redeliver,
    round: Round,
    places: Places,
    requests: Arc<Requests>,
    asked: watch::Receiver<Asked>,
    health: Health,
    began: Instant,
    looked_at: Instant,
    /// Looks for the gauges while the round waits with a look of a while ago.
    gauges: Looks,
    measured_at: Instant,
    told: String,
    tally: Tally,
}

/// Where positions are read.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    pub(crate) pool: Pool,
    pub(crate) admin: Admin,
    pub(crate) namespace: Namespace,
    /// Name of the relay's slot.
    pub(crate) slot: String,
    /// Name of the database, which the slot must be of.
    pub(crate) database: String,
    /// For how long gauges may be of one look.
    pub(crate) gauges_for: Duration,
    pub(crate) metrics: SweepMetrics,
}

/// What a loop did since it began.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    /// Looks taken.
    pub(crate) looks: u64,
    /// Missing ids, each look's counted anew.
    pub(crate) missing: u64,
    /// Events sent again and acknowledged.
    pub(crate) redelivered: u64,
    /// Events given up.
    pub(crate) discarded: u64,
    /// Missing events that were left alone, those that arrived meanwhile not included.
    pub(crate) left: u64,
    /// The step that fails and why, until it succeeds.
    pub(crate) failing: Option<(&'static str, String)>,
}

impl StageLoop {
    pub(crate) fn new(
        round: Round,
        looks: Looks,
        redeliver: Redeliver,
        places: Places,
        requests: Arc<Requests>,
        health: Health,
    ) -> Self {
        Self {
            stage: looks.stage(),
            gauges: looks.for_gauges(),
            measured_at: Instant::now(),
            looks,
            redeliver,
            round,
            places,
            asked: requests.listen(),
            requests,
            health,
            began: Instant::now(),
            looked_at: Instant::now(),
            told: String::new(),
            tally: Tally::default(),
        }
    }

    /// Runs until `shutdown`.
    pub(crate) async fn run(mut self, shutdown: Shutdown) {
        while !shutdown.is_requested() {
            self.turn(&shutdown).await;
        }
    }

    /// Runs until what was missing at one look is dealt with, `patience` is over, or `shutdown`.
    /// Whether it was dealt with.
    pub(crate) async fn run_once(&mut self, patience: Duration, shutdown: &Shutdown) -> bool {
        let over = Shutdown::new();
        let stop = over.clone();
        let limit = async move {
            tokio::select! {
                () = sleep(patience) => {}
                () = shutdown.requested() => {}
            }
            stop.trigger();
            // The work ends in good order by itself.
            std::future::pending::<()>().await;
        };
        let work = async {
            while !self.round.done_once() && !over.is_requested() {
                self.turn(&over).await;
            }
        };
        tokio::select! {
            () = work => {}
            () = limit => {}
        }
        self.round.done_once()
    }

    /// What it did, and how it stands.
    pub(crate) fn state(&self) -> (&Tally, Standing) {
        (&self.tally, self.round.standing())
    }

    /// One step: waits, or does what the round wants.
    async fn turn(&mut self, shutdown: &Shutdown) {
        self.refresh_gauges().await;
        match self.round.next(self.now()) {
            Next::WaitUntil(at) => {
                let pause = Duration::from_micros(at.since(self.now()));
                tokio::select! {
                    () = sleep(pause) => {}
                    Ok(()) = self.asked.changed() => self.round.request(self.now()),
                    () = shutdown.requested() => {}
                }
            }
            Next::Do(want) => {
                let seen = self.perform(&want, shutdown).await;
                self.round.see(seen, self.now());
                self.tell();
            }
        }
    }

    /// A round may wait for a relay or a group for long; what is missing is told meanwhile.
    async fn refresh_gauges(&mut self) {
        let fresh = |at: Instant| at.elapsed() < self.places.gauges_for;
        if fresh(self.looked_at) || fresh(self.measured_at) {
            return;
        }
        self.measured_at = Instant::now();
        let asked = *self.asked.borrow();
        // Where Postgres is away, the step of the round fails too, and tells it.
        let _measured = self.gauges.take(asked).await;
    }

    async fn perform(&mut self, want: &Want, shutdown: &Shutdown) -> Seen {
        let outcome = match want {
            // Between two batches it looks at `shutdown` itself.
            Want::Claim(look) => self.claim(look, shutdown).await,
            want => tokio::select! {
                outcome = self.ask(want) => outcome,
                () = shutdown.requested() => return Seen::Failed,
            },
        };
        match outcome {
            Ok(seen) => {
                self.succeeded(want, &seen);
                seen
            }
            Err(error) => {
                self.failed(want, &error);
                Seen::Failed
            }
        }
    }

    async fn ask(&mut self, want: &Want) -> Result<Seen, SweepError> {
        match want {
            Want::Look => self.look().await.map(Seen::Looked),
            Want::Slot => {
                let places = &self.places;
                let mut client = places.pool.get().await?;
                let slot = life::slot(&client, &places.slot, &places.database).await?;
                // After the slot: a position of an earlier life never goes with a later one.
                let life = life::here(&mut client, &places.metrics).await?;
                Ok(Seen::Slot { life, slot })
            }
            Want::Hop(index) => {
                let hops = self.stage.hops();
                let Some(hop) = hops.get(*index) else {
                    // The round was made for as many hops as the stage has.
                    return Ok(Seen::Hop(Vec::new()));
                };
                let places = &self.places;
                let marks = hops::marks(&places.admin, &places.namespace, hop).await?;
                Ok(Seen::Hop(marks))
            }
            Want::Probe => {
                if let Err(error) = self.redeliver.probe().await {
                    tracing::warn!(error = %chain(&error), "probe not acknowledged: the broker takes no records");
                    return Ok(Seen::Probed(false));
                }
                Ok(Seen::Probed(true))
            }
            Want::Claim(_) => Ok(Seen::Failed),
        }
    }

    async fn look(&mut self) -> Result<Look, SweepError> {
        let asked = *self.asked.borrow_and_update();
        self.looked_at = Instant::now();
        let taken = self.looks.take(asked).await?;
        fail::fail_point!("sweep::looked");
        self.requests.looked(self.stage, asked.version);
        let stage = self.stage.as_str();
        let metrics = &self.places.metrics;
        metrics
            .look_seconds
            .with_label_values(&[stage])
            .observe(self.looked_at.elapsed().as_secs_f64());
        self.tally.looks += 1;
        self.tally.missing += taken.ids.len() as u64;
        if taken.ids.is_empty() {
            self.round_ended();
        } else {
            // Usual beside a busy relay, which has not passed it yet.
            tracing::debug!(
                stage,
                missing = taken.ids.len(),
                more = taken.truncated,
                at_us = taken.taken_us.0,
                "missing"
            );
        }
        Ok(taken)
    }

    async fn claim(&mut self, look: &Look, shutdown: &Shutdown) -> Result<Seen, SweepError> {
        let claimed = self.redeliver.claim(look, shutdown).await?;
        let Claimed {
            redelivered,
            discarded,
            left,
            more,
        } = claimed;
        self.tally.redelivered += redelivered;
        self.tally.discarded += discarded;
        self.tally.left += left;
        let missing = look.ids.len();
        let stage = self.stage.as_str();
        if redelivered > 0 || discarded > 0 {
            tracing::info!(
                stage,
                missing,
                redelivered,
                discarded,
                left,
                more,
                "claimed"
            );
        } else {
            tracing::debug!(stage, missing, left, more, "claimed nothing");
        }
        if !more {
            self.round_ended();
        }
        Ok(Seen::Claimed(claimed))
    }

    fn round_ended(&self) {
        let stage = self.stage.as_str();
        let metrics = &self.places.metrics;
        metrics.rounds.with_label_values(&[stage]).inc();
        metrics
            .round_seconds
            .with_label_values(&[stage])
            .observe(self.looked_at.elapsed().as_secs_f64());
    }

    /// A failure is over when its own step succeeds: a claim that fails is not mended by the
    /// position that is read before its next try. With nothing missing there is nothing to fail.
    fn succeeded(&mut self, want: &Want, seen: &Seen) {
        let is_empty = matches!(seen, Seen::Looked(look) if look.ids.is_empty());
        let failing = self.tally.failing.as_ref();
        if failing.is_some_and(|(failing, _)| is_empty || *failing == step(want)) {
            self.told.clear();
            self.tally.failing = None;
        }
    }

    fn failed(&mut self, want: &Want, error: &SweepError) {
        let step = step(want);
        let stage = self.stage.as_str();
        let labels = [stage, step];
        self.places
            .metrics
            .failures
            .with_label_values(&labels)
            .inc();
        let text = chain(error).to_string();
        if text != self.told {
            tracing::warn!(stage, step, error = %text, class = error.class().as_str(), "step failed, it is done again");
            self.told.clone_from(&text);
        }
        self.tally.failing = Some((step, text));
    }

    /// Says how it stands, where that is read.
    fn tell(&self) {
        let standing = self.round.standing();
        self.places.metrics.stand(self.stage, standing);
        let (holds, detail) = match &self.tally.failing {
            Some((step, text)) => (false, format!("{step}: {text}")),
            None => (true, words(standing).to_owned()),
        };
        self.health.set(self.stage.as_str(), holds, detail);
    }

    fn now(&self) -> Moment {
        Moment(u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX))
    }
}

/// The label of a step.
const fn step(want: &Want) -> &'static str {
    match want {
        Want::Look => "look",
        Want::Slot => "slot",
        Want::Hop(_) => "hop",
        Want::Probe => "probe",
        Want::Claim(_) => "claim",
    }
}

/// A standing for a person, with what to do about it.
pub(crate) const fn words(standing: Standing) -> &'static str {
    match standing {
        Standing::Idle => "nothing is missing, or it is dealt with",
        Standing::Waiting => "waiting until the relay or the group has passed a look",
        Standing::NoRelay => "no relay is live: what is missing is sent from here",
        Standing::Blocked => {
            "the relay or the group does not pass a look: nothing is sent again, look at its log"
        }
        Standing::OffsetLost => {
            "a group's offset lies beyond the end of its topic, which was made anew: \
             nothing is sent again until the group commits; start or restart it"
        }
    }
}
