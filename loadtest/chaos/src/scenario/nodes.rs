//! One node of three is lost, or two: brokers, and CQL nodes.
//!
//! The servers are three processes each and of this run alone. Nodes that were lost are back before
//! the run is judged.

use std::time::{Duration, Instant};

use events::{Stage, topic::TopicKind};
use futures::future::join_all;
use kafka::Admin;
use testkit::Signal;
use tokio::net::TcpStream;

use super::{Cast, Nodes, Proof, Scenario, Stands, Sweep};
use crate::{Run, account, metrics};

/// How long the nodes are away.
const AWAY: Duration = Duration::from_secs(20);
/// Longer than the others take to agree that a node is gone, and to go on without it.
const MOVED_WITHIN: Duration = Duration::from_secs(45);
/// Longer than a relay takes to enter in the ledger what was acknowledged.
const ENTERED_WITHIN: Duration = Duration::from_secs(3);
/// A node that comes back takes its time on a small machine.
const LIMIT: Duration = Duration::from_secs(420);
const COUNT: usize = 3;

const ON_BROKERS: Cast = Cast {
    nodes: Nodes::ThreeBrokers,
    ..Cast::ONE_OF_EACH
};
/// Every row is written three times, on the same small machine: fewer posts, so that the nodes that
/// are left keep up.
const ON_CQL_NODES: Cast = Cast {
    nodes: Nodes::ThreeStores,
    pace: Duration::from_millis(120),
    ..Cast::ONE_OF_EACH
};

/// The faults of this family.
pub(super) const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "broker-lost",
        about: "one broker of three is killed, and comes back",
        covers: &[16],
        cast: ON_BROKERS,
        fault: |run| Box::pin(broker_lost(run)),
        sweep: Sweep::Silent,
        limit: LIMIT,
        quick: false,
        stands: Stands::Green,
    },
    Scenario {
        name: "brokers-below-quorum",
        about: "two brokers of three are killed: no record has enough copies until they are back",
        covers: &[17, 18],
        cast: ON_BROKERS,
        fault: |run| Box::pin(below_min_in_sync(run)),
        sweep: Sweep::Silent,
        limit: LIMIT,
        quick: false,
        stands: Stands::Green,
    },
    Scenario {
        name: "cql-node-lost",
        about: "one CQL node of three is killed, and comes back",
        covers: &[26],
        cast: ON_CQL_NODES,
        fault: |run| Box::pin(cql_node_lost(run, Loss::Killed)),
        sweep: Sweep::Silent,
        limit: LIMIT,
        quick: false,
        stands: Stands::Green,
    },
    Scenario {
        name: "cql-node-frozen",
        about: "one CQL node of three stands still for a while",
        covers: &[26],
        cast: ON_CQL_NODES,
        fault: |run| Box::pin(cql_node_lost(run, Loss::Frozen)),
        sweep: Sweep::Silent,
        limit: LIMIT,
        quick: false,
        stands: Stands::Green,
    },
    Scenario {
        name: "cql-below-quorum",
        about: "two CQL nodes of three are killed: fan-out waits until they are back",
        covers: &[28],
        cast: ON_CQL_NODES,
        fault: |run| Box::pin(cql_below_quorum(run)),
        sweep: Sweep::Silent,
        limit: LIMIT,
        quick: false,
        stands: Stands::Green,
    },
];

/// How a node is lost.
#[derive(Clone, Copy, Debug)]
enum Loss {
    Killed,
    Frozen,
}

/// Two copies are enough: publishing and delivering go on while one broker is away.
async fn broker_lost(run: &mut Run) -> anyhow::Result<Proof> {
    let number = run.rng().usize(..COUNT);
    let brokers = run.flow().pipeline().deployment().brokers();
    let address = brokers.addresses().swap_remove(number);
    brokers.kill(number).await;
    let refused = TcpStream::connect(&address).await.is_err();
    let moved = goes_on(run, Stage::Delivered).await?;
    run.more_posts(40).await?;
    run.flow()
        .pipeline()
        .deployment()
        .brokers()
        .start(number)
        .await;
    run.fault_over().await?;
    Ok(refused.then(|| {
        format!(
            "broker {number} refused connections, the flow went on without it after {moved:.1?}"
        )
    }))
}

