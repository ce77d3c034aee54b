//! What keeps the account small and the outbox writable: days, compaction, trimming.
//!
//! Owns when each part is done. Promise: no part hinders another, a part that fails is told once
//! and done again, and a day that cannot be dropped is tried with growing pauses, so that its lock
//! is never in anybody's way for long (D-11 is `database::outbox::drop_day`'s).

use std::time::{Duration, Instant};

use database::{Client, clock, delivery_ledger, outbox};
use events::Stage;
use runtime::{Shutdown, report::chain};
use tokio::time::sleep;

use crate::{
    core::{
        days::{self, Day},
        voids,
    },
    error::SweepError,
    event_loop::Places,
    metrics::{SweepMetrics, gauge},
    source::notes::{self, Notes},
};

/// How often days are made; at the start too.
const DAYS_EVERY: Duration = Duration::from_secs(3_600);
/// The first pause after a day could not be dropped; doubled after each, up to an hour.
const HELD_FOR: Duration = Duration::from_secs(5);
const HELD_AT_MOST: Duration = Duration::from_secs(3_600);
/// Blocks that one round folds; the most crowded first.
const BLOCKS: i64 = 16;

/// The housekeeping of one process. Several at once are safe, and share.
#[derive(Debug)]
pub(crate) struct Housekeeping {
    places: Places,
    retention_days: u16,
    every: Duration,
    days_at: Option<Instant>,
    /// Since when and for how long the drop of days is left alone.
    held: Option<(Instant, Duration)>,
    notes: Option<Notes>,
    told: String,
}

impl Housekeeping {
    pub(crate) const fn new(places: Places, retention_days: u16, every: Duration) -> Self {
        Self {
            places,
            retention_days,
            every,
            days_at: None,
            held: None,
            notes: None,
            told: String::new(),
        }
    }

    /// Runs until `shutdown`.
    pub(crate) async fn run(mut self, shutdown: Shutdown) {
        loop {
            let began = Instant::now();
            tokio::select! {
                () = self.round() => {}
                () = shutdown.requested() => return,
            }
            self.places
                .metrics
                .chore_seconds
                .observe(began.elapsed().as_secs_f64());
            tokio::select! {
                () = sleep(self.every) => {}
                () = shutdown.requested() => return,
            }
        }
    }

    async fn round(&mut self) {
        let days = self.make_days().await;
        self.judge("days", days);
        let dropped = self.drop_days().await;
        self.judge("drop", dropped);
        let compacted = self.compact().await;
        self.judge("compact", compacted);
        let trimmed = self.trim().await;
        self.judge("trim", trimmed);
        let merged = self.merge_gaps().await;
        self.judge("voids", merged);
    }

    fn judge(&mut self, part: &'static str, outcome: Result<(), SweepError>) {
        let Err(error) = outcome else { return };
        let metrics = &self.places.metrics;
        metrics.chore_failures.with_label_values(&[part]).inc();
        let text = format!("{part}: {}", chain(&error));
        if text != self.told {
            tracing::warn!(part, error = %chain(&error), "housekeeping failed, it is done again");
            self.told = text;
        }
    }

    /// Makes the days that there must be, and looks at the default partition.
    async fn make_days(&mut self) -> Result<(), SweepError> {
        let client = self.places.pool.get().await?;
        let metrics = &self.places.metrics;
        let rows = outbox::default_rows(&client).await?;
        if rows > metrics.default_rows.get() {
            tracing::error!(
                rows,
                "rows in the default partition: their day was not made; move them with \
                 `insert … overriding system value` into the day once it is there"
            );
        }
        metrics.default_rows.set(rows);
        let is_due = self.days_at.is_none_or(|at| at.elapsed() >= DAYS_EVERY);
        if !is_due {
            return Ok(());
        }
        let days = outbox::ensure_days(&client, u32::from(self.retention_days)).await?;
        if days.created > 0 {
            tracing::info!(days = days.created, "outbox days made");
            metrics
                .days
                .with_label_values(&["made"])
                .add(i64::from(days.created));
        }
        if days.blocked > 0 {
            tracing::error!(
                days = days.blocked,
                "outbox days cannot be made while the default partition holds rows of them"
            );
        }
        // What was in the way is tried again next time.
        if days.busy == 0 && days.blocked == 0 {
            self.days_at = Some(Instant::now());
        }
        Ok(())
    }

