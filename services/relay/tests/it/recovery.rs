//! What the relay mends by itself, and what it leaves to the sweep: lost slots, publication gaps,
//! other servers, topics made anew.

use std::time::{Duration, Instant};

use testkit::{answered, eventually, eventually_within};

use crate::rig::Rig;

const PUBLICATION: &str = "create publication tideline_outbox for table tideline.outbox
     with (publish = 'insert', publish_via_partition_root = true)";

/// C29: a slot that was dropped while no relay ran is made anew; later rows flow without anybody's
/// help, and the sweep is asked for those in between.
#[tokio::test(flavor = "multi_thread")]
async fn a_slot_that_was_dropped_meanwhile_is_made_anew() {
    let mut rig = Rig::new().await;
    let topic = rig.topic("posts.v1");
    let relay = rig.start().await;
    let before = rig.insert(&["1"]).await;
    rig.record_of(&topic, before[0]).await;
    relay.stop().await;
    let drop_slot = format!(
        "select pg_drop_replication_slot('{}')",
        rig.deployment.slot()
    );
    eventually("the slot is free", async || {
        rig.sql.batch_execute(&drop_slot).await.ok()
    })
    .await;
    let skipped = rig.insert(&["1", "2"]).await;
    let relay = rig.start().await;
    let after = rig.insert(&["1"]).await;
    rig.record_of(&topic, after[0]).await;
    let found: Vec<i64> = rig
        .all_records(&topic)
        .await
        .iter()
        .map(|record| record.id())
        .collect();
    assert!(
        skipped.iter().all(|id| !found.contains(id)),
        "those are the sweep's: {found:?}"
    );
    assert_eq!(rig.requests("slot_lost").await, 1);
    assert_eq!(
        rig.requests("slot_ahead").await,
        0,
        "the relay moved it itself"
    );
    let metric = async |series| relay.metric(series).await;
    assert_eq!(metric("tideline_relay_slot_recreated_total").await, 1.0);
    let asked = "tideline_relay_sweep_requests_total{reason=\"slot_lost\"}";
    assert_eq!(metric(asked).await, 1.0);
    rig.confirmed_all().await;
    relay.stop().await;
}

/// C29: the same while the relay runs.
#[tokio::test(flavor = "multi_thread")]
async fn a_slot_that_is_dropped_under_the_relay_is_made_anew() {
    let mut rig = Rig::new().await;
    let topic = rig.topic("posts.v1");
    let relay = rig.start().await;
    let before = rig.insert(&["1"]).await;
    rig.record_of(&topic, before[0]).await;
    let slot = rig.deployment.slot();
    // One round trip, so that the relay does not take the slot again in between.
    let sql = format!(
        "do $$ begin
            for i in 1..500 loop
                perform pg_terminate_backend(active_pid) from pg_replication_slots
                    where slot_name = '{slot}' and active;
                begin
                    perform pg_drop_replication_slot('{slot}');
                    return;
                exception when object_in_use then
                    perform pg_sleep(0.01);
                end;
            end loop;
            raise 'the slot was never free';
        end $$"
    );
    rig.sql.batch_execute(&sql).await.unwrap();
    eventually("the slot is made anew", async || {
        (relay.metric("tideline_relay_slot_recreated_total").await == 1.0).then_some(())
    })
    .await;
    relay.reaches("streaming").await;
    let after = rig.insert(&["1"]).await;
    rig.record_of(&topic, after[0]).await;
    assert_eq!(rig.requests("slot_lost").await, 1);
    relay.stop().await;
}

/// C29: two relays and one lost slot: one makes it and streams, the other stands by.
#[tokio::test(flavor = "multi_thread")]
async fn two_relays_make_one_slot() {
    let mut rig = Rig::new().await;
    let topic = rig.topic("posts.v1");
    let relay = rig.start().await;
    let before = rig.insert(&["1"]).await;
    rig.record_of(&topic, before[0]).await;
    relay.stop().await;
    let drop_slot = format!(
        "select pg_drop_replication_slot('{}')",
        rig.deployment.slot()
    );
    eventually("the slot is free", async || {
        rig.sql.batch_execute(&drop_slot).await.ok()
    })
    .await;
    let relays = [rig.spawn(&[]), rig.spawn(&[])];
    let streaming = "tideline_relay_state{state=\"streaming\"}";
    let standby = "tideline_relay_state{state=\"standby\"}";
    eventually("one streams, one stands by", async || {
        let mut sums = (0.0, 0.0);
        for relay in &relays {
            relay.get("/metrics").await?;
            sums.0 += relay.metric(streaming).await;
            sums.1 += relay.metric(standby).await;
        }
        (sums == (1.0, 1.0)).then_some(())
    })
    .await;
    let after = rig.insert(&["1"]).await;
    rig.record_of(&topic, after[0]).await;
    assert!(rig.requests("slot_lost").await >= 1);
    for relay in relays {
        relay.stop().await;
    }
}

