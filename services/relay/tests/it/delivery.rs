//! Rows that are committed become records, in order, whole, and the slot follows.

use std::collections::{BTreeMap, BTreeSet};

use testkit::eventually;

use crate::rig::Rig;

#[tokio::test(flavor = "multi_thread")]
async fn committed_rows_become_records_with_the_whole_envelope() {
    let mut rig = Rig::new().await;
    let relay = rig.start().await;
    let ids = rig.insert(&["11", "12", "11"]).await;
    let records = rig.records(&rig.topic("posts.v1"), 3).await;
    let found: BTreeSet<i64> = records.iter().map(|record| record.id()).collect();
    assert_eq!(found, ids.iter().copied().collect());
    let mut sequences = BTreeMap::new();
    for record in &records {
        let header = |name: &str| record.headers.get(name).cloned().unwrap_or_default();
        let row = rig
            .sql
            .query_one(
                "select partition_key, to_char(created_at at time zone 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US')
                 from tideline.outbox where id = $1",
                &[&record.id()],
            )
            .await
            .unwrap();
        let (key, time): (String, String) = (row.get(0), row.get(1));
        assert_eq!(record.key.as_deref(), Some(key.as_bytes()));
        assert_eq!(
            record.payload.as_deref(),
            Some(&br#"{"post_id": "77"}"#[..])
        );
        assert_eq!(header("ce_specversion"), "1.0");
        assert_eq!(header("ce_type"), "tideline.post.created.v1");
        assert_eq!(header("ce_subject"), "77");
        assert_eq!(
            header("ce_source"),
            format!("/tideline/{}/outbox/1", rig.deployment.keyspace())
        );
        assert_eq!(
            header("ce_time")
                .trim_end_matches('Z')
                .trim_end_matches('0'),
            time.trim_end_matches('0')
        );
        assert_eq!(header("content-type"), "application/json");
        assert_eq!(header("traceparent"), "00-1-2-01");
        assert_eq!(header("tideline-path"), "cdc");
        assert_eq!(header("tideline-attempt"), "1");
        assert!(header("tideline-commit-lsn").contains('/'));
        sequences.insert(header("ce_sequence"), record.id());
    }
    assert_eq!(
        sequences.into_values().collect::<Vec<_>>(),
        ids,
        "text order is row order"
    );
    assert_eq!(
        records
            .iter()
            .filter(|record| record.key.as_deref() == Some(b"11"))
            .map(|r| r.partition)
            .collect::<BTreeSet<_>>()
            .len(),
        1
    );

    rig.confirmed_all().await;
    let sql = "select count(*) from tideline.outbox o where not exists \
               (select from tideline.delivery_ledger l where l.stage = 'published' and l.ids @> o.id)";
    eventually("the ledger has them", async || {
        (rig.one::<i64>(sql).await == 0).then_some(())
    })
    .await;
    assert!(
        relay
            .metric("tideline_relay_records_total{result=\"acked\"}")
            .await
            >= 3.0
    );
    relay.stop().await;
}

/// C19, D-4: only another table is written.
#[tokio::test(flavor = "multi_thread")]
async fn a_quiet_outbox_does_not_pin_the_log() {
    let rig = Rig::new().await;
    let relay = rig.start().await;
    rig.sql
        .batch_execute(
            "create table other (n int); insert into other select generate_series(1, 10000)",
        )
        .await
        .unwrap();
    rig.confirmed_all().await;
    assert!(relay.metric("tideline_relay_idle_advances_total").await >= 1.0);
    relay.stop().await;
}

/// C16: an idle restart repeats nothing; rows committed meanwhile arrive.
#[tokio::test(flavor = "multi_thread")]
async fn an_idle_restart_repeats_nothing() {
    let mut rig = Rig::new().await;
    let relay = rig.start().await;
    let mut ids = rig.insert(&["1", "2", "3"]).await;
    let topic = rig.topic("posts.v1");
    rig.records(&topic, 3).await;
    relay.stop().await;
    ids.extend(rig.insert(&["4"]).await);
    let relay = rig.start().await;
    rig.records(&topic, 4).await;
    rig.confirmed_all().await;
    relay.stop().await;
    let found: Vec<i64> = rig
        .all_records(&topic)
        .await
        .iter()
        .map(|record| record.id())
        .collect();
    assert_eq!(found.len(), 4, "no repeats: {found:?}");
    assert_eq!(
        found.into_iter().collect::<BTreeSet<_>>(),
        ids.into_iter().collect()
    );
}

/// C39, D-13: a large transaction stays bounded in flight, and all of it arrives.
#[tokio::test(flavor = "multi_thread")]
async fn a_large_transaction_stays_bounded_in_flight() {
    let rig = Rig::new().await;
    let relay = rig.spawn(&[("TIDELINE_RELAY__MAX_ROWS_IN_FLIGHT", "500")]);
    relay.reaches("streaming").await;
    let rows = 50_000;
    let sql = format!(
        "insert into tideline.outbox (aggregatetype, aggregateid, partition_key, type, payload)
         select 'post', n::text, (n % 100)::text, 'tideline.post.created.v1', '{{}}' from generate_series(1, {rows}) n"
    );
    let insert = rig.sql.batch_execute(&sql);
    let most = async {
        let mut most = 0.0_f64;
        loop {
            most = most.max(relay.metric("tideline_relay_records_in_flight").await);
            if relay
                .metric("tideline_relay_records_total{result=\"acked\"}")
                .await
                >= f64::from(rows)
            {
                return most;
            }
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    };
    let (inserted, most) = tokio::join!(insert, most);
    inserted.unwrap();
    assert!(most > 0.0 && most <= 500.0, "{most} in flight");
    rig.confirmed_all().await;
    let records = rig.all_records(&rig.topic("posts.v1")).await;
    assert_eq!(records.len(), usize::try_from(rows).unwrap());
    // D-5: per key the records are in the order of the rows.
    let mut last: BTreeMap<Vec<u8>, i64> = BTreeMap::new();
    for record in records {
        let before = last.insert(record.key.clone().unwrap(), record.id());
        assert!(before.is_none_or(|before| before < record.id()));
    }
    relay.stop().await;
}

/// C36: what a savepoint rolled back never arrives, the rest does.
#[tokio::test(flavor = "multi_thread")]
async fn a_rolled_back_savepoint_takes_only_its_own_rows() {
    let rig = Rig::new().await;
    let relay = rig.start().await;
    let rows = |from: i32, to: i32| {
        format!(
            "insert into tideline.outbox (aggregatetype, aggregateid, partition_key, type, payload)
             select 'post', n::text, '1', 'tideline.post.created.v1', '{{}}' from generate_series({from}, {to}) n;"
        )
    };
    let sql = format!(
        "begin; {} savepoint s; {} rollback to s; {} commit;",
        rows(1, 500),
        rows(501, 1000),
        rows(1001, 1005)
    );
    rig.sql.batch_execute(&sql).await.unwrap();
    let records = rig.records(&rig.topic("posts.v1"), 505).await;
    rig.confirmed_all().await;
    relay.stop().await;
    assert_eq!(rig.all_records(&rig.topic("posts.v1")).await.len(), 505);
    let subjects: Vec<i32> = records
        .iter()
        .map(|record| record.headers["ce_subject"].parse().unwrap())
        .collect();
    assert_eq!(subjects, (1..=500).chain(1001..=1005).collect::<Vec<_>>());
}