    /// Drops the days that are old and finished (D-11).
    async fn drop_days(&mut self) -> Result<(), SweepError> {
        if self.held.is_some_and(|(at, pause)| at.elapsed() < pause) {
            return Ok(());
        }
        let mut client = self.places.pool.get().await?;
        let old = self.old_days(&client).await?;
        let mut held = 0;
        for date in old {
            if !drop_day(&mut client, &date, &self.places.metrics).await? {
                held += 1;
            }
        }
        let metrics = &self.places.metrics;
        metrics.days.with_label_values(&["held"]).set(held);
        metrics.day_held.set(i64::from(held > 0));
        self.held = (held > 0).then(|| {
            let pause = self.held.map_or(HELD_FOR, |(_, pause)| pause * 2);
            (Instant::now(), pause.min(HELD_AT_MOST))
        });
        Ok(())
    }

    /// The dates past their retention, oldest first.
    async fn old_days(&self, client: &Client) -> Result<Vec<String>, SweepError> {
        let today = Day::of(clock::now(client).await?);
        let all = outbox::days(client).await?;
        let metrics = &self.places.metrics;
        metrics
            .days
            .with_label_values(&["kept"])
            .set(gauge(all.len()));
        Ok(all
            .into_iter()
            .filter(|day| days::is_old(Day::of(day.since_us), today, self.retention_days))
            .map(|day| day.date)
            .collect())
    }

    /// Folds ledger rows together.
    async fn compact(&self) -> Result<(), SweepError> {
        let mut client = self.places.pool.get().await?;
        for stage in Stage::ALL {
            for block in delivery_ledger::crowded_blocks(&client, stage, BLOCKS).await? {
                let done = delivery_ledger::compact_block(&mut client, stage, block).await?;
                let saved = done.before.saturating_sub(done.after);
                self.places.metrics.compacted_rows.inc_by(saved);
            }
            let joined = delivery_ledger::join_complete(&mut client, stage).await?;
            self.places.metrics.compacted_rows.inc_by(joined);
        }
        Ok(())
    }

    /// Joins notes of gaps, so that there are never many.
    async fn merge_gaps(&mut self) -> Result<(), SweepError> {
        let client = self.places.pool.get().await?;
        let notes = Notes::read(&client, self.notes.take()).await?;
        let revision = voids::merge(&notes.noted, &notes.snapshot);
        self.notes = Some(notes);
        notes::apply(&client, &revision).await?;
        Ok(())
    }

    /// Deletes what is noted about events whose day is gone.
    async fn trim(&self) -> Result<(), SweepError> {
        let client = self.places.pool.get().await?;
        let rows = outbox::trim(&client).await?;
        if rows > 0 {
            tracing::info!(rows, "notes about dropped days deleted");
        }
        Ok(())
    }
}

/// Whether the day is gone.
async fn drop_day(
    client: &mut Client,
    date: &str,
    metrics: &SweepMetrics,
) -> Result<bool, SweepError> {
    let critical: Vec<Stage> = Stage::ALL.into_iter().filter(|s| s.critical()).collect();
    match outbox::drop_day(client, date, &critical).await? {
        outbox::DropOutcome::Dropped { rows } => {
            tracing::info!(date, rows, "outbox day dropped");
            metrics.days.with_label_values(&["dropped"]).inc();
            Ok(true)
        }
        outbox::DropOutcome::Absent => Ok(true),
        outbox::DropOutcome::Unfinished {
            stage,
            count,
            sample,
        } => {
            let sample: Vec<i64> = sample.into_iter().map(|event| event.0).collect();
            tracing::error!(
                date,
                stage = stage.as_str(),
                count,
                ?sample,
                "outbox day is past its retention and holds unfinished rows: it stays"
            );
            Ok(false)
        }
        outbox::DropOutcome::Busy { holders } => {
            tracing::warn!(
                date,
                holders,
                "outbox day cannot be dropped yet: it is held"
            );
            Ok(false)
        }
    }
}
