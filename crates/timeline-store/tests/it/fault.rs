//! The real store behind a proxy that stalls and cuts: which class an outage has, and that the
//! same call completes once it is over.

use std::time::{Duration, Instant};

use events::Class;
use testkit::{Fault, Proxy};
use timeline_store::{CqlConfig, CqlTimelines, TimelineRow, TimelineStore, WriteMode, Written};

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
    let rows: Vec<_> = (0..500).map(|i| row(i, 1, 0)).collect();
    let store = stalls(&proxy, &config, mode, &rows).await;

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

/// A server that does not answer: the outcome is unknown, and that is known within 5 s (D-7).
async fn stalls(
    proxy: &Proxy,
    config: &CqlConfig,
    mode: WriteMode,
    rows: &[TimelineRow],
) -> CqlTimelines {
    // When this process stands still itself, the limit is missed, or the driver gives the
    // connection up first. Each round has a new connection, which is fresh for seconds.
    for _ in 0..5 {
        let store = connect(config, mode).await;
        proxy.set(Fault::BlackHole);
        let asked = Instant::now();
        let error = store
            .write(rows, &now())
            .await
            .expect_err("nothing can be acknowledged");
        let took = asked.elapsed();
        proxy.clear();
        assert!(error.class().is_retried(), "{error:?}");
        assert_eq!(write(&store, rows).await, ALL);
        if error.class() == Class::Unsure && took < Duration::from_secs(5) {
            return store;
        }
        eprintln!("once more: {took:?}, {error:?}");
    }
    panic!("never known to be unknown within 5 s");
}

#[tokio::test(flavor = "multi_thread")]
async fn d_12_stalls_and_cuts_are_repeated_and_lose_nothing_with_single_writes() {
    check("fault_single", WriteMode::Single).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn d_12_stalls_and_cuts_are_repeated_and_lose_nothing_with_grouped_writes() {
    check("fault_grouped", WriteMode::Grouped).await;
}
