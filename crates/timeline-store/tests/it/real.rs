//! What only the real store has: permits, and statements that reach every row in both modes.

use std::time::{Duration, Instant};

use events::{Micros, PostId, UserId};
use scylla::client::session_builder::SessionBuilder;
use testkit::{answered, eventually_within};
use timeline_store::{CqlConfig, ScanPosition, TimelineStore, WriteMode, Written};

use crate::store::{T0, all, connect, delete, erase, keyspace, now, page, row, write, write_at};

const MINUTE: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread")]
async fn d_13_calls_at_the_same_time_share_the_permits_and_give_them_back() {
    let config = CqlConfig {
        in_flight: 40,
        ..keyspace("permits").await
    };
    for mode in [WriteMode::Single, WriteMode::Grouped] {
        let store = connect(&config, mode).await;
        let calls = (0..4_i64).map(|call| {
            let store = store.clone();
            async move {
                let rows: Vec<_> = (0..300).map(|i| row(call * 1_000 + i, 1, 0)).collect();
                write(&store, &rows).await
            }
        });
        let written = futures::future::join_all(calls).await;
        assert!(
            written.iter().all(|w| *w
                == Written {
                    rows: 300,
                    expired: 0
                }),
            "{written:?}"
        );
        assert_eq!(store.free_permits(), 40);
    }
    assert_eq!(
        all(&connect(&config, WriteMode::Single).await).await.len(),
        1_200
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_write_gives_its_permits_back() {
    let config = keyspace("cancelled").await;
    let rows: Vec<_> = (0..20_000).map(|i| row(i, 1, 0)).collect();
    let now = now();
    let (store, before) = eventually_within(MINUTE, "a write is cancelled", async || {
        let store = connect(&config, WriteMode::Single).await;
        let before = store.free_permits();
        let limit = Duration::from_millis(20);
        match tokio::time::timeout(limit, store.write(&rows, &now)).await {
            Err(_) => Some((store, before)),
            // A connection that breaks ends the call by itself.
            Ok(Err(error)) if error.class().is_retried() => None,
            Ok(ended) => panic!("20 000 rows in 20 ms: {ended:?}"),
        }
    })
    .await;
    let deadline = Instant::now() + Duration::from_secs(10);
    while store.free_permits() != before {
        assert!(Instant::now() < deadline, "permits are lost");
        tokio::task::yield_now().await;
    }
    // The whole call again is harmless and completes it.
    let written = write_at(&store, &rows, &now).await;
    assert_eq!(
        written,
        Written {
            rows: 20_000,
            expired: 0
        }
    );
    assert_eq!(all(&store).await.len(), 20_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn statements_that_the_server_forgot_are_prepared_again() {
    let config = keyspace("forgotten").await;
    for (column, mode) in [("a", WriteMode::Single), ("b", WriteMode::Grouped)] {
        let store = connect(&config, mode).await;
        write(&store, &[row(1, 1, 0), row(2, 1, 0)]).await;
        // A new column, as a later schema would bring it, makes the server drop every statement
        // on the table.
        add_column(&config, column).await;
        write(&store, &[row(1, 2, 0), row(2, 2, 0)]).await;
        erase(&store, &[delete(1, 2, 1), delete(2, 2, 1)]).await;
        assert_eq!(page(&store, 1, None, None, 10).await, [1]);
        assert_eq!(all(&store).await.len(), 2);
    }
}

/// Adds a column to the table, by another session. A server that gave no answer may have added it
/// already.
async fn add_column(config: &CqlConfig, column: &str) {
    let keyspace = &config.keyspace;
    let alter = format!("ALTER TABLE {keyspace}.timelines ADD IF NOT EXISTS {column} text");
    let add = async || -> Result<(), Box<dyn std::error::Error>> {
        let builder = SessionBuilder::new().known_nodes(&config.nodes);
        // Boxed because the driver's futures are large.
        let session = Box::pin(builder.build()).await?;
        Box::pin(session.query_unpaged(alter.as_str(), ())).await?;
        Ok(())
    };
    eventually_within(MINUTE, "the column is added", async || {
        let tell = |error: &_| eprintln!("asked again: {error:?}");
        add().await.inspect_err(tell).ok()
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_is_read_alone_with_its_times() {
    let store = connect(&keyspace("row").await, WriteMode::Single).await;
    write(&store, &[row(1, 2, 7), row(1, 3, 8)]).await;
    erase(&store, &[delete(1, 3, 9)]).await;
    let read = answered(async || store.row(UserId(1), PostId(2)).await).await;
    let read = read.expect("it is there");
    assert_eq!((read.owner, read.post), (UserId(1), PostId(2)));
    assert_eq!((read.author, read.write_us), (UserId(20), Micros(T0 + 7)));
    assert!(read.ttl_seconds.is_some_and(|left| left > 0), "{read:?}");
    for (owner, post) in [(1, 3), (2, 2)] {
        let absent = answered(async || store.row(UserId(owner), PostId(post)).await).await;
        assert_eq!(absent, None);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_scan_goes_on_page_by_page() {
    let store = connect(&keyspace("pages").await, WriteMode::Grouped).await;
    let rows: Vec<_> = (0..250).map(|i| row(i % 7, i, 0)).collect();
    write(&store, &rows).await;
    let (mut seen, mut pages) = (Vec::new(), 0);
    let mut position = Some(ScanPosition::start());
    while let Some(from) = position {
        let (rows, next) = answered(|| store.scan_page(40, from.clone())).await;
        assert!(rows.len() <= 40, "{}", rows.len());
        seen.extend(rows.into_iter().map(|row| row.post.0));
        position = next;
        pages += 1;
    }
    seen.sort_unstable();
    assert!(seen.into_iter().eq(0..250));
    assert!(pages >= 7, "{pages}");
}
