//! A slot whose log the server gave up.

use crate::cluster::{Cluster, Feed, eventually};

#[tokio::test]
async fn a_slot_that_fell_behind_is_invalidated() {
    let cluster = Cluster::start();
    let client = cluster.client().await;
    let feed = Feed::create(&client).await;
    client
        .batch_execute("ALTER SYSTEM SET max_slot_wal_keep_size = '1MB'")
        .await
        .unwrap();
    client
        .batch_execute("SELECT pg_reload_conf()")
        .await
        .unwrap();
    eventually(
        &client,
        "SELECT current_setting('max_slot_wal_keep_size') = '1MB'",
    )
    .await;
    for id in 0..4 {
        feed.insert(&client, id).await;
        client
            .batch_execute("SELECT pg_switch_wal()")
            .await
            .unwrap();
    }
    client.batch_execute("CHECKPOINT").await.unwrap();
    let question = format!(
        "SELECT wal_status = 'lost' FROM pg_replication_slots WHERE slot_name = '{}'",
        feed.slot
    );
    eventually(&client, &question).await;

    let error = cluster
        .connect()
        .await
        .start(&feed.slot, &feed.publication)
        .await
        .unwrap_err();
    assert!(error.is_slot_invalidated(), "{error:?}");
    assert!(!error.is_slot_missing() && !error.is_slot_busy());
}

/// The same SQLSTATE, but nothing is lost.
#[tokio::test]
async fn a_slot_of_another_database_is_not_invalidated() {
    let cluster = crate::cluster::shared();
    let client = cluster.client().await;
    let feed = Feed::create(&client).await;
    let mut config = cluster.config();
    config.database = "template1".to_owned();
    let connection = replication::Connection::connect(&config).await.unwrap();
    let error = connection
        .start(&feed.slot, &feed.publication)
        .await
        .unwrap_err();
    assert_eq!(error.sqlstate(), Some("55000"));
    assert!(!error.is_slot_invalidated(), "{error:?}");
}
