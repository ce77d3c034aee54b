//! The stores under test: the twin, and the real one in both write modes with a keyspace of its
//! own for each test.

use std::time::Instant;

use events::{Micros, PostId, UserId};
use testkit::answered;
use timeline_store::{
    CqlConfig, CqlTimelines, PgNow, ScannedRow, TimelineDelete, TimelineRow, TimelineStore,
    WriteMode, Written, schema,
};

/// A time in the range that the server takes as write timestamp (not three days ahead).
pub(crate) const T0: i64 = 1_750_000_000_000_000;

/// How long rows of these tests live.
pub(crate) const RETENTION_US: i64 = 30 * 24 * Micros::HOUR;

/// Makes a keyspace with the schema and returns the configuration that uses it.
pub(crate) async fn keyspace(name: &str) -> CqlConfig {
    let config = CqlConfig {
        nodes: vec![node().await],
        keyspace: testkit::unique(name),
        ..CqlConfig::default()
    };
    let _migrated = answered(|| schema::migrate(&config.nodes, &config.keyspace, 1)).await;
    config
}

/// The node of the test sandbox.
pub(crate) async fn node() -> String {
    testkit::Servers::get().await.cql_node()
}

/// Connects with a mode.
pub(crate) async fn connect(config: &CqlConfig, write_mode: WriteMode) -> CqlTimelines {
    let config = CqlConfig {
        write_mode,
        ..config.clone()
    };
    answered(|| CqlTimelines::connect(&config)).await
}

/// Writes rows at Postgres's time of these tests.
pub(crate) async fn write(store: &impl TimelineStore, rows: &[TimelineRow]) -> Written {
    answered(async || store.write(rows, &now()).await).await
}

/// Writes rows with a time of Postgres that was read before.
pub(crate) async fn write_at(
    store: &impl TimelineStore,
    rows: &[TimelineRow],
    now: &PgNow,
) -> Written {
    answered(async || store.write(rows, now).await).await
}

/// Deletes rows.
pub(crate) async fn erase(store: &impl TimelineStore, deletes: &[TimelineDelete]) {
    answered(async || store.delete(deletes).await).await;
}

/// Postgres's time of these tests.
pub(crate) fn now() -> PgNow {
    PgNow::new(Micros(T0), Instant::now())
}

/// A row of `owner`, written at `T0` plus an offset.
pub(crate) fn row(owner: i64, post: i64, write_offset: i64) -> TimelineRow {
    TimelineRow {
        owner: UserId(owner),
        post: PostId(post),
        author: UserId(post * 10),
        write_us: Micros(T0 + write_offset),
        expires_us: Micros(T0 + RETENTION_US),
    }
}

/// A delete at `T0` plus an offset.
pub(crate) fn delete(owner: i64, post: i64, write_offset: i64) -> TimelineDelete {
    TimelineDelete {
        owner: UserId(owner),
        post: PostId(post),
        write_us: Micros(T0 + write_offset),
    }
}

/// Everything in the store, ordered by owner and newest post.
pub(crate) async fn all(store: &impl TimelineStore) -> Vec<ScannedRow> {
    let mut rows = Vec::new();
    let total = store
        .scan(100, |page| rows.extend(page))
        .await
        .expect("scan");
    assert_eq!(total, rows.len() as u64);
    rows.sort_by_key(|row| (row.owner, std::cmp::Reverse(row.post)));
    rows
}

/// The posts of a page.
pub(crate) async fn page(
    store: &impl TimelineStore,
    owner: i64,
    before: Option<i64>,
    since: Option<i64>,
    limit: usize,
) -> Vec<i64> {
    let (before, since) = (before.map(PostId), since.map(PostId));
    let rows = answered(async || store.page(UserId(owner), before, since, limit).await).await;
    for row in &rows {
        assert_eq!(row.author, UserId(row.post.0 * 10));
    }
    rows.iter().map(|row| row.post.0).collect()
}
