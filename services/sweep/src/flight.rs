//! How much is in flight, and with that whether the broker tells.
//!
//! Owns the gauge of what is in flight, counted from the lag of the groups and not from the ledger,
//! so that the two can be compared (D-9), and the part `kafka` of the readiness: a sweep with
//! nothing to ask the broker for would not notice otherwise that it cannot send anything again.
//! Promise: one question at a time, each bounded by the client; a failure is told once and the
//! question asked again.

use std::time::Duration;

use events::Stage;
use runtime::{Health, Shutdown, report::chain};
use tokio::time::sleep;

use crate::{
    error::SweepError,
    event_loop::Places,
    metrics::{CHORE_ACCOUNT, gauge},
    source::hops,
};

/// Measures until `shutdown`.
pub(crate) async fn watch(places: Places, health: Health, every: Duration, shutdown: Shutdown) {
    let mut told = String::new();
    while !shutdown.is_requested() {
        let measured = tokio::select! {
            measured = measure(&places) => measured,
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

/// Puts the lag of each stage's groups into its gauge.
async fn measure(places: &Places) -> Result<(), SweepError> {
    let metrics = &places.metrics;
    let unpublished = metrics
        .missing
        .with_label_values(&[Stage::Published.as_str()])
        .get();
    for stage in Stage::ALL {
        let mut flight = unpublished;
        for hop in stage.hops() {
            let marks = hops::marks(&places.admin, &places.namespace, &hop).await?;
            flight += hops::lag(&marks);
        }
        metrics
            .in_flight
            .with_label_values(&[stage.as_str()])
            .set(gauge(flight));
    }
    Ok(())
}
