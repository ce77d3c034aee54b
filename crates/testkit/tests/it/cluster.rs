//! Failover and restore do to a server what they are said to do.

use testkit::{Cluster, eventually};
use tokio_postgres::Client;

#[tokio::test(flavor = "multi_thread")]
async fn a_standby_that_was_cut_off_takes_over_without_the_last_rows() {
    let mut primary = Cluster::primary().await;
    let before = primary.sql("postgres").await;
    write(&before, "create table t (id int)").await;
    let mut standby = primary.standby().await;
    write(&before, "insert into t values (1)").await;
    let replica = standby.sql("postgres").await;
    eventually("the standby follows", async || {
        (rows(&replica).await == [1]).then_some(())
    })
    .await;
    standby.cut_off().await;
    write(&before, "insert into t values (2)").await;
    let (life, address) = (life_of(&before).await, primary.url("postgres"));

    primary.kill().await;
    standby.take_address_of(&primary).await;
    assert_eq!(standby.url("postgres"), address);
    standby.promote().await;
    let after = standby.sql("postgres").await;
    assert_eq!(rows(&after).await, [1]);
    assert_eq!(life_of(&after).await, (life.0, life.1 + 1));
    write(&after, "insert into t values (3)").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restored_backup_has_its_own_rows_and_a_history_of_its_own() {
    let mut cluster = Cluster::primary().await;
    let before = cluster.sql("postgres").await;
    write(&before, "create table t (id int)").await;
    write(&before, "insert into t values (1)").await;
    let backup = cluster.backup().await;
    write(&before, "insert into t values (2)").await;
    let (life, address) = (life_of(&before).await, cluster.url("postgres"));

    cluster.restore(backup).await;
    assert_eq!(cluster.url("postgres"), address);
    let after = cluster.sql("postgres").await;
    assert_eq!(rows(&after).await, [1]);
    assert_eq!(life_of(&after).await, (life.0, life.1 + 1));
    write(&after, "insert into t values (3)").await;
}

async fn write(sql: &Client, statement: &str) {
    let count = sql.execute(statement, &[]).await;
    let _count = count.expect("write");
}

async fn rows(sql: &Client) -> Vec<i32> {
    let rows = sql.query("select id from t order by id", &[]).await;
    rows.expect("read").iter().map(|row| row.get(0)).collect()
}

/// System id and timeline.
async fn life_of(sql: &Client) -> (i64, i64) {
    let query = "select system_identifier,
            ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::bigint
        from pg_control_system()";
    let row = sql.query_one(query, &[]).await.expect("ask who it is");
    (row.get(0), row.get(1))
}
