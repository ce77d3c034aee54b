//! The schema runner against a real server.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use events::Class;
use testkit::{answered, eventually_within};
use timeline_store::schema::{Migrated, migrate};
use timeline_store::{CqlConfig, CqlTimelines, StoreError};

use crate::store::node;

#[tokio::test(flavor = "multi_thread")]
async fn starters_at_the_same_time_make_one_schema_and_a_repeat_changes_nothing() {
    let nodes = vec![node().await];
    let keyspace = testkit::unique("schema");
    let starts = AtomicUsize::new(0);
    let starters = (0..3).map(|_| {
        answered(|| {
            starts.fetch_add(1, Ordering::Relaxed);
            migrate(&nodes, &keyspace, 1)
        })
    });
    let outcomes = futures::future::join_all(starters).await;
    assert!(outcomes.iter().all(|o| o.version == 1), "{outcomes:?}");
    let applied: usize = outcomes.iter().map(|o| o.applied).sum();
    // A starter that the server left without an answer may have applied it and not know.
    let unknown = starts.into_inner() - outcomes.len();
    assert!(applied <= 1 && applied + unknown >= 1, "{outcomes:?}");
    let again = answered(|| migrate(&nodes, &keyspace, 1)).await;
    assert_eq!(
        again,
        Migrated {
            applied: 0,
            version: 1
        }
    );

    let config = CqlConfig {
        nodes,
        keyspace,
        ..CqlConfig::default()
    };
    let store = answered(|| CqlTimelines::connect(&config)).await;
    assert_eq!(store.gc_grace(), Duration::from_secs(864_000));
}

#[tokio::test]
async fn a_service_without_schema_waits() {
    let config = CqlConfig {
        nodes: vec![node().await],
        keyspace: testkit::unique("nothing_here"),
        ..CqlConfig::default()
    };
    let minute = Duration::from_secs(60);
    let error = eventually_within(minute, "an answer about the schema", async || {
        let error = CqlTimelines::connect(&config)
            .await
            .expect_err("there is no schema");
        // A server that does not answer in time says nothing about it.
        let is_answer =
            matches!(error, StoreError::SchemaBehind { .. }) || !error.class().is_retried();
        is_answer.then_some(error)
    })
    .await;
    assert!(
        matches!(
            error,
            StoreError::SchemaBehind {
                found: 0,
                needed: 1,
                ..
            }
        ),
        "{error}"
    );
    assert_eq!(error.class(), Class::Outage);
}

#[tokio::test]
async fn d_12_no_server_is_an_outage_and_is_found_soon() {
    // Bound and not listening: the port answers with a reset.
    let socket = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = socket.local_addr().expect("its address").to_string();
    drop(socket);
    let config = CqlConfig {
        nodes: vec![address],
        ..CqlConfig::default()
    };
    let asked = std::time::Instant::now();
    let error = CqlTimelines::connect(&config)
        .await
        .expect_err("nobody listens");
    assert_eq!(error.class(), Class::Outage, "{error:?}");
    assert!(asked.elapsed() < Duration::from_secs(15));
}

#[tokio::test]
async fn bad_settings_are_configuration() {
    for (keyspace, factor) in [("Bad-Name", 1), ("fine", 0)] {
        let error = migrate(&["127.0.0.1:1".to_owned()], keyspace, factor).await;
        assert_eq!(
            error.expect_err("refused before connecting").class(),
            Class::Config
        );
    }
}
