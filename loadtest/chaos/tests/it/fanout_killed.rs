//! A fan-out worker is killed in the middle of a post's followers.

use chaos::Flow;
use events::{Stage, UserId};
use testkit::{Service, Signal, eventually};

const FOLLOWERS: i64 = 2_000;
/// One page is written, then the worker stops at the second.
const STOP_AT_THE_SECOND_PAGE: &str = "fanout::page-written=1*off->pause";
const SMALL_PAGES: (&str, &str) = ("TIDELINE_FANOUT__PAGE_ROWS", "500");

/// D-6: the offset had not moved, so the rest is written, and D-7: what was there stays as it was.
#[tokio::test(flavor = "multi_thread")]
async fn the_rest_of_the_audience_gets_the_post() {
    let _turn = crate::ONE_AT_A_TIME.lock().await;
    let flow = Flow::new(2, FOLLOWERS).await.unwrap();
    let _api = flow.start(Service::WriteApi, &[]).await;
    let _relay = flow.start(Service::Relay, &[]).await;
    let mut fanout = flow
        .start(
            Service::Fanout,
            &[("FAILPOINTS", STOP_AT_THE_SECOND_PAGE), SMALL_PAGES],
        )
        .await;

    let posted = flow.client().post(UserId(1), "key").await.unwrap();
    let written = eventually("a part of the rows is written", async || {
        let rows = flow.rows_of(posted.id).await.ok()?;
        (rows > 0).then_some(rows)
    })
    .await;
    fanout.signal(Signal::Kill).unwrap();
    drop(fanout);
    let at_kill = flow.rows_of(posted.id).await.unwrap();
    assert!(
        written <= at_kill && at_kill < FOLLOWERS,
        "{at_kill} of {FOLLOWERS} rows: not in the middle"
    );
    assert_eq!(flow.missing(Stage::Delivered).await.unwrap(), 1);

    let _fanout = flow.start(Service::Fanout, &[SMALL_PAGES]).await;
    let verdict = flow.verdict().await.unwrap();
    assert!(verdict.is_clean(), "{verdict}");
}

/// D-8: the post is deleted while its fan-out stands still; the replay brings nothing back.
#[tokio::test(flavor = "multi_thread")]
async fn a_post_deleted_in_the_middle_is_absent_everywhere() {
    let _turn = crate::ONE_AT_A_TIME.lock().await;
    let flow = Flow::new(2, FOLLOWERS).await.unwrap();
    let _api = flow.start(Service::WriteApi, &[]).await;
    let _relay = flow.start(Service::Relay, &[]).await;
    let mut fanout = flow
        .start(
            Service::Fanout,
            &[("FAILPOINTS", STOP_AT_THE_SECOND_PAGE), SMALL_PAGES],
        )
        .await;

    let deleted = flow.client().post(UserId(1), "deleted").await.unwrap();
    eventually("a part of the rows is written", async || {
        (flow.rows_of(deleted.id).await.ok()? > 0).then_some(())
    })
    .await;
    flow.client().delete(deleted).await.unwrap();
    let _kept = flow.client().post(UserId(2), "kept").await.unwrap();
    fanout.signal(Signal::Kill).unwrap();
    drop(fanout);

    let _fanout = flow.start(Service::Fanout, &[SMALL_PAGES]).await;
    let verdict = flow.verdict().await.unwrap();
    assert!(verdict.is_clean(), "{verdict}");
    assert_eq!(flow.rows_of(deleted.id).await.unwrap(), 0);
}
