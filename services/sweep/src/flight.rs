//! How much is in flight, and with that whether the broker tells.
//!
//! Owns the gauge of what is in flight, which the position of the slot and the lag of the groups
//! tell, so that it can be compared with what is unaccounted for (D-9), and the part `kafka` of the
//! readiness: a sweep with nothing to ask the broker for would not notice otherwise that it cannot
//! send anything again.
//! Promise: one question at a time, each bounded by the client; a failure is told once and the
//! question asked again.

use std::time::Duration;

use events::Stage;
use runtime::{Health, Shutdown, report::chain};
use tokio::time::sleep;

use crate::{
    core::{
        Mode, SlotView,
        flight::{self, Marked},
    },
    error::SweepError,
    event_loop::Places,
    metrics::{CHORE_ACCOUNT, gauge},
    source::{hops, life},
};

/// Measures until `shutdown`.
pub(crate) async fn watch(
    places: Places,
    mode: Mode,
    health: Health,
    every: Duration,
    shutdown: Shutdown,
) {
    let mut told = String::new();
    while !shutdown.is_requested() {
        let measured = tokio::select! {
            measured = measure(&places, mode) => measured,
            () = shutdown.requested() => return,
        };
        let (answers, detail) = match measured {
            Ok(()) => (true, "answers".to_owned()),
            Err(error) => (false, chain(&error).to_string()),
        };
        if answers {
            told.clear();
        } else {
            let failures = &places.metrics.chore_failures;
            failures.with_label_values(&[CHORE_ACCOUNT]).inc();
            if told != detail {
                tracing::warn!(error = detail, "what is in flight cannot be measured");
                told.clone_from(&detail);
            }
        }
        health.set("kafka", answers, detail);
        tokio::select! {
            () = sleep(every) => {}
            () = shutdown.requested() => return,
        }
    }
}

/// Puts what each stage has before it into its gauge.
async fn measure(places: &Places, mode: Mode) -> Result<(), SweepError> {
    let metrics = &places.metrics;
    let unpublished = unpublished(places, mode).await;
    for stage in Stage::ALL {
        let mut flight = gauge(unpublished);
        for hop in stage.hops() {
            let marks = hops::marks(&places.admin, &places.namespace, &hop).await?;
            flight += hops::lag(&marks);
        }
        metrics
            .in_flight
            .with_label_values(&[stage.as_str()])
            .set(flight);
    }
    Ok(())
}

/// What is not published and on its way there. While Postgres does not tell where the slot is,
/// all that is missing counts; the looks report the failure.
async fn unpublished(places: &Places, mode: Mode) -> u64 {
    let published = Stage::Published.as_str();
    let metrics = &places.metrics;
    let missing = metrics.missing.with_label_values(&[published]).get();
    let missing = missing.unsigned_abs();
    if missing == 0 {
        return 0;
    }
    match slot(places).await {
        Ok(slot) => {
            let marked = Marked {
                events: metrics.marked.get().unsigned_abs(),
                lsn: metrics.mark_lsn.get().unsigned_abs(),
            };
            flight::unpublished(mode, missing, marked, &slot)
        }
        Err(error) => {
            tracing::debug!(error = %chain(&error), "where the slot is cannot be read");
            missing
        }
    }
}

async fn slot(places: &Places) -> Result<SlotView, SweepError> {
    let client = places.pool.get().await?;
    life::slot(&client, &places.slot, &places.database).await
}