/// C15: somebody moved the slot past rows; the sweep is asked to look.
#[tokio::test(flavor = "multi_thread")]
async fn a_slot_ahead_of_its_note_is_a_request_to_the_sweep() {
    let mut rig = Rig::new().await;
    let relay = rig.start().await;
    rig.insert(&["1"]).await;
    rig.confirmed_all().await;
    relay.stop().await;
    let relay = rig.start().await;
    assert_eq!(
        rig.requests("slot_ahead").await,
        0,
        "a stop notes where the slot stands"
    );
    relay.stop().await;
    rig.insert(&["1"]).await;
    let advance = format!(
        "select pg_replication_slot_advance('{}', pg_current_wal_lsn())",
        rig.deployment.slot()
    );
    eventually("the slot is free", async || {
        rig.sql.batch_execute(&advance).await.ok()
    })
    .await;
    let relay = rig.start().await;
    assert_eq!(rig.requests("slot_ahead").await, 1);
    relay.stop().await;
}

/// C34: the publication goes away while records flow and comes back. Before version 18 the slot
/// cannot get past the spot by itself: the relay moves it, and asks for the rows in between.
#[tokio::test(flavor = "multi_thread")]
async fn a_publication_that_comes_back_is_enough() {
    let mut rig = Rig::new().await;
    let relay = rig.start().await;
    let topic = rig.topic("posts.v1");
    let before = rig.insert(&["1"]).await;
    rig.record_of(&topic, before[0]).await;
    rig.confirmed_all().await;
    rig.sql
        .batch_execute("drop publication tideline_outbox")
        .await
        .unwrap();
    rig.insert(&["2"]).await;
    relay.reaches("publication_gap").await;
    assert_eq!(
        rig.requests("publication_gap").await,
        0,
        "nothing to mend yet"
    );
    rig.sql.batch_execute(PUBLICATION).await.unwrap();
    eventually("the slot is moved", async || {
        (relay.metric("tideline_relay_slot_advanced_total").await >= 1.0).then_some(())
    })
    .await;
    relay.reaches("streaming").await;
    let after = rig.insert(&["3"]).await;
    rig.record_of(&topic, after[0]).await;
    rig.confirmed_all().await;
    assert!(rig.requests("publication_gap").await >= 1);
    assert_eq!(rig.requests("slot_ahead").await, 0);
    assert!(relay.metric("tideline_relay_publication_gaps_total").await >= 1.0);
    relay.stop().await;
}

/// C34: the same when nobody has noticed: dropped, rows, made again, all while no relay ran.
#[tokio::test(flavor = "multi_thread")]
async fn a_publication_gap_of_the_past_is_mended_too() {
    let mut rig = Rig::new().await;
    let topic = rig.topic("posts.v1");
    rig.sql
        .batch_execute("drop publication tideline_outbox")
        .await
        .unwrap();
    rig.insert(&["2"]).await;
    rig.sql.batch_execute(PUBLICATION).await.unwrap();
    let relay = rig.spawn(&[]);
    eventually("the slot is moved", async || {
        relay.get("/metrics").await?;
        (relay.metric("tideline_relay_slot_advanced_total").await >= 1.0).then_some(())
    })
    .await;
    relay.reaches("streaming").await;
    let after = rig.insert(&["3"]).await;
    rig.record_of(&topic, after[0]).await;
    assert!(rig.requests("publication_gap").await >= 1);
    relay.stop().await;
}

/// C31: a server that the epoch does not know begins a new one; records and entries name it.
#[tokio::test(flavor = "multi_thread")]
async fn another_server_begins_a_new_epoch() {
    let mut rig = Rig::new().await;
    let topic = rig.topic("posts.v1");
    rig.sql
        .batch_execute("update tideline.epoch set system_id = '1'")
        .await
        .unwrap();
    let relay = rig.start().await;
    let ids = rig.insert(&["1"]).await;
    let record = rig.record_of(&topic, ids[0]).await;
    assert!(
        record.headers["ce_source"].ends_with("/outbox/2"),
        "{record:?}"
    );
    let entered = format!(
        "select count(*) from tideline.delivery_ledger where epoch = 2 and ids @> {}::bigint",
        ids[0]
    );
    eventually("entered under the new epoch", async || {
        (rig.one::<i64>(&entered).await == 1).then_some(())
    })
    .await;
    assert_eq!(
        relay.metric("tideline_relay_epoch_changes_total").await,
        1.0
    );
    assert_eq!(rig.requests("new_epoch").await, 1);
    assert_eq!(
        rig.one::<i64>("select count(*) from tideline.epoch").await,
        2
    );
    relay.stop().await;
}

