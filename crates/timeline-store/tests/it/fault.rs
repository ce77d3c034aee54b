//! The real store behind a proxy that stalls and cuts: which class an outage has, and that the
//! same call completes once it is over.

use std::time::{Duration, Instant};

use events::Class;
use testkit::{Fault, Proxy};
use timeline_store::{CqlConfig, StoreError, TimelineStore, WriteMode, Written};

use crate::store::{all, connect, keyspace, now, row};

/// Repeats a write as a service does, until it is done.
async fn until_written(store: &impl TimelineStore, rows: &[timeline_store::TimelineRow]) {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        match store.write(rows, &now()).await {
            Ok(written) => {
                assert_eq!(
                    written,
                    Written {
                        rows: rows.len() as u64,
                        expired: 0
                    }
                );
                return;
            }
            Err(error) => assert!(repeatable(&error), "{error:?}"),
        }
        assert!(Instant::now() < deadline, "the store does not come back");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

fn repeatable(error: &StoreError) -> bool {
    matches!(error.class(), Class::Outage | Class::Unsure)
}

async fn check(name: &str, mode: WriteMode) {
    let direct = keyspace(name).await;
    let proxy = Proxy::start(&direct.nodes.concat());
    let config = CqlConfig {
        nodes: vec![proxy.address()],
        ..direct.clone()
    };
    let store = connect(&config, mode).await;
    let rows: Vec<_> = (0..500).map(|i| row(i, 1, 0)).collect();

    // A server that does not answer: the outcome is unknown, and that is known within 5 s (D-7).
    proxy.set(Fault::BlackHole);
    let asked = Instant::now();
    let error = store
        .write(&rows, &now())
        .await
        .expect_err("nothing can be acknowledged");
    assert_eq!(error.class(), Class::Unsure, "{error:?}");
    assert!(
        asked.elapsed() < Duration::from_secs(5),
        "{:?}",
        asked.elapsed()
    );
    proxy.clear();
    until_written(&store, &rows).await;

    // A server that is gone.
    proxy.set(Fault::Reset);
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        let error = store
            .write(&rows, &now())
            .await
            .expect_err("nothing can be sent");
        assert!(repeatable(&error), "{error:?}");
        if error.class() == Class::Outage {
            break;
        }
        assert!(
            Instant::now() < deadline,
            "never seen as an outage: {error:?}"
        );
    }
    // A scan of a store that was away is late, not in vain.
    let (read, ()) = tokio::join!(all(&store), async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        proxy.clear();
    });
    assert_eq!(read.len(), 500);
    until_written(&store, &rows).await;
    assert_eq!(all(&connect(&direct, mode).await).await.len(), 500);
}

#[tokio::test(flavor = "multi_thread")]
async fn d_12_stalls_and_cuts_are_repeated_and_lose_nothing_with_single_writes() {
    check("fault_single", WriteMode::Single).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn d_12_stalls_and_cuts_are_repeated_and_lose_nothing_with_grouped_writes() {
    check("fault_grouped", WriteMode::Grouped).await;
}
