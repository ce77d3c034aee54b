//! D-7 and D-8 over random histories: whatever is written, deleted and repeated in whatever
//! order, the real store and the twin hold the same rows.

use events::{Micros, UserId};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use testkit::answered;
use timeline_store::{CqlTimelines, MemoryTimelines, TimelineStore, WriteMode};

use crate::store::{T0, all, connect, delete, erase, keyspace, row, write};

#[derive(Debug, Clone)]
enum Op {
    /// Several rows in one call: owner, post, timestamp, seconds left.
    Write(Vec<(i64, i64, i64, i64)>),
    /// Several deletes in one call: owner, post, timestamp.
    Delete(Vec<(i64, i64, i64)>),
}

fn op() -> impl Strategy<Value = Op> {
    // Few owners, posts and timestamps, so that rows, deletes and repeats meet. Seconds left are
    // far apart, so that the time a test takes decides nothing.
    let left = prop_oneof![
        Just(-1_i64),
        Just(100_000),
        Just(200_000),
        Just(i64::MAX / 4_000_000)
    ];
    let write = (0..2_i64, 0..4_i64, 0..4_i64, left);
    prop_oneof![
        3 => prop::collection::vec(write, 1..6).prop_map(Op::Write),
        1 => prop::collection::vec((0..2_i64, 0..4_i64, 0..4_i64), 1..4).prop_map(Op::Delete),
    ]
}

async fn apply(store: &impl TimelineStore, base: i64, op: &Op) {
    match op {
        Op::Write(rows) => {
            // One call may hold a row twice, and its requests are in flight together. That is
            // fine for a store of last writes, and this test is there to show it.
            let rows: Vec<_> = rows
                .iter()
                .map(|(owner, post, at, left)| {
                    let mut row = row(base + owner, *post, *at);
                    // Who wins shows; rows of one timestamp are copies of one event (D-7).
                    row.author = UserId(post * 10 + at);
                    row.expires_us = Micros(T0.saturating_add(left.saturating_mul(1_000_000)));
                    row
                })
                .collect();
            write(store, &rows).await;
        }
        Op::Delete(deletes) => {
            let deletes: Vec<_> = deletes
                .iter()
                .map(|(o, post, at)| delete(base + o, *post, *at))
                .collect();
            erase(store, &deletes).await;
        }
    }
}

/// What is compared: everything but the exact second of the expiry.
async fn rows_of(store: &impl TimelineStore, base: i64) -> Vec<(i64, i64, i64, i64, i64)> {
    let mut rows = Vec::new();
    for owner in base..base + 2 {
        let page = answered(async || store.page(UserId(owner), None, None, 100).await).await;
        let scanned = all(store).await;
        let scanned: Vec<_> = scanned
            .iter()
            .filter(|r| r.owner == UserId(owner))
            .collect();
        assert_eq!(page.len(), scanned.len(), "page and scan disagree");
        for (paged, row) in page.iter().zip(scanned) {
            assert_eq!((paged.post, paged.author), (row.post, row.author));
            // Seconds left are multiples of 100 000, so rounding up to one hides only the few
            // that passed. The scale holds D-7's five seconds with a wide margin.
            let left = i64::from(row.ttl_seconds.expect("every row has an end"));
            let left = (left + 60) / 100_000;
            rows.push((
                owner - base,
                row.post.0,
                row.write_us.0 - T0,
                row.author.0,
                left,
            ));
        }
    }
    rows
}

async fn both(real: &CqlTimelines, base: i64, ops: &[Op]) -> Result<(), TestCaseError> {
    let twin = MemoryTimelines::new();
    for op in ops {
        apply(real, base, op).await;
        apply(&twin, base, op).await;
    }
    prop_assert_eq!(rows_of(real, base).await, rows_of(&twin, base).await);
    // Replayed as a whole, nothing changes on either side but what expiry allows.
    let before = rows_of(real, base).await;
    for op in ops {
        apply(real, base, op).await;
    }
    prop_assert_eq!(rows_of(real, base).await, before);
    Ok(())
}

fn run(name: &str, mode: WriteMode) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime for the test");
    let real = runtime.block_on(async { connect(&keyspace(name).await, mode).await });
    let base = std::cell::Cell::new(0);
    let mut runner = TestRunner::new(ProptestConfig {
        failure_persistence: None,
        ..config()
    });
    let outcome = runner.run(&prop::collection::vec(op(), 1..14), |ops| {
        // Owners of its own for each case, so that cases do not meet.
        base.set(base.get() + 10);
        runtime.block_on(both(&real, base.get(), &ops))
    });
    outcome.unwrap_or_else(|error| panic!("{error}"));
}

fn config() -> ProptestConfig {
    ProptestConfig::with_cases(32)
}

#[test]
fn d_7_d_8_any_history_leaves_the_rows_of_the_twin_with_single_writes() {
    run("model_single", WriteMode::Single);
}

#[test]
fn d_7_d_8_any_history_leaves_the_rows_of_the_twin_with_grouped_writes() {
    run("model_grouped", WriteMode::Grouped);
}
