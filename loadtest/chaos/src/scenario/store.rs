//! The CQL store is away, or its table changes.

use std::time::{Duration, Instant};

use anyhow::Context;
use scylla::client::session_builder::SessionBuilder;
use testkit::{Server, Servers};

use super::{Cast, LONG, Proof, Scenario, Stands, Sweep};
use crate::{Run, metrics};

/// Longer than several attempts of a step, whose pauses double.
const DOWN: Duration = Duration::from_secs(20);

/// The faults of this family.
pub(super) const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "cql-down",
        about: "the CQL store is stopped for longer than several attempts",
        covers: &[28],
        cast: Cast::ONE_OF_EACH,
        fault: |run| Box::pin(down(run)),
        sweep: Sweep::Silent,
        limit: LONG,
        quick: false,
        stands: Stands::Green,
    },
    Scenario {
        name: "cql-schema-changed",
        about: "a column is added to the timelines, then the CQL store is killed and restarted",
        covers: &[29],
        cast: Cast::ONE_OF_EACH,
        fault: |run| Box::pin(schema_changed(run)),
        sweep: Sweep::Silent,
        limit: LONG,
        quick: false,
        stands: Stands::Green,
    },
];

/// Starts the store again, however the run ends.
struct Stopped(&'static Servers);

impl Drop for Stopped {
    fn drop(&mut self) {
        if let Err(error) = self.0.instance().start(Server::Cql) {
            eprintln!("the CQL store is not back: {error}");
        }
    }
}

/// Fan-out waits, keeps its partitions, and gives nothing up.
async fn down(run: &mut Run) -> anyhow::Result<Proof> {
    const REBALANCES: &str = "tideline_fanout_rebalances_total";
    let servers = Servers::get().await;
    let before = (outages(run)?, count(run, REBALANCES)?);
    let stopped = Stopped(servers);
    servers.stop(Server::Cql).await;
    let begun = Instant::now();
    while begun.elapsed() < DOWN {
        run.more_posts(5).await?;
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    let waiting = run.missing(events::Stage::Delivered).await?;
    let (attempts, changes) = (outages(run)? - before.0, count(run, REBALANCES)? - before.1);
    drop(stopped);
    run.fault_over().await?;
    if changes > 0.0 {
        run.complain(format!(
            "fan-out lost its partitions: {changes} changes of the assignment"
        ));
    }
    Ok((attempts >= 3.0).then(|| {
        format!(
            "{attempts} attempts failed while the store was away, {} events waited for up to {:.0?}",
            waiting.count, waiting.oldest
        )
    }))
}

/// Prepared statements are prepared again.
async fn schema_changed(run: &mut Run) -> anyhow::Result<Proof> {
    const ADD: &str = "alter table timelines add chaos_note text";
    const ADDED: &str = "select column_name from system_schema.columns
        where keyspace_name = ? and table_name = 'timelines' and column_name = 'chaos_note'";
    let deployment = run.flow().pipeline().deployment();
    let keyspace = deployment.keyspace();
    let session = SessionBuilder::new()
        .known_nodes(deployment.cql_nodes())
        .use_keyspace(keyspace.clone(), false)
        .build()
        .await
        .context("connect to the CQL store")?;
    let _nothing = session.query_unpaged(ADD, ()).await?;
    let found = session.query_unpaged(ADDED, (keyspace,)).await?;
    let added = found.into_rows_result()?.rows_num() == 1;
    drop(session);
    let changed = crate::account::newest(run.flow()).await?;
    run.more_posts(40).await?;
    let later = run
        .until(DOWN, "what came later is delivered", async |run| {
            delivered_since(run, changed).await
        })
        .await?;
    Servers::get().await.crash_and_restart(Server::Cql).await;
    run.fault_over().await?;
    Ok(added.then(|| {
        format!("{later} posts were delivered to the changed table before the store was restarted")
    }))
}

/// How many events above this one are delivered, if there are some.
async fn delivered_since(run: &Run, event: events::EventId) -> anyhow::Result<Option<i64>> {
    const SQL: &str =
        "select count(*) from tideline.post_delivery where event_id > $1 and rows > 0";
    let sql = run.flow().sql().get().await?;
    let count: i64 = sql.query_one(SQL, &[&event.0]).await?.get(0);
    Ok((count >= 20).then_some(count))
}

/// Steps of fan-out that were done again because of an outage.
fn outages(run: &mut Run) -> anyhow::Result<f64> {
    let text = run.scrape("fanout")?;
    let all = metrics::series(&text, "tideline_fanout_retries_total");
    Ok(all
        .filter(|(labels, _)| labels.contains("outage") || labels.contains("unsure"))
        .map(|(_, value)| value)
        .sum())
}

fn count(run: &mut Run, name: &str) -> anyhow::Result<f64> {
    metrics::sum(&run.scrape("fanout")?, name).context("no such metric")
}