/// Nothing is acknowledged by too few, so nothing is confirmed; posts are accepted all the same.
async fn below_min_in_sync(run: &mut Run) -> anyhow::Result<Proof> {
    let kept = run.rng().usize(..COUNT);
    let lost: Vec<usize> = (0..COUNT).filter(|number| *number != kept).collect();
    let brokers = run.flow().pipeline().deployment().brokers();
    let _ended = join_all(lost.iter().map(|&number| brokers.kill(number))).await;
    // Until the cluster knows that both are gone, what one of them had taken is acknowledged still.
    let config = run.flow().pipeline().deployment().kafka_config();
    let (admin, topic) = (
        Admin::new(&config)?,
        config.namespace.topic(TopicKind::Posts),
    );
    run.until(MOVED_WITHIN, "one copy is left in sync", async |_| {
        let copies = admin.copies_in_sync(&topic).await.unwrap_or_default();
        let alone = !copies.is_empty() && copies.values().all(|&copies| copies == 1);
        Ok(alone.then_some(()))
    })
    .await?;
    tokio::time::sleep(ENTERED_WITHIN).await;
    run.more_posts(5).await?;
    let before = confirmed_and_published(run).await?;
    let waiting = run.missing(Stage::Published).await?;
    let begun = Instant::now();
    while begun.elapsed() < AWAY {
        run.more_posts(5).await?;
    }
    let after = confirmed_and_published(run).await?;
    let missing = run.missing(Stage::Published).await?;
    if after != before {
        run.complain(format!(
            "confirmed position and published events went from {before:?} to {after:?} while one \
             copy was all there was"
        ));
    }
    let brokers = run.flow().pipeline().deployment().brokers();
    let _started = join_all(lost.iter().map(|&number| brokers.start(number))).await;
    run.fault_over().await?;
    Ok(
        (waiting.count > 0 && missing.count > waiting.count).then(|| {
            format!(
                "only broker {kept} was left: {} and then {} events waited, for up to {:.0?}",
                waiting.count, missing.count, missing.oldest
            )
        }),
    )
}

/// The slot's position, and how many events count as published.
async fn confirmed_and_published(run: &Run) -> anyhow::Result<(u64, i64)> {
    const PUBLISHED: &str = "select coalesce(sum(upper(r) - lower(r)), 0)::bigint
        from tideline.delivery_ledger l, unnest(l.ids) as r where l.stage = 'published'";
    let confirmed = run.flow().confirmed_lsn().await?;
    let sql = run.flow().sql().get().await?;
    Ok((confirmed, sql.query_one(PUBLISHED, &[]).await?.get(0)))
}

/// A quorum is enough: rows are written while one node is away.
async fn cql_node_lost(run: &mut Run, loss: Loss) -> anyhow::Result<Proof> {
    let number = run.rng().usize(..COUNT);
    let nodes = run.flow().pipeline().deployment().nodes();
    match loss {
        Loss::Killed => nodes.kill(number).await,
        Loss::Frozen => nodes.signal(number, Signal::Stop).await,
    }
    let begun = Instant::now();
    let moved = goes_on(run, Stage::Delivered).await?;
    while begun.elapsed() < AWAY {
        run.more_posts(10).await?;
    }
    let silent = !answers(&run.flow().pipeline().deployment().cql_nodes()[number]).await;
    let nodes = run.flow().pipeline().deployment().nodes();
    match loss {
        Loss::Killed => nodes.start(number).await,
        Loss::Frozen => nodes.signal(number, Signal::Cont).await,
    }
    run.fault_over().await?;
    Ok(silent.then(|| {
        format!(
            "node {number} did not answer, what was posted without it arrived after {moved:.1?}"
        )
    }))
}

/// Fan-out waits and keeps its partitions; nothing is given up for an outage.
async fn cql_below_quorum(run: &mut Run) -> anyhow::Result<Proof> {
    const REBALANCES: &str = "tideline_fanout_rebalances_total";
    let kept = run.rng().usize(..COUNT);
    let lost: Vec<usize> = (0..COUNT).filter(|number| *number != kept).collect();
    let before = metrics::sum(&run.scrape("fanout")?, REBALANCES).unwrap_or_default();
    let nodes = run.flow().pipeline().deployment().nodes();
    let _ended = join_all(lost.iter().map(|&number| nodes.kill(number))).await;
    run.more_posts(5).await?;
    let begun = Instant::now();
    while begun.elapsed() < AWAY {
        run.more_posts(5).await?;
    }
    let waiting = run.missing(Stage::Delivered).await?;
    let changes = metrics::sum(&run.scrape("fanout")?, REBALANCES).unwrap_or_default() - before;
    if changes > 0.0 {
        run.complain(format!(
            "fan-out lost its partitions: {changes} changes of the assignment"
        ));
    }
    let nodes = run.flow().pipeline().deployment().nodes();
    let _started = join_all(lost.iter().map(|&number| nodes.start(number))).await;
    run.fault_over().await?;
    Ok((waiting.oldest > AWAY / 2).then(|| {
        format!(
            "only node {kept} was left: {} events waited, for up to {:.0?}",
            waiting.count, waiting.oldest
        )
    }))
}

/// Waits until what is committed now has passed `stage`; answers how long that took.
async fn goes_on(run: &mut Run, stage: Stage) -> anyhow::Result<Duration> {
    run.more_posts(10).await?;
    let newest = account::newest(run.flow()).await?;
    let begun = Instant::now();
    run.until(MOVED_WITHIN, "the flow goes on", async |run| {
        let missing = account::missing(run.flow(), stage, newest).await?;
        Ok((missing.count == 0).then_some(()))
    })
    .await?;
    Ok(begun.elapsed())
}

/// Whether a CQL node says anything: OPTIONS is answered by every node that is up (CQL protocol
/// v4, section 4.1.3).
async fn answers(address: &str) -> bool {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let ask = async {
        let mut stream = TcpStream::connect(address).await?;
        stream.write_all(b"\x04\0\0\x01\x05\0\0\0\0").await?;
        stream.read_u8().await
    };
    matches!(
        tokio::time::timeout(Duration::from_secs(2), ask).await,
        Ok(Ok(_))
    )
}
