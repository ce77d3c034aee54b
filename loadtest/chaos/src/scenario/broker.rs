//! The broker is away: nothing can be published, by nobody.

use std::time::{Duration, Instant};

use anyhow::Context;
use events::Stage;
use testkit::{Server, Servers};

use super::{Cast, LIMIT, LONG, Proof, Scenario, Stands, Sweep, relay::Backlog};
use crate::{Run, bulk};

/// Longer than the relay's and the sweep's patience together.
const DOWN: Duration = Duration::from_secs(20);

/// The relay gives its connection up after 3 s, so the slot is inactive while the broker is away:
/// the sweep has to tell that from a relay that is gone, by its own probe.
const CAST: Cast = Cast {
    relay_env: &[("TIDELINE_RELAY__SINK_PATIENCE", "3s")],
    sweep_env: &[("TIDELINE_SWEEP__RELAY_PATIENCE", "15s")],
    ..Cast::ONE_OF_EACH
};

/// The faults of this family.
pub(super) const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "broker-down",
        about: "the broker is stopped for longer than several rounds of the sweep",
        covers: &[17],
        cast: CAST,
        fault: |run| Box::pin(down(run)),
        sweep: Sweep::Silent,
        limit: LIMIT,
        quick: false,
        stands: Stands::Green,
    },
    Scenario {
        name: "broker-down-bounded",
        about: "10000 events are committed while the broker is away, and the relay grows no further",
        covers: &[17],
        cast: BOUNDED,
        fault: |run| Box::pin(bounded(run)),
        sweep: Sweep::Silent,
        limit: LONG,
        quick: false,
        stands: Stands::Green,
    },
];

/// A relay that holds little, beside a sweep that leaves everything to it.
const BOUNDED: Cast = Cast {
    relay_env: &[
        ("TIDELINE_RELAY__MAX_ROWS_IN_FLIGHT", "500"),
        ("TIDELINE_RELAY__SINK_PATIENCE", "60s"),
    ],
    sweep_env: &[("TIDELINE_SWEEP__RELAY_PATIENCE", "90s")],
    ..Cast::ONE_OF_EACH
};

/// Whatever waits, the relay's memory stays what it was (D-13).
async fn bounded(run: &mut Run) -> anyhow::Result<Proof> {
    const TRANSACTIONS: i64 = 10;
    const ROWS: i64 = 1_000;
    const GROWTH_KIB: u64 = 32 * 1024;
    let quiet = run.flow().add_author(0).await?;
    let client = run.flow().client().clone();
    let mut sql = run.flow().pipeline().deployment().sql().await;
    let pid = run.process("relay")?.pid();
    let before = resident_kib(pid)?;
    let servers = Servers::get().await;
    let stopped = Stopped(servers);
    servers.stop(Server::Kafka).await;
    let (mut most, mut oldest, mut count) = (before, Duration::ZERO, 0);
    for number in 0..TRANSACTIONS {
        let transaction = sql.transaction().await?;
        let prefix = format!("waiting-{number}");
        let rows = bulk::insert(&client, &transaction, quiet, &prefix, ROWS).await?;
        transaction.commit().await?;
        rows.committed(&client);
        for _ in 0..5 {
            most = most.max(resident_kib(pid)?);
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        let missing = run.missing(Stage::Published).await?;
        (oldest, count) = (oldest.max(missing.oldest), count.max(missing.count));
    }
    drop(stopped);
    run.fault_over().await?;
    let growth = most.saturating_sub(before);
    if growth > GROWTH_KIB {
        run.complain(format!(
            "the relay grew from {before} KiB to {most} KiB while it could not publish"
        ));
    }
    Ok((count >= TRANSACTIONS * ROWS).then(|| {
        format!(
            "{count} events for up to {oldest:.0?} behind a relay that holds 500; it grew by {growth} KiB"
        )
    }))
}

/// Memory of a process, KiB.
fn resident_kib(pid: u32) -> anyhow::Result<u64> {
    let path = format!("/proc/{pid}/status");
    let text = std::fs::read_to_string(&path).with_context(|| format!("read {path}"))?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().next());
    Ok(number.context("no VmRSS")?.parse()?)
}

/// Stops the broker and starts it again.
async fn down(run: &mut Run) -> anyhow::Result<Proof> {
    let servers = Servers::get().await;
    let stopped = Stopped(servers);
    servers.stop(Server::Kafka).await;
    let mut backlog = Backlog::default();
    let begun = Instant::now();
    while begun.elapsed() < DOWN {
        backlog.see(run).await?;
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    let config = run.flow().pipeline().deployment().kafka_config();
    let silent = kafka::Admin::new(&config)?.ping().await.is_err();
    backlog.see(run).await?;
    drop(stopped);
    run.fault_over().await?;
    Ok(backlog
        .proof(run, "the broker did not answer")
        .filter(|_| silent))
}

/// Starts the broker again, however the run ends.
struct Stopped(&'static Servers);

impl Drop for Stopped {
    fn drop(&mut self) {
        if let Err(error) = self.0.instance().start(Server::Kafka) {
            eprintln!("the broker is not back: {error}");
        }
    }
}
