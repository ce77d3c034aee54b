//! The database fails over to a standby, or is restored, and has lost its newest posts.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use chaos::{
    Flow,
    failover::{Aftermath, Poster, View, absent},
};
use database::epoch;
use events::{EventId, PostId};
use testkit::{Cluster, Deployment, Pipeline, Service, ServiceProcess, Signal, eventually_within};

const FOLLOWERS: i64 = 5;
/// Longer than any of these steps takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(90);
/// Ids in a new epoch begin so far behind those of the old one.
const JUMP: i64 = 1_000_000;
const QUICK_SWEEP: &[(&str, &str)] = &[
    ("TIDELINE_SWEEP__INTERVAL", "1s"),
    ("TIDELINE_SWEEP__POLL", "100ms"),
    ("TIDELINE_SWEEP__GRACE", "2s"),
    ("TIDELINE_SWEEP__RELAY_PATIENCE", "5s"),
];
/// A ghost is known as one after this instead of a minute.
const QUICK_GHOSTS: &[(&str, &str)] = &[("TIDELINE_FANOUT__VISIBLE_WITHIN", "1s")];

async fn flow_on(cluster: &Cluster) -> anyhow::Result<Flow> {
    let pipeline = Pipeline::of(Deployment::on(cluster).await);
    Flow::of(pipeline, 4, FOLLOWERS).await
}

/// Stops a service in order.
async fn stop(mut service: ServiceProcess) {
    let stopped = tokio::task::spawn_blocking(move || service.stop(Duration::from_secs(15)));
    let status = stopped.await.expect("the thread that waits does not panic");
    assert_eq!(status.expect("it can be stopped").code(), Some(0));
}

fn ids(posts: &BTreeMap<PostId, EventId>) -> BTreeSet<PostId> {
    posts.keys().copied().collect()
}

/// D-9: the standby lacks posts that are in Kafka. What it has reaches everybody, what it
/// lacks reaches nobody, and the services go on by themselves.
#[tokio::test(flavor = "multi_thread")]
async fn a_promoted_standby_that_lacks_published_posts() {
    promoted(Sweep::GoesOn).await.unwrap();
}

/// D-9: the relay begins the new epoch, and a look that the sweep took in the old life is worth
/// nothing when it goes on.
#[tokio::test(flavor = "multi_thread")]
async fn a_promotion_that_the_sweep_sleeps_through() {
    promoted(Sweep::IsFrozen).await.unwrap();
}

/// What the sweep does while the standby takes over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sweep {
    GoesOn,
    IsFrozen,
}

async fn promoted(meanwhile: Sweep) -> anyhow::Result<()> {
    let _turn = crate::ONE_AT_A_TIME.lock().await;
    let mut primary = Cluster::primary().await;
    let flow = flow_on(&primary).await?;
    let view = View(&flow);
    let mut standby = primary.standby().await;
    let mut going_on = [
        flow.start(Service::WriteApi, &[]).await,
        flow.start(Service::Relay, &[]).await,
        flow.start(Service::Sweep, QUICK_SWEEP).await,
    ];
    let fanout = flow.start(Service::Fanout, QUICK_GHOSTS).await;
    let poster = Poster::start(flow.client(), "post");
    delivered(view, &BTreeSet::new()).await;
    // Whatever has rows is on the standby before it is cut off: fan-out stops first.
    stop(fanout).await;
    let before = fall_behind(view, &standby).await?;
    poster.wait_for_more(40).await;
    let ghosts = absent(&ids(&view.posts().await?), &before);
    view.await_published(&ghosts).await;
    assert!(ghosts.len() >= 36, "only {} ghosts", ghosts.len());
    let old = view.epoch().await?;

    let [api, relay, sweep] = &mut going_on;
    if meanwhile == Sweep::IsFrozen {
        sweep.signal(Signal::Stop)?;
    }
    primary.kill().await;
    standby.take_address_of(&primary).await;
    meets_recovery(&standby, "tideline-write-api").await;
    if meanwhile == Sweep::GoesOn {
        meets_recovery(&standby, "tideline-sweep").await;
    }
    standby.promote().await;
    assert!(absent(&ghosts, &view.posts().await?) == ghosts);
    let begun = eventually_within(PATIENCE, "a new epoch begins", async || {
        let epoch = view.epoch().await.ok()?;
        (epoch.epoch > old.epoch).then_some(epoch)
    })
    .await;
    assert_eq!((begun.epoch, begun.pg_timeline), (2, old.pg_timeline + 1));
    assert_eq!(begun.system_id, old.system_id);
    sweep.signal(Signal::Cont)?;
    poster.wait_for_more(40).await;
    let fanout = flow.start(Service::Fanout, QUICK_GHOSTS).await;
    let acknowledged = poster.stop().await?;
    met(&fanout, ghosts.len()).await;

    let after = judged(&flow, &before, &acknowledged, JUMP).await;
    assert!(after.ghosts.is_superset(&(&ghosts & &acknowledged)));
    assert!(after.haunted.is_empty(), "ghosts have rows: {after:?}");
    for service in [api, relay, sweep] {
        let name = service.service().name();
        assert_eq!(service.exit_status(), None, "{name} ended");
    }
    Ok(())
}

