//! The real store behind a proxy that stalls and cuts: which class an outage has, and that the
//! same call completes once it is over.

use std::time::{Duration, Instant};

use events::Class;
use testkit::{Fault, Proxy};
use timeline_store::{CqlConfig, TimelineStore, WriteMode, Written};

use crate::store::{all, connect, keyspace, now, row, write};

const ALL: Written = Written {
    rows: 500,
    expired: 0,
};

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
    assert_eq!(write(&store, &rows).await, ALL);

    // A server that is gone.
    proxy.set(Fault::Reset);
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        let error = store
            .write(&rows, &now())
            .await
            .expect_err("nothing can be sent");
        assert!(error.class().is_retried(), "{error:?}");
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
    assert_eq!(write(&store, &rows).await, ALL);
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
