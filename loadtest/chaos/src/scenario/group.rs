//! What fan-out has read, or has yet to read, is lost: the topic, or the offsets of its group.

use std::{collections::BTreeMap, time::Duration};

use events::{Stage, topic::TopicKind};
use kafka::{Admin, KafkaConfig, surgery, topics};
use testkit::{Service, Signal};

use super::{Cast, LIMIT, Proof, Scenario, Stands, Sweep};
use crate::Run;

const UNREAD_WITHIN: Duration = Duration::from_secs(60);

/// A member that leaves when it is asked to stop: offsets are only changed while nobody is there.
const DYNAMIC: &[(&str, &str)] = &[("TIDELINE_FANOUT__INSTANCE_ID", "")];

const CAST: Cast = Cast {
    fanout_env: DYNAMIC,
    ..Cast::ONE_OF_EACH
};

/// The faults of this family.
pub(super) const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "topic-recreated",
        about: "the posts topic is deleted, unread records and all, and made again",
        covers: &[21],
        cast: Cast::ONE_OF_EACH,
        fault: |run| Box::pin(topic_recreated(run)),
        sweep: Sweep::Heals,
        limit: LIMIT,
        quick: false,
        stands: Stands::Green,
    },
    Scenario {
        name: "offsets-reset",
        about: "the offsets of fan-out's group are set to the end while it is stopped",
        covers: &[21],
        cast: CAST,
        fault: |run| Box::pin(offsets_reset(run)),
        sweep: Sweep::Heals,
        limit: LIMIT,
        quick: false,
        stands: Stands::Green,
    },
    Scenario {
        name: "offsets-deleted",
        about: "the offsets of fan-out's group are deleted while it is stopped",
        covers: &[21],
        cast: CAST,
        fault: |run| Box::pin(offsets_deleted(run)),
        sweep: Sweep::May,
        limit: LIMIT,
        quick: false,
        stands: Stands::Green,
    },
];

/// Records that were published and not yet read go with the topic.
async fn topic_recreated(run: &mut Run) -> anyhow::Result<Proof> {
    let (config, topic, _group) = names(run);
    run.signal("fanout", Signal::Stop)?;
    let unread = unread(run).await?;
    let before = total(&Admin::new(&config)?.end_offsets(&topic).await?);
    surgery::delete_topic(&config, &topic).await?;
    let report = topics::create(&config).await?;
    let after = total(&Admin::new(&config)?.end_offsets(&topic).await?);
    run.signal("fanout", Signal::Cont)?;
    run.fault_over().await?;
    let made = report.created.contains(&topic);
    Ok((made && after < before).then(|| {
        format!("{before} records became {after}, {unread} events published and not delivered")
    }))
}

/// The group skips what it has not read.
async fn offsets_reset(run: &mut Run) -> anyhow::Result<Proof> {
    let (config, topic, group) = names(run);
    run.stop("fanout").await?;
    let unread = unread(run).await?;
    let before = committed(&config, &group, &topic).await?;
    let ends = surgery::offsets_to_end(&config, &group, &topic).await?;
    let after = committed(&config, &group, &topic).await?;
    run.start("fanout", Service::Fanout, DYNAMIC).await;
    run.fault_over().await?;
    let skipped = total(&ends) - before.values().flatten().sum::<i64>();
    let moved = ends
        .iter()
        .all(|(partition, end)| after.get(partition).copied().flatten() == Some(*end));
    Ok((moved && skipped > 0)
        .then(|| format!("{skipped} records skipped, {unread} events published and not delivered")))
}

/// The group begins again from the start.
async fn offsets_deleted(run: &mut Run) -> anyhow::Result<Proof> {
    let (config, topic, group) = names(run);
    run.stop("fanout").await?;
    let unread = unread(run).await?;
    let before = committed(&config, &group, &topic).await?;
    surgery::delete_offsets(&config, &group).await?;
    let after = committed(&config, &group, &topic).await?;
    run.start("fanout", Service::Fanout, DYNAMIC).await;
    run.fault_over().await?;
    let known = before.values().flatten().sum::<i64>();
    let gone = after.values().all(Option::is_none);
    Ok((gone && known > 0).then(|| {
        format!("offsets of {known} records forgotten, {unread} events published and not delivered")
    }))
}

/// Waits until there are events that are published and not delivered; answers how many.
async fn unread(run: &mut Run) -> anyhow::Result<i64> {
    let wanted = run.rng().i64(20..50);
    run.until(UNREAD_WITHIN, "records are published", async |run| {
        // In this order: what is published in between only makes it fewer.
        let delivered = run.missing(Stage::Delivered).await?.count;
        let published = run.missing(Stage::Published).await?.count;
        let unread = delivered - published;
        Ok((unread >= wanted).then_some(unread))
    })
    .await
}

fn names(run: &Run) -> (KafkaConfig, String, String) {
    let config = run.flow().pipeline().deployment().kafka_config();
    let topic = config.namespace.topic(TopicKind::Posts);
    let group = config.namespace.fanout_posts_group();
    (config, topic, group)
}

async fn committed(
    config: &KafkaConfig,
    group: &str,
    topic: &str,
) -> anyhow::Result<BTreeMap<i32, Option<i64>>> {
    Ok(Admin::new(config)?.committed(group, topic).await?)
}

fn total(offsets: &BTreeMap<i32, i64>) -> i64 {
    offsets.values().sum()
}