/// D-9: a base backup takes the place of the database, and the operator says by how much the
/// ids jump. Rows that were written before the restore stay; nothing else of the forgotten posts
/// ever gets any.
#[tokio::test(flavor = "multi_thread")]
async fn a_restored_base_backup_that_lacks_published_posts() {
    const OPERATORS_JUMP: i64 = 5 * JUMP;
    let _turn = crate::ONE_AT_A_TIME.lock().await;
    let mut cluster = Cluster::primary().await;
    let flow = flow_on(&cluster).await.unwrap();
    let view = View(&flow);
    let services = [
        flow.start(Service::WriteApi, &[]).await,
        flow.start(Service::Relay, &[]).await,
        flow.start(Service::Sweep, QUICK_SWEEP).await,
    ];
    let fanout = flow.start(Service::Fanout, QUICK_GHOSTS).await;
    let poster = Poster::start(flow.client(), "first");
    poster.wait_for_more(40).await;
    let backup = cluster.backup().await;
    // What is acknowledged from now on is not in it.
    delivered(view, &poster.acknowledged()).await;
    stop(fanout).await;
    poster.wait_for_more(20).await;
    let mut acknowledged = poster.stop().await.unwrap();
    view.await_published(&ids(&view.posts().await.unwrap()))
        .await;
    let written: BTreeSet<PostId> = view.owners().await.unwrap().into_keys().collect();
    let old = view.epoch().await.unwrap();
    for service in services {
        stop(service).await;
    }

    cluster.restore(backup).await;
    let before = view.posts().await.unwrap();
    let forgotten = absent(&acknowledged, &before);
    let unwritten = &forgotten - &written;
    assert!(unwritten.len() >= 16 && unwritten.len() < forgotten.len());
    let mut client = flow.sql().get().await.unwrap();
    let _begun = epoch::bump(&mut client, OPERATORS_JUMP).await.unwrap();
    drop(client);
    let _services = [
        flow.start(Service::WriteApi, &[]).await,
        flow.start(Service::Relay, &[]).await,
        flow.start(Service::Sweep, QUICK_SWEEP).await,
    ];
    let fanout = flow.start(Service::Fanout, QUICK_GHOSTS).await;
    let poster = Poster::start(flow.client(), "second");
    poster.wait_for_more(20).await;
    acknowledged.append(&mut poster.stop().await.unwrap());
    met(&fanout, unwritten.len()).await;

    let after = judged(&flow, &before, &acknowledged, OPERATORS_JUMP).await;
    assert_eq!(after.ghosts, forgotten);
    assert!(
        after.haunted.is_subset(&written),
        "ghosts got rows: {after:?}"
    );
    let now = view.epoch().await.unwrap();
    assert_eq!((now.epoch, now.pg_timeline), (2, old.pg_timeline + 1));
}

/// Waits until there are posts with rows that are not among `known`.
async fn delivered(view: View<'_>, known: &BTreeSet<PostId>) {
    eventually_within(PATIENCE, "posts have rows", async || {
        let owners = view.owners().await.ok()?;
        let new = owners.keys().filter(|post| !known.contains(*post));
        (new.count() >= 10).then_some(())
    })
    .await;
}

/// Cuts the standby off as soon as it has every post that has rows. Answers the posts that it has.
async fn fall_behind(
    view: View<'_>,
    standby: &Cluster,
) -> anyhow::Result<BTreeMap<PostId, EventId>> {
    let written: BTreeSet<PostId> = view.owners().await?.into_keys().collect();
    let replica = standby.url(&view.deployment().keyspace());
    eventually_within(PATIENCE, "the standby has what has rows", async || {
        let there = View::posts_at(&replica).await.ok()?;
        absent(&written, &there).is_empty().then_some(())
    })
    .await;
    standby.cut_off().await;
    View::posts_at(&replica).await
}

/// Waits until a service has asked a standby that is not promoted yet.
async fn meets_recovery(standby: &Cluster, name: &str) {
    let sql = standby.sql("postgres").await;
    let query = "select from pg_stat_activity where application_name = $1 limit 1";
    eventually_within(
        PATIENCE,
        "a service meets a server in recovery",
        async || sql.query_opt(query, &[&name]).await.ok()?.map(drop),
    )
    .await;
}

/// Waits until fan-out has met so many ghosts.
async fn met(fanout: &ServiceProcess, ghosts: usize) {
    eventually_within(PATIENCE, "fan-out meets the ghosts", async || {
        let text = fanout.scrape().ok()?;
        let mut lines = text.lines();
        let count = lines.find_map(|line| line.strip_prefix("tideline_fanout_ghosts_total "))?;
        (count.parse::<usize>().ok()? >= ghosts).then_some(())
    })
    .await;
}

/// What holds for both: everything that the database has is in both stages and with every
/// follower, sent again where it was in doubt, and new records tell the new epoch.
async fn judged(
    flow: &Flow,
    before: &BTreeMap<PostId, EventId>,
    acknowledged: &BTreeSet<PostId>,
    jump: i64,
) -> Aftermath {
    let after = Aftermath::of(flow, before, acknowledged, FOLLOWERS).await;
    let after = after.expect("every server answers");
    println!(
        "{} posts before, {} ghosts, {} sent again",
        before.len(),
        after.ghosts.len(),
        after.again
    );
    assert!(!before.is_empty() && !after.ghosts.is_empty());
    assert_eq!((after.lost, after.dead_letters), (0, 0), "{after:?}");
    for account in after.accounts {
        assert!(account.delivered >= acknowledged.len() as u64 - after.ghosts.len() as u64);
        assert_eq!(account.delivered, account.accepted, "{after:?}");
    }
    assert_eq!(after.again, before.len(), "not all in doubt came again");
    assert_eq!(after.old_source, 0, "new records carry the old epoch");
    let highest = before.values().max().map_or(0, |event| event.0);
    assert!(after.highest.0 >= highest + jump, "{after:?}");
    after
}
