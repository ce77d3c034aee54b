//! Processes stand still for longer than others wait for them, and then go on as if nothing had
//! been.

use std::time::{Duration, Instant};

use anyhow::Context;
use events::{Stage, topic::TopicKind};
use kafka::Admin;
use testkit::{Service, Signal};

use super::{Cast, LIMIT, LONG, Proof, Scenario, Stands, Sweep, slot};
use crate::{Run, metrics};

/// Longer than a client waits for an answer.
const API_STANDS: Duration = Duration::from_secs(12);
/// Longer than a group waits for a member, which is 10 s.
const WORKER_STANDS: Duration = Duration::from_secs(14);
const WITHIN: Duration = Duration::from_secs(40);
/// The server ends a claim whose sweep does nothing for 60 s.
const CLAIM_ENDS_WITHIN: Duration = Duration::from_secs(90);

/// Members of their group by their own name, as in production.
const WORKERS: &[&str] = &["fanout", "fanout-2"];

/// The faults of this family.
pub(super) const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "api-frozen",
        about: "write-api is frozen until its clients give up and try again, and then answers both",
        covers: &[1],
        cast: Cast::ONE_OF_EACH,
        fault: |run| Box::pin(api(run)),
        sweep: Sweep::Silent,
        limit: LIMIT,
        quick: false,
        stands: Stands::Green,
    },
    Scenario {
        name: "fanout-frozen",
        about: "a fan-out worker is frozen until others have its partitions, and then goes on",
        covers: &[22],
        cast: Cast {
            fanouts: WORKERS,
            ..Cast::ONE_OF_EACH
        },
        fault: |run| Box::pin(worker(run)),
        sweep: Sweep::Counts,
        limit: LIMIT,
        quick: false,
        stands: Stands::Green,
    },
    Scenario {
        name: "sweep-frozen-in-a-claim",
        about: "a sweep is frozen while it holds a claim; another one heals what it held, and it goes on",
        covers: &[31],
        cast: Cast {
            sweeps: &[],
            ..Cast::ONE_OF_EACH
        },
        fault: |run| Box::pin(claim(run)),
        sweep: Sweep::Heals,
        limit: LONG,
        quick: false,
        stands: Stands::Green,
    },
];

/// One key makes one post, although both attempts are carried out (D-2).
async fn api(run: &mut Run) -> anyhow::Result<Proof> {
    let before = run.sent()?;
    run.signal("write-api", Signal::Stop)?;
    tokio::time::sleep(API_STANDS).await;
    run.signal("write-api", Signal::Cont)?;
    run.fault_over().await?;
    let after = run
        .until(WITHIN, "the load goes on", async |run| {
            let now = run.sent()?;
            Ok((now.posts > before.posts + 10).then_some(now))
        })
        .await?;
    let gave_up = after.failures - before.failures;
    let replayed = after.replayed - before.replayed;
    Ok((gave_up > 0).then(|| {
        format!("{gave_up} requests were given up; {replayed} of them had made their post")
    }))
}

/// What it had in work is done by both; the group takes offsets from one only (D-6, D-7).
async fn worker(run: &mut Run) -> anyhow::Result<Proof> {
    const HELD: &str = "tideline_fanout_assigned_partitions";
    let held = metrics::sum(&run.scrape("fanout")?, HELD).context("no such metric")?;
    let before = committed(run).await?;
    run.signal("fanout", Signal::Stop)?;
    tokio::time::sleep(WORKER_STANDS).await;
    let taken = run
        .until(WITHIN, "the other worker has all partitions", async |run| {
            let now = metrics::sum(&run.scrape("fanout-2")?, HELD).context("no such metric")?;
            Ok((now > 11.5).then_some(now))
        })
        .await?;
    run.signal("fanout", Signal::Cont)?;
    run.more_posts(40).await?;
    run.fault_over().await?;
    // It joins again, or ends, which is not for the judge to see.
    run.until(
        WITHIN,
        "the frozen worker has partitions again",
        async |run| {
            let now = metrics::sum(&run.scrape("fanout")?, HELD).context("no such metric")?;
            Ok((now > 0.5).then_some(()))
        },
    )
    .await?;
    let after = committed(run).await?;
    Ok((held > 0.5 && after > before).then(|| {
        format!("{held} partitions went to the other worker, which then had {taken}; {} offsets were committed meanwhile", after - before)
    }))
}

/// The server ends the claim of a sweep that does nothing.
async fn claim(run: &mut Run) -> anyhow::Result<Proof> {
    const AT_A_CLAIM: (&str, &str) = ("FAILPOINTS", "sweep::claimed=pause");
    let Some(lost) = slot::lose(run).await? else {
        return Ok(None);
    };
    run.until(WITHIN, "the relay has a slot again", async |run| {
        Ok(slot::is_active(run).await?.then_some(()))
    })
    .await?;
    run.spawn("sweep", Service::Sweep, &[AT_A_CLAIM]);
    run.until(WITHIN, "the sweep holds a claim", async |run| {
        super::sweepers::claim(run).await
    })
    .await?;
    run.signal("sweep", Signal::Stop)?;
    run.start("sweep-2", Service::Sweep, &[]).await;
    let missing = run.missing(Stage::Published).await?.count;
    let begun = Instant::now();
    run.until(CLAIM_ENDS_WITHIN, "the other sweep heals it", async |run| {
        let left = run.missing(Stage::Published).await?.count;
        Ok((left == 0).then_some(()))
    })
    .await?;
    let took = begun.elapsed();
    // It wakes with a claim that is no longer its own.
    run.signal("sweep", Signal::Cont)?;
    run.kill("sweep")?;
    run.fault_over().await?;
    Ok((missing > 0).then(|| {
        format!("{lost}; {missing} events were held by the frozen sweep, and were healed {took:.0?} later")
    }))
}

async fn committed(run: &Run) -> anyhow::Result<i64> {
    let config = run.flow().pipeline().deployment().kafka_config();
    let topic = config.namespace.topic(TopicKind::Posts);
    let group = config.namespace.fanout_posts_group();
    let offsets = Admin::new(&config)?.committed(&group, &topic).await?;
    Ok(offsets.values().flatten().sum())
}