/// C31: an epoch that begins while records flow: entries of the old one are dropped, never entered
/// under the new one, and records name the new one soon.
#[tokio::test(flavor = "multi_thread")]
async fn an_epoch_that_begins_meanwhile_is_taken_over() {
    let mut rig = Rig::new().await;
    let topic = rig.topic("posts.v1");
    let relay = rig.start().await;
    rig.sql
        .batch_execute(
            "insert into tideline.epoch (epoch, system_id, pg_timeline)
             select epoch + 1, system_id, pg_timeline from tideline.epoch",
        )
        .await
        .unwrap();
    let old = rig.insert(&["1"]).await;
    let record = rig.record_of(&topic, old[0]).await;
    assert!(record.headers["ce_source"].ends_with("/outbox/1"));
    eventually("the entry is refused", async || {
        (relay.metric("tideline_relay_ledger_failures_total").await == 1.0).then_some(())
    })
    .await;
    let new = rig.insert(&["1"]).await;
    let record = rig.record_of(&topic, new[0]).await;
    assert!(
        record.headers["ce_source"].ends_with("/outbox/2"),
        "{record:?}"
    );
    let has = |id: i64| {
        format!("select count(*) from tideline.delivery_ledger where ids @> {id}::bigint")
    };
    eventually("the new one is entered", async || {
        (rig.one::<i64>(&has(new[0])).await == 1).then_some(())
    })
    .await;
    assert_eq!(rig.one::<i64>(&has(old[0])).await, 0);
    relay.stop().await;
}

/// D-4: on an idle server an idle relay passes a mark in the log soon, without being asked; the
/// sweep waits for that.
#[tokio::test(flavor = "multi_thread")]
async fn d_4_an_idle_relay_passes_a_mark_soon() {
    let rig = Rig::new().await;
    let relay = rig.start().await;
    let pool = database::Pool::new(&rig.deployment.database_url(), 1, "test").unwrap();
    let mut rounds = Vec::new();
    for _ in 0..5 {
        let mark = database::slots::mark(&pool.get().await.unwrap())
            .await
            .unwrap();
        let began = Instant::now();
        let sql = format!(
            "select confirmed_flush_lsn >= '{}'::pg_lsn from pg_replication_slots where slot_name = '{}'",
            events::envelope::lsn(mark),
            rig.deployment.slot()
        );
        eventually("the mark is passed", async || {
            rig.one::<bool>(&sql).await.then_some(())
        })
        .await;
        rounds.push(began.elapsed());
    }
    // A machine that stands still for a moment spoils a round or two, never most of them.
    rounds.sort_unstable();
    println!("rounds {rounds:?}");
    assert!(rounds[2] < Duration::from_secs(3), "{rounds:?}");
    relay.stop().await;
}

/// The topic is deleted and made again under the relay: an outage that ends, not the end.
#[tokio::test(flavor = "multi_thread")]
async fn a_topic_made_anew_is_produced_to() {
    let mut rig = Rig::new().await;
    let topic = rig.topic("posts.v1");
    let relay = rig.start().await;
    let before = rig.insert(&["1", "2", "3"]).await;
    rig.record_of(&topic, before[2]).await;
    let kafka = rig.deployment.kafka_config();
    // Returns when the broker takes no record any more for what is gone with the topic.
    answered(|| kafka::surgery::delete_topic(&kafka, &topic)).await;
    let meanwhile = rig.insert(&["1", "2", "3"]).await;
    answered(|| kafka::topics::create(&kafka)).await;
    let after = rig.insert(&["1", "2", "3"]).await;
    eventually_within(
        Duration::from_secs(90),
        "all rows since arrive",
        async || {
            let all = rig.all_records(&topic).await;
            let there = |id: &i64| all.iter().any(|record| record.id() == *id);
            (meanwhile.iter().all(there) && after.iter().all(there)).then_some(())
        },
    )
    .await;
    rig.confirmed_all().await;
    relay.stop().await;
}
