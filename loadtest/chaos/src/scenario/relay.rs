//! The relay is away, or slow.

use std::time::{Duration, Instant};

use anyhow::Context;
use events::Stage;
use testkit::Signal;

use super::Proof;
use crate::{
    Run,
    account::{self, Missing},
    metrics,
    run::{GRACE, INTERVAL},
};

/// So many rounds of the sweep have to see the backlog.
const ROUNDS: u32 = 4;
/// Below the server's `wal_sender_timeout`, so that the slot stays active throughout.
const FROZEN: Duration = Duration::from_secs(16);
/// Then short breaks, during which it makes little progress.
const CYCLES: u32 = 6;
const PAUSED: Duration = Duration::from_millis(1_500);
const AT_WORK: Duration = Duration::from_millis(100);
const PUBLISHED_WITHIN: Duration = Duration::from_secs(60);

/// How long a backlog has to last for the sweep to look at it several times.
pub(super) const fn several_rounds() -> Duration {
    INTERVAL.saturating_add(GRACE).saturating_mul(ROUNDS)
}

/// Nobody streams the outbox: after its patience the sweep publishes everything.
pub(super) async fn absent(run: &mut Run) -> anyhow::Result<Proof> {
    const CONFIRMED: &str = "select count(*) from tideline.relay_position";
    run.fault_over().await?;
    run.until(PUBLISHED_WITHIN, "the sweep publishes", async |run| {
        let text = run.scrape("sweep")?;
        let sent = metrics::sum(&text, "tideline_sweep_redelivered_total");
        Ok((sent.context("no such metric")? > 0.0).then_some(()))
    })
    .await?;
    let sql = run.flow().sql().get().await?;
    let confirmed: i64 = sql.query_one(CONFIRMED, &[]).await?.get(0);
    let census = account::census(run.flow()).await?;
    let sent = census.by_sweep();
    Ok((confirmed == 0 && census.relay.is_empty() && sent > 0)
        .then(|| format!("no record and no position of a relay, {sent} records by the sweep")))
}

/// The relay is only slow: its backlog is none of the sweep's business (C59).
pub(super) async fn throttled(run: &mut Run) -> anyhow::Result<Proof> {
    let mut longest = Backlog::default();
    run.signal("relay", Signal::Stop)?;
    let begun = Instant::now();
    while begun.elapsed() < FROZEN {
        longest.see(run).await?;
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    for _ in 0..CYCLES {
        run.signal("relay", Signal::Cont)?;
        tokio::time::sleep(AT_WORK).await;
        run.signal("relay", Signal::Stop)?;
        tokio::time::sleep(PAUSED).await;
        longest.see(run).await?;
    }
    run.signal("relay", Signal::Cont)?;
    run.fault_over().await?;
    Ok(longest.proof("the relay stood"))
}

/// The largest backlog that was seen, by Postgres and by the sweep.
#[derive(Debug, Default)]
pub(super) struct Backlog {
    oldest: Duration,
    count: i64,
    by_sweep: f64,
}

impl Backlog {
    /// Looks at what is not published now.
    ///
    /// # Errors
    /// When Postgres or the sweep does not answer.
    pub(super) async fn see(&mut self, run: &mut Run) -> anyhow::Result<()> {
        let Missing { count, oldest } = run.missing(Stage::Published).await?;
        self.count = self.count.max(count);
        self.oldest = self.oldest.max(oldest);
        let text = run.scrape("sweep")?;
        let seen = metrics::series(&text, "tideline_sweep_missing")
            .filter(|(labels, _)| labels.contains(Stage::Published.as_str()))
            .map(|(_, value)| value);
        self.by_sweep = seen.fold(self.by_sweep, f64::max);
        Ok(())
    }

    /// Whether the backlog has outlasted several rounds and the sweep has seen it.
    pub(super) fn proof(&self, what: &str) -> Proof {
        (self.oldest >= several_rounds() && self.by_sweep > 0.0).then(|| {
            format!(
                "{what}: up to {} events for up to {:.1?}, of which a look of the sweep saw {}",
                self.count, self.oldest, self.by_sweep
            )
        })
    }
}
