//! The relay is away, or slow.

use std::time::{Duration, Instant};

use anyhow::Context;
use events::Stage;
use testkit::Service;

use super::{Cast, LIMIT, Proof, Scenario, Stands, Sweep};
use crate::{Run, account::Missing, census, metrics, run::INTERVAL};

/// So many rounds of the sweep have to see the backlog.
const ROUNDS: u32 = 4;
/// So far behind, which is many rounds of the sweep and no fault.
const BEHIND: Duration = Duration::from_secs(125);
const BEHIND_WITHIN: Duration = Duration::from_secs(330);
/// It takes so long for each record: a third of what the load makes.
const SLOW: (&str, &str) = ("FAILPOINTS", "relay::produced=sleep(100)");
const SLOW_LIMIT: Duration = Duration::from_secs(540);
const PUBLISHED_WITHIN: Duration = Duration::from_secs(60);

/// How long a backlog has to last for the sweep to look at it several times.
pub(super) const fn several_rounds(run: &Run) -> Duration {
    INTERVAL.saturating_add(run.grace()).saturating_mul(ROUNDS)
}

/// The faults of this family.
pub(super) const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "relay-absent",
        about: "no relay is ever started",
        covers: &[],
        cast: Cast {
            relay: false,
            ..Cast::ONE_OF_EACH
        },
        fault: |run| Box::pin(absent(run)),
        sweep: Sweep::Heals,
        limit: LIMIT,
        quick: false,
        stands: Stands::Green,
    },
    Scenario {
        name: "relay-throttled",
        about: "the relay is so slow that it falls two minutes behind",
        covers: &[],
        cast: Cast {
            relay_env: &[SLOW],
            pace: Duration::from_millis(120),
            ..Cast::ONE_OF_EACH
        },
        fault: |run| Box::pin(throttled(run)),
        sweep: Sweep::Silent,
        limit: SLOW_LIMIT,
        quick: false,
        stands: Stands::Green,
    },
];

/// Nobody streams the outbox: after its patience the sweep publishes everything.
async fn absent(run: &mut Run) -> anyhow::Result<Proof> {
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
    let census = census::read(run.flow()).await?;
    let sent = census.by_sweep();
    Ok((confirmed == 0 && census.relay.is_empty() && sent > 0)
        .then(|| format!("no record and no position of a relay, {sent} records by the sweep")))
}

/// The relay is only slow: its backlog is none of the sweep's business (C59).
async fn throttled(run: &mut Run) -> anyhow::Result<Proof> {
    const LOOKS: &str = "tideline_sweep_look_seconds_count";
    let looks = |run: &mut Run| -> anyhow::Result<f64> {
        metrics::sum(&run.scrape("sweep")?, LOOKS).context("no such metric")
    };
    let before = looks(run)?;
    let mut longest = Backlog::default();
    let begun = Instant::now();
    let mut active = true;
    while longest.oldest < BEHIND && begun.elapsed() < BEHIND_WITHIN {
        longest.see(run).await?;
        active &= super::slot::is_active(run).await?;
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    let taken = looks(run)? - before;
    // It has been slow, not away; now it is as quick as it can be.
    // In good order: a relay that is killed leaves entries of the ledger behind.
    run.stop("relay").await?;
    run.start("relay", Service::Relay, &[]).await;
    run.fault_over().await?;
    let behind = active && longest.oldest >= Duration::from_secs(120);
    Ok(longest
        .proof(run, "the relay was slow")
        .filter(|_| behind)
        .map(|proof| format!("{proof}; {taken} looks were taken meanwhile")))
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
    pub(super) fn proof(&self, run: &Run, what: &str) -> Proof {
        (self.oldest >= several_rounds(run) && self.by_sweep > 0.0).then(|| {
            format!(
                "{what}: up to {} events for up to {:.1?}, of which a look of the sweep saw {}",
                self.count, self.oldest, self.by_sweep
            )
        })
    }
}
