//! Does one step until it works, as `core::retry` says, and knows how many steps wait (D-12).

use std::{
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use events::Class;
use runtime::report::chain;
use tokio::sync::Notify;

use crate::{
    core::retry::{Verdict, verdict},
    error::FanoutError,
    metrics::FanoutMetrics,
};

/// An unknown outcome that repeats means that the dependency cannot keep up.
const UNSURE_IS_PRESSURE: u32 = 2;

/// How many pieces of work wait for a dependency.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outages(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    waiting: AtomicUsize,
    changed: Notify,
}

impl Outages {
    pub(crate) fn waiting(&self) -> usize {
        self.0.waiting.load(Ordering::Acquire)
    }

    /// Waits for the number to change.
    ///
    /// # Cancel safety
    /// Cancel safe: a change that nobody waits for is kept.
    pub(crate) async fn changed(&self) {
        self.0.changed.notified().await;
    }

    fn wait(&self) -> Waiting {
        let _before = self.0.waiting.fetch_add(1, Ordering::AcqRel);
        self.0.changed.notify_one();
        Waiting(self.clone())
    }
}

/// One piece of work that waits; dropped when it no longer does, also by cancellation.
struct Waiting(Outages);

impl Drop for Waiting {
    fn drop(&mut self) {
        let shared = &self.0.0;
        let _before = shared.waiting.fetch_sub(1, Ordering::AcqRel);
        shared.changed.notify_one();
    }
}

/// How steps are tried.
#[derive(Clone, Debug)]
pub(crate) struct Attempts {
    pub(crate) outages: Outages,
    pub(crate) metrics: FanoutMetrics,
}

/// Why a step is not tried again.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The record is permanently wrong.
    Record {
        /// What is wrong.
        error: FanoutError,
        /// How often the step was tried.
        attempts: u32,
    },
    /// The lane cannot go on.
    Stop(FanoutError),
}

impl Attempts {
    /// Does `work` until it works. Outages and unknown outcomes are waited out without limit.
    pub(crate) async fn until_done<T, E, F, Fut>(
        &self,
        step: &'static str,
        mut work: F,
    ) -> Result<T, Failure>
    where
        E: Into<FanoutError>,
        F: FnMut() -> Fut,
        Fut: Future<Output = Result<T, E>>,
    {
        let mut failures = 0_u32;
        let mut waiting = None;
        loop {
            let error: FanoutError = match work().await {
                Ok(done) => return Ok(done),
                Err(error) => error.into(),
            };
            failures = failures.saturating_add(1);
            let class = error.class();
            match verdict(class, failures, fastrand::f64()) {
                Verdict::DeadLetter => {
                    return Err(Failure::Record {
                        error,
                        attempts: failures,
                    });
                }
                Verdict::Stop(_) => return Err(Failure::Stop(error)),
                Verdict::Again(pause) => {
                    self.metrics
                        .retries
                        .with_label_values(&[class.as_str()])
                        .inc();
                    if failures.is_power_of_two() {
                        tracing::warn!(step, failures, class = class.as_str(), error = %chain(&error), "step failed, trying again");
                    }
                    let is_pressure = class == Class::Outage || failures >= UNSURE_IS_PRESSURE;
                    if is_pressure && waiting.is_none() {
                        waiting = Some(self.outages.wait());
                    }
                    tokio::time::sleep(pause).await;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU32;

    use kafka::ProduceError;
    use prometheus::Registry;

    use super::*;

    /// D-12: a step that fails again and again ends only by working, and counts as waiting
    /// meanwhile.
    #[tokio::test]
    async fn d_12_outcomes_that_are_unknown_are_tried_until_they_are_known() {
        let metrics = FanoutMetrics::new(&Registry::new()).expect("registers");
        let attempts = Attempts {
            outages: Outages::default(),
            metrics,
        };
        let calls = AtomicU32::new(0);
        let outages = attempts.outages.clone();
        let done: Result<u32, Failure> = attempts
            .until_done("test", || async {
                let call = calls.fetch_add(1, Ordering::Relaxed) + 1;
                match call {
                    0..5 => {
                        assert_eq!(outages.waiting(), usize::from(call > 2));
                        let error = ProduceError::TimedOut {
                            topic: "t".into(),
                            waited: std::time::Duration::ZERO,
                        };
                        Err(FanoutError::DeadLetter(error))
                    }
                    _ => Ok(call),
                }
            })
            .await;
        assert!(matches!(done, Ok(5)));
        assert_eq!(attempts.outages.waiting(), 0);
        assert_eq!(
            attempts
                .metrics
                .retries
                .with_label_values(&["unsure"])
                .get(),
            4
        );
    }
}
