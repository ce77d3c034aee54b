//! Two relays, a slot and a publication that wait for an operator, connections that come and go.

use std::time::{Duration, Instant};

use testkit::eventually;

use crate::rig::Rig;

/// C28: the second relay stands by, is ready so, and takes over within five seconds.
#[tokio::test(flavor = "multi_thread")]
async fn a_standby_takes_over() {
    let mut rig = Rig::new().await;
    let topic = rig.topic("posts.v1");
    let mut active = rig.start().await;
    let limit = Duration::from_secs(5);
    let mut fastest = Duration::MAX;
    // Once is enough: a server that stands still for a moment is not the relay's delay.
    for _ in 0..3 {
        let standby = rig.spawn(&[]);
        standby.reaches("standby").await;
        eventually("ready as a standby", async || {
            let (status, text) = standby.get("/readyz").await?;
            (status == 200 && text.contains("standby")).then_some(())
        })
        .await;
        let before = rig.insert(&["1"]).await;
        rig.record_of(&topic, before[0]).await;
        let killed = Instant::now();
        active.kill().await;
        let after = rig.insert(&["2"]).await;
        standby.reaches("streaming").await;
        rig.record_of(&topic, after[0]).await;
        fastest = fastest.min(killed.elapsed());
        active = standby;
        if fastest < limit {
            break;
        }
    }
    assert!(fastest < limit, "took {fastest:?}");
    active.stop().await;
}

/// C29: with `on_slot_lost = "stop"` a slot that was in use and is gone is told, never passed over;
/// an operator's repair is picked up, and the sweep is asked to look.
#[tokio::test(flavor = "multi_thread")]
async fn a_lost_slot_is_told_until_it_is_mended() {
    let mut rig = Rig::new().await;
    let relay = rig.start().await;
    rig.insert(&["1"]).await;
    rig.records(&rig.topic("posts.v1"), 1).await;
    relay.stop().await;
    let slot = rig.deployment.slot();
    let drop_slot = format!("select pg_drop_replication_slot('{slot}')");
    eventually("the slot is free", async || {
        rig.sql.batch_execute(&drop_slot).await.ok()
    })
    .await;
    let relay = rig.spawn(&[("TIDELINE_RELAY__ON_SLOT_LOST", "stop")]);
    relay.reaches("slot_lost").await;
    eventually("the fix is named", async || {
        let (status, text) = relay.get("/readyz").await?;
        (status == 503 && text.contains("pg_create_logical_replication_slot")).then_some(())
    })
    .await;
    // Counted before the fix is told.
    assert!(relay.metric("tideline_relay_slot_gaps_total").await >= 1.0);
    let repair = format!("select pg_create_logical_replication_slot('{slot}', 'pgoutput')");
    rig.sql.batch_execute(&repair).await.unwrap();
    relay.reaches("streaming").await;
    assert_eq!(
        rig.requests("slot_ahead").await,
        1,
        "nobody knows what the new slot skipped"
    );
    assert_eq!(rig.requests("slot_lost").await, 0);
    rig.insert(&["2"]).await;
    rig.records(&rig.topic("posts.v1"), 2).await;
    relay.stop().await;
}

/// A slot that nothing was ever confirmed through is made.
#[tokio::test(flavor = "multi_thread")]
async fn a_slot_that_was_never_used_is_made() {
    let mut rig = Rig::new().await;
    let drop_slot = format!(
        "select pg_drop_replication_slot('{}')",
        rig.deployment.slot()
    );
    rig.sql.batch_execute(&drop_slot).await.unwrap();
    let relay = rig.start().await;
    rig.insert(&["1"]).await;
    rig.records(&rig.topic("posts.v1"), 1).await;
    relay.stop().await;
}

/// C34: each fault of the publication is told with the statement that mends it.
#[tokio::test(flavor = "multi_thread")]
async fn a_publication_that_lacks_something_is_told_until_it_is_mended() {
    let mut rig = Rig::new().await;
    rig.sql
        .batch_execute("drop publication tideline_outbox")
        .await
        .unwrap();
    let relay = rig.spawn(&[]);
    relay.reaches("publication_gap").await;
    let told = async |part: &str| {
        eventually(part, async || {
            let (status, text) = relay.get("/readyz").await?;
            (status == 503 && text.contains(part)).then_some(())
        })
        .await;
    };
    told("create publication tideline_outbox for table tideline.outbox").await;
    rig.sql
        .batch_execute("create publication tideline_outbox with (publish = 'update')")
        .await
        .unwrap();
    told("set (publish_via_partition_root = true)").await;
    rig.sql
        .batch_execute("alter publication tideline_outbox set (publish_via_partition_root = true)")
        .await
        .unwrap();
    told("add table tideline.outbox").await;
    rig.sql
        .batch_execute("alter publication tideline_outbox add table tideline.outbox")
        .await
        .unwrap();
    told("set (publish = 'insert')").await;
    rig.sql
        .batch_execute("alter publication tideline_outbox set (publish = 'insert')")
        .await
        .unwrap();
    relay.reaches("streaming").await;
    assert!(relay.metric("tideline_relay_publication_gaps_total").await >= 1.0);
    rig.insert(&["1"]).await;
    rig.records(&rig.topic("posts.v1"), 1).await;
    relay.stop().await;
}

/// A walsender that is terminated is a connection that is made again; nothing is lost.
#[tokio::test(flavor = "multi_thread")]
async fn a_terminated_connection_is_made_again() {
    let mut rig = Rig::new().await;
    let relay = rig.start().await;
    let mut sender = walsender_after(&rig, 0).await;
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.extend(rig.insert(&["1", "2"]).await);
        let terminate = format!("select pg_terminate_backend({sender})");
        assert!(rig.one::<bool>(&terminate).await, "it is there");
        ids.extend(rig.insert(&["1", "2"]).await);
        sender = walsender_after(&rig, sender).await;
    }
    relay.reaches("streaming").await;
    rig.confirmed_all().await;
    let mut found: Vec<i64> = rig
        .all_records(&rig.topic("posts.v1"))
        .await
        .iter()
        .map(|record| record.id())
        .collect();
    found.sort_unstable();
    found.dedup();
    assert_eq!(found, ids);
    relay.stop().await;
}

/// Waits until the slot is used by another server process than `last`; answers its id.
async fn walsender_after(rig: &Rig, last: i32) -> i32 {
    let sql = format!(
        "select active_pid from pg_replication_slots where slot_name = '{}'",
        rig.deployment.slot()
    );
    eventually("another connection uses the slot", async || {
        let pid = rig.one::<Option<i32>>(&sql).await;
        pid.filter(|pid| *pid != last)
    })
    .await
}

/// A column that the relay needs is gone: a clear text, not a crash.
#[tokio::test(flavor = "multi_thread")]
async fn a_missing_column_is_told() {
    let rig = Rig::new().await;
    let relay = rig.start().await;
    rig.sql
        .batch_execute(
            "alter table tideline.outbox rename aggregateid to subject;
             insert into tideline.outbox (aggregatetype, subject, partition_key, type, payload)
             values ('post', '1', '5', 'tideline.post.created.v1', '{}')",
        )
        .await
        .unwrap();
    relay.reaches("schema_error").await;
    let told = eventually("the text", async || {
        let (status, text) = relay.get("/readyz").await?;
        (status == 503).then_some(text)
    })
    .await;
    assert!(told.contains("aggregateid"), "{told}");
    relay.stop().await;
}
