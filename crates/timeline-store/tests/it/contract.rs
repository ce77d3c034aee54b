//! What every store of timelines must do. Each check takes owners of its own, so that all of
//! them run on one store.

use std::time::{Duration, Instant};

use events::{Micros, UserId};
use testkit::answered;
use timeline_store::{
    MAX_TTL_SECONDS, MemoryTimelines, PgNow, ScannedRow, TimelineStore, WriteMode, Written,
};

use crate::store::{
    RETENTION_US, T0, all, connect, delete, erase, keyspace, page, row, write, write_at,
};

#[tokio::test]
async fn the_twin_keeps_the_contract() {
    check_all(&MemoryTimelines::new()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_real_one_keeps_the_contract_with_single_writes() {
    check_all(&connect(&keyspace("contract_single").await, WriteMode::Single).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_real_one_keeps_the_contract_with_grouped_writes() {
    check_all(&connect(&keyspace("contract_grouped").await, WriteMode::Grouped).await).await;
}

async fn check_all(store: &impl TimelineStore) {
    answered(|| store.probe()).await;
    nothing_is_nothing(store).await;
    d_7_a_replay_in_any_order_leaves_the_same_row(store).await;
    d_7_a_replay_a_minute_later_expires_at_the_same_time(store).await;
    d_8_a_delete_beats_inserts_before_and_after_it(store).await;
    a_follow_after_an_unfollow_brings_the_row_back(store).await;
    rows_whose_time_is_over_are_not_written(store).await;
    a_ttl_is_held_at_what_every_server_takes(store).await;
    pages_go_newest_first_between_their_bounds(store).await;
    d_8_a_head_full_of_deletes_still_gives_the_first_page(store).await;
    two_thousand_rows_arrive(store).await;
    a_row_expires(store).await;
}

async fn of_owner(store: &impl TimelineStore, owner: i64) -> Vec<ScannedRow> {
    let mut rows = all(store).await;
    rows.retain(|row| row.owner == UserId(owner));
    rows
}

async fn nothing_is_nothing(store: &impl TimelineStore) {
    assert_eq!(write(store, &[]).await, Written::default());
    erase(store, &[]).await;
    assert!(page(store, 100, None, None, 10).await.is_empty());
    assert!(of_owner(store, 100).await.is_empty());
}

async fn d_7_a_replay_in_any_order_leaves_the_same_row(store: &impl TimelineStore) {
    // The same edge and two events of it: the row of the later one wins in both orders.
    let (old, new) = (row(200, 1, 5), row(200, 1, 9));
    let began = Instant::now();
    for rows in [[old, new], [new, old], [new, new], [old, old]] {
        write(store, &rows[..1]).await;
        write(store, &rows[1..]).await;
    }
    let rows = of_owner(store, 200).await;
    let [found] = rows.as_slice() else {
        panic!("one row expected, found {rows:?}")
    };
    assert_eq!(
        (found.post, found.author, found.write_us),
        (new.post, new.author, new.write_us)
    );
    assert_expiry_near(found, RETENTION_US / 1_000_000, began);
}

async fn d_7_a_replay_a_minute_later_expires_at_the_same_time(store: &impl TimelineStore) {
    // The replay knows a Postgres time that is a minute further; the server's clock is not, so
    // its TTL must be a minute shorter and the row that ends later stays.
    let began = Instant::now();
    write(store, &[row(210, 1, 0)]).await;
    let replayed = Instant::now();
    let later = PgNow::new(Micros(T0 + 60_000_000), replayed);
    write_at(store, &[row(210, 1, 0), row(210, 2, 0)], &later).await;
    let rows = of_owner(store, 210).await;
    let [second, first] = rows.as_slice() else {
        panic!("two rows expected, found {rows:?}")
    };
    assert_expiry_near(first, RETENTION_US / 1_000_000, began);
    assert_expiry_near(second, RETENTION_US / 1_000_000 - 60, replayed);

    // The same minute spent between reading the time and sending the row.
    let began = Instant::now();
    let Some(read_at) = began.checked_sub(Duration::from_secs(60)) else {
        return;
    };
    let waited = PgNow::new(Micros(T0), read_at);
    write_at(store, &[row(210, 3, 0)], &waited).await;
    let rows = of_owner(store, 210).await;
    assert_expiry_near(
        rows.first().expect("the newest row"),
        RETENTION_US / 1_000_000 - 60,
        began,
    );
}

/// Checks a row that had so many seconds left at `began`, before it was written.
fn assert_expiry_near(row: &ScannedRow, seconds: i64, began: Instant) {
    let left = i64::from(row.ttl_seconds.expect("every row has an end"));
    // Writing and reading take their time too, on a busy server several seconds.
    let passed = began.elapsed().as_secs() + 1;
    let least = seconds - 5 - i64::try_from(passed).expect("a test ends");
    assert!(
        (least..=seconds).contains(&left),
        "{left} s left {passed} s after {seconds} s"
    );
}

async fn d_8_a_delete_beats_inserts_before_and_after_it(store: &impl TimelineStore) {
    let insert = row(300, 1, 0);
    write(store, &[insert]).await;
    erase(store, &[delete(300, 1, 1)]).await;
    assert!(page(store, 300, None, None, 10).await.is_empty());
    write(store, &[insert]).await;
    assert!(page(store, 300, None, None, 10).await.is_empty());

    // The delete comes first, and at the very timestamp of the insert.
    erase(store, &[delete(301, 1, 0), delete(301, 2, 7)]).await;
    write(store, &[row(301, 1, 0), row(301, 2, 6)]).await;
    assert!(page(store, 301, None, None, 10).await.is_empty());
    assert!(of_owner(store, 301).await.is_empty());

    // A delete older than the row does nothing.
    write(store, &[row(302, 1, 5)]).await;
    erase(store, &[delete(302, 1, 4)]).await;
    assert_eq!(page(store, 302, None, None, 10).await, [1]);
}

async fn a_follow_after_an_unfollow_brings_the_row_back(store: &impl TimelineStore) {
    write(store, &[row(310, 1, 0)]).await;
    erase(store, &[delete(310, 1, 100)]).await;
    write(store, &[row(310, 1, 200)]).await;
    assert_eq!(page(store, 310, None, None, 10).await, [1]);
}

async fn rows_whose_time_is_over_are_not_written(store: &impl TimelineStore) {
    let mut rows = [row(400, 1, 0), row(400, 2, 0), row(400, 3, 0)];
    rows[0].expires_us = Micros(T0 - 1);
    rows[1].expires_us = Micros(T0);
    let written = write(store, &rows).await;
    assert_eq!(
        written,
        Written {
            rows: 1,
            expired: 2
        }
    );
    assert_eq!(page(store, 400, None, None, 10).await, [3]);
    let written = write(store, &rows[..2]).await;
    assert_eq!(
        written,
        Written {
            rows: 0,
            expired: 2
        }
    );
}

async fn a_ttl_is_held_at_what_every_server_takes(store: &impl TimelineStore) {
    let mut far = row(410, 1, 0);
    far.expires_us = Micros(i64::MAX);
    let began = Instant::now();
    write(store, &[far]).await;
    let rows = of_owner(store, 410).await;
    let found = rows.first().expect("the row");
    assert_expiry_near(found, i64::from(MAX_TTL_SECONDS), began);
}

async fn pages_go_newest_first_between_their_bounds(store: &impl TimelineStore) {
    let rows: Vec<_> = [3, 9, 1, 7, 5].map(|post| row(500, post, 0)).into();
    write(store, &rows).await;
    write(store, &[row(501, 6, 0)]).await;
    assert_eq!(page(store, 500, None, None, 10).await, [9, 7, 5, 3, 1]);
    assert_eq!(page(store, 500, None, None, 2).await, [9, 7]);
    assert_eq!(page(store, 500, Some(7), None, 2).await, [5, 3]);
    assert_eq!(page(store, 500, Some(6), None, 2).await, [5, 3]);
    assert_eq!(page(store, 500, None, Some(3), 10).await, [9, 7, 5]);
    assert_eq!(page(store, 500, Some(9), Some(3), 1).await, [7]);
    assert_eq!(page(store, 500, Some(3), Some(3), 10).await, [0_i64; 0]);
    assert_eq!(page(store, 500, Some(1), None, 10).await, [0_i64; 0]);
    assert_eq!(page(store, 500, None, None, 0).await, [0_i64; 0]);
}

async fn d_8_a_head_full_of_deletes_still_gives_the_first_page(store: &impl TimelineStore) {
    write(store, &[row(510, 1, 0), row(510, 2, 0)]).await;
    let deletes: Vec<_> = (0..20_000).map(|i| delete(510, 10 + i, 1)).collect();
    erase(store, &deletes).await;
    assert_eq!(page(store, 510, None, None, 10).await, [2, 1]);
}

async fn two_thousand_rows_arrive(store: &impl TimelineStore) {
    // More owners than one lane holds, and one owner with more rows than one answer holds.
    let mut rows: Vec<_> = (0..2_000).map(|i| row(10_000 + i, 7, 0)).collect();
    let written = write(store, &rows).await;
    assert_eq!(
        written,
        Written {
            rows: 2_000,
            expired: 0
        }
    );
    let found = all(store)
        .await
        .into_iter()
        .filter(|r| r.owner.0 >= 10_000)
        .count();
    assert_eq!(found, 2_000);

    rows = (1..=2_000).map(|i| row(600, i, 0)).collect();
    write(store, &rows).await;
    let expected: Vec<i64> = (1..=2_000).rev().collect();
    assert_eq!(page(store, 600, None, None, 5_000).await, expected);
}

async fn a_row_expires(store: &impl TimelineStore) {
    write(store, &[row(700, 2, 0)]).await;
    let deadline = Instant::now() + Duration::from_secs(60);
    // On a busy server its time may be over before it is seen: then it is written by a later event.
    for write_offset in 0.. {
        let mut short = row(700, 1, write_offset);
        short.expires_us = Micros(T0 + 2_500_000);
        write(store, &[short]).await;
        if page(store, 700, None, None, 10).await == [2, 1] {
            break;
        }
        assert!(Instant::now() < deadline, "the row is never seen");
    }
    let deadline = Instant::now() + Duration::from_secs(20);
    while page(store, 700, None, None, 10).await != [2] {
        assert!(Instant::now() < deadline, "the row does not expire");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(page(store, 700, Some(2), None, 10).await.is_empty());
}
