//! Servers of a test's own: a slot that the server gave up, and a failover.

use testkit::{Cluster, Deployment, eventually};

use crate::rig::Rig;

/// C29: the server gave the slot's log up, since the relay was away for too long: the slot is
/// dropped and made anew.
#[tokio::test(flavor = "multi_thread")]
async fn an_invalidated_slot_is_made_anew() {
    let cluster = Cluster::primary().await;
    let mut rig = Rig::of(Deployment::on(&cluster).await).await;
    let topic = rig.topic("posts.v1");
    let relay = rig.start().await;
    let before = rig.insert(&["1"]).await;
    rig.record_of(&topic, before[0]).await;
    relay.stop().await;
    for sql in [
        "alter system set max_slot_wal_keep_size = '1MB'",
        "select pg_reload_conf()",
    ] {
        rig.sql.batch_execute(sql).await.unwrap();
    }
    let skipped = rig.insert(&["1"]).await;
    let lost = format!(
        "select wal_status = 'lost' from pg_replication_slots where slot_name = '{}'",
        rig.deployment.slot()
    );
    eventually("the slot is lost", async || {
        let work =
            "select pg_logical_emit_message(false, 'test', repeat('x', 1000000)), pg_switch_wal()";
        rig.sql.batch_execute(work).await.unwrap();
        rig.sql.batch_execute("checkpoint").await.unwrap();
        rig.one::<bool>(&lost).await.then_some(())
    })
    .await;
    let relay = rig.spawn(&[("TIDELINE_RELAY__ON_SLOT_LOST", "stop")]);
    relay.reaches("slot_lost").await;
    relay.stop().await;

    let relay = rig.start().await;
    let after = rig.insert(&["1"]).await;
    rig.record_of(&topic, after[0]).await;
    let all = rig.all_records(&topic).await;
    assert!(
        all.iter().all(|record| record.id() != skipped[0]),
        "that one is the sweep's"
    );
    assert_eq!(rig.requests("slot_lost").await, 1);
    assert_eq!(
        relay.metric("tideline_relay_slot_recreated_total").await,
        1.0
    );
    relay.stop().await;
}

/// C30, C31, C32: the primary dies and its standby takes over, without the slot. The relay waits
/// for the promotion, begins an epoch, makes the slot, and goes on.
#[tokio::test(flavor = "multi_thread")]
async fn a_promoted_standby_is_a_new_epoch() {
    let mut primary = Cluster::primary().await;
    let mut rig = Rig::of(Deployment::on(&primary).await).await;
    let topic = rig.topic("posts.v1");
    let relay = rig.start().await;
    let before = rig.insert(&["1"]).await;
    let record = rig.record_of(&topic, before[0]).await;
    assert!(record.headers["ce_source"].ends_with("/outbox/1"));
    rig.confirmed_all().await;
    let mut standby = primary.standby().await;
    primary.kill().await;
    standby.take_address_of(&primary).await;
    eventually("a server in recovery is refused", async || {
        let (status, text) = relay.get("/readyz").await?;
        (status == 503 && text.contains("in recovery")).then_some(())
    })
    .await;
    standby.promote().await;
    eventually("the slot is made anew", async || {
        (relay.metric("tideline_relay_slot_recreated_total").await == 1.0).then_some(())
    })
    .await;
    relay.reaches("streaming").await;
    rig.sql = rig.deployment.sql().await;
    let after = rig.insert(&["1"]).await;
    assert!(after[0] > before[0] + 1_000_000, "{before:?} {after:?}");
    let record = rig.record_of(&topic, after[0]).await;
    assert!(
        record.headers["ce_source"].ends_with("/outbox/2"),
        "{record:?}"
    );
    let entered = format!(
        "select count(*) from tideline.delivery_ledger where epoch = 2 and ids @> {}::bigint",
        after[0]
    );
    eventually("entered under the new epoch", async || {
        (rig.one::<i64>(&entered).await == 1).then_some(())
    })
    .await;
    assert_eq!(rig.requests("new_epoch").await, 1);
    relay.stop().await;
}
