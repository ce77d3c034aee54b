//! Outbox days: made, kept while unfinished, dropped.

use events::Stage;
use testkit::{eventually, eventually_within};

use crate::rig::Rig;

/// D-11: a day that is past its retention stays while one of its rows is unfinished in a stage.
#[tokio::test(flavor = "multi_thread")]
async fn d_11_days_are_made_and_dropped_when_finished() {
    let rig = Rig::new().await;
    let made: String = rig
        .one("select tideline.ensure_outbox_day((now() at time zone 'UTC')::date - 20)")
        .await;
    assert_eq!(made, "created");
    let sql = "insert into tideline.outbox (aggregatetype, aggregateid, partition_key, type, payload, created_at)
        values ('post', '7', '7', 'tideline.post.created.v1', '{}', now() - interval '20 days') returning id";
    let id: i64 = rig.one(sql).await;
    rig.enter(Stage::Published, &[id]).await;
    // Else the sweep would finish the row by itself: what is so old is discarded.
    let sweep = rig.start(&[("TIDELINE_SWEEP__GRACE", "1h")]).await;
    sweep
        .reaches("tideline_outbox_day_held", |value| value == 1.0)
        .await;
    let days = "select count(*) from pg_inherits i join pg_class c on c.oid = i.inhrelid
        where i.inhparent = 'tideline.outbox'::regclass and c.relname < 'outbox_' || to_char((now() at time zone 'UTC')::date - 8, 'YYYYMMDD')
          and c.relname ~ '^outbox_[0-9]{8}$'";
    assert_eq!(rig.one::<i64>(days).await, 1);
    let ahead: bool = rig
        .one("select to_regclass('tideline.outbox_' || to_char((now() at time zone 'UTC')::date + 14, 'YYYYMMDD')) is not null")
        .await;
    assert!(ahead);

    rig.enter(Stage::Delivered, &[id]).await;
    eventually_within(
        std::time::Duration::from_secs(60),
        "the day is dropped",
        async || (rig.one::<i64>(days).await == 0).then_some(()),
    )
    .await;
    sweep
        .reaches("tideline_outbox_day_held", |value| value == 0.0)
        .await;
    assert_eq!(
        sweep
            .metric("tideline_outbox_days{state=\"dropped\"}")
            .await,
        1.0
    );
    sweep.stop().await;
}

/// Rows of no day raise an alarm.
#[tokio::test(flavor = "multi_thread")]
async fn rows_in_the_default_partition_raise_an_alarm() {
    let rig = Rig::new().await;
    let sql = "insert into tideline.outbox (aggregatetype, aggregateid, partition_key, type, payload, created_at)
        values ('post', '7', '7', 'tideline.post.created.v1', '{}', now() + interval '100 days')";
    rig.sql.batch_execute(sql).await.unwrap();
    let sweep = rig.start(&[]).await;
    sweep
        .reaches("tideline_outbox_default_rows", |value| value == 1.0)
        .await;
    sweep.stop().await;
}

/// Ledger rows of one block are folded into one.
#[tokio::test(flavor = "multi_thread")]
async fn ledger_rows_are_folded() {
    let rig = Rig::new().await;
    let posts = rig.posts(20).await;
    for id in &posts {
        rig.enter(Stage::Delivered, &[*id]).await;
    }
    let sweep = rig.start(&[]).await;
    eventually("one row is left", async || {
        let rows: i64 = rig
            .one("select count(*) from tideline.delivery_ledger")
            .await;
        (rows == 1).then_some(())
    })
    .await;
    assert_eq!(rig.missing(Stage::Delivered).await, 0);
    sweep
        .reaches("tideline_sweep_compacted_rows_total", |value| value >= 19.0)
        .await;
    sweep.stop().await;
}
