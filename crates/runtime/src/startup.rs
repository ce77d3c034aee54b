//! Riding over dependencies that are still booting.
//!
//! Owns the waiting; what is tried, and whether a failure can pass, the caller says.

use std::{error::Error, fmt, future::Future, time::Duration};

use tokio::time::Instant;
use tracing::{info, warn};

use crate::{Health, Shutdown, report::chain};

const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Why a dependency was given up.
#[derive(Debug)]
pub enum GivenUp<E> {
    /// The failure cannot pass by waiting.
    Final(E),
    /// It kept failing for the whole budget; the last failure.
    OutOfBudget(E),
    /// The process was asked to stop first.
    Shutdown,
}

impl<E: fmt::Display> fmt::Display for GivenUp<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Final(error) => error.fmt(f),
            Self::OutOfBudget(error) => write!(f, "out of start-up budget: {error}"),
            Self::Shutdown => f.write_str("asked to stop during start-up"),
        }
    }
}

impl<E: Error + 'static> Error for GivenUp<E> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Final(error) | Self::OutOfBudget(error) => error.source(),
            Self::Shutdown => None,
        }
    }
}

/// Tries until it works, with jittered pauses of 0.1 to 5 s, for at most `budget`.
///
/// The named dependency is a readiness condition meanwhile, and each kind of failure is logged
/// once. `passes` says whether a failure can pass by waiting.
///
/// # Errors
/// [`GivenUp`], with the last failure.
pub async fn wait_for<T, E, F, Fut>(
    dependency: &'static str,
    budget: Duration,
    health: &Health,
    shutdown: &Shutdown,
    passes: impl Fn(&E) -> bool,
    mut attempt: F,
) -> Result<T, GivenUp<E>>
where
    E: Error + 'static,
    F: FnMut() -> Fut,
    Fut: Future<Output = Result<T, E>>,
{
    let deadline = Instant::now() + budget;
    let mut pause = FIRST_PAUSE;
    let mut told = String::new();
    health.set(dependency, false, "not answered yet");
    loop {
        let outcome = tokio::select! {
            outcome = attempt() => outcome,
            () = shutdown.requested() => return Err(GivenUp::Shutdown),
        };
        let error = match outcome {
            Ok(value) => {
                health.set(dependency, true, "answered");
                if !told.is_empty() {
                    info!(dependency, "dependency answered");
                }
                return Ok(value);
            }
            Err(error) => error,
        };
        if !passes(&error) {
            return Err(GivenUp::Final(error));
        }
        let text = chain(&error).to_string();
        health.set(dependency, false, text.clone());
        if text != told {
            warn!(dependency, error = %text, "waiting for dependency");
            told = text;
        }
        if Instant::now() + pause >= deadline {
            return Err(GivenUp::OutOfBudget(error));
        }
        let jittered = pause.mul_f64(0.5 + fastrand::f64());
        tokio::select! {
            () = tokio::time::sleep(jittered) => {}
            () = shutdown.requested() => return Err(GivenUp::Shutdown),
        }
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}
