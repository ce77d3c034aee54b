//! Requests to the sweep, off the path of any offset.
//!
//! Promise: a request that was made is entered, however long Postgres is away, unless the process
//! ends before; several that wait are one. The sweep looks by itself as well, only later.

use std::sync::Arc;

use database::{Pool, sweep_requests};
use runtime::report::chain;
use tokio::sync::Notify;
use tokio_util::task::AbortOnDropHandle;

use crate::{core::retry::pause, metrics::FanoutMetrics};

/// The reason as the table has it.
const OFFSET_LOST: &str = "offset_lost";

/// Takes requests.
#[derive(Debug)]
pub(crate) struct Requests {
    asked: Arc<Notify>,
    _task: AbortOnDropHandle<()>,
}

impl Requests {
    /// Starts the task that enters them; it ends with this handle.
    pub(crate) fn start(pool: Pool, metrics: FanoutMetrics) -> Self {
        let asked = Arc::new(Notify::new());
        let task = tokio::spawn(enter(pool, metrics, Arc::clone(&asked)));
        Self {
            asked,
            _task: AbortOnDropHandle::new(task),
        }
    }

    /// Asks for a look, since records were lost to this group. Never waits.
    pub(crate) fn offset_lost(&self) {
        self.asked.notify_one();
    }
}

async fn enter(pool: Pool, metrics: FanoutMetrics, asked: Arc<Notify>) {
    loop {
        asked.notified().await;
        let mut failures = 0_u32;
        loop {
            let outcome =
                async { sweep_requests::add(&pool.get().await?, OFFSET_LOST, None).await };
            let Err(error) = outcome.await else { break };
            failures = failures.saturating_add(1);
            if failures.is_power_of_two() {
                tracing::warn!(failures, error = %chain(&error), "sweep not asked yet");
            }
            tokio::time::sleep(pause(failures, fastrand::f64())).await;
        }
        metrics.sweep_requests.inc();
        tracing::info!(reason = OFFSET_LOST, "sweep asked to look");
    }
}
