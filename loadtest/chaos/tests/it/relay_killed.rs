//! The relay is killed after the broker has the record and before the slot is told.

use chaos::Flow;
use events::{Stage, UserId};
use testkit::{Service, Signal, eventually};

/// D-3: what was not confirmed comes again, and changes no row (D-7).
#[tokio::test(flavor = "multi_thread")]
async fn what_was_not_confirmed_comes_again_and_changes_nothing() {
    let _turn = crate::ONE_AT_A_TIME.lock().await;
    let flow = Flow::new(1, 20).await.unwrap();
    let _api = flow.start(Service::WriteApi, &[]).await;
    let mut relay = flow
        .start(Service::Relay, &[("FAILPOINTS", "relay::acked=pause")])
        .await;

    let posted = flow.client().post(UserId(1), "key").await.unwrap();
    eventually("the record is in Kafka", async || {
        (flow.records().await.ok()? == 1).then_some(())
    })
    .await;
    let at_kill = flow.confirmed_lsn().await.unwrap();
    relay.signal(Signal::Kill).unwrap();
    drop(relay);
    // Before there is a fan-out: what that delivers counts as published.
    assert_eq!(
        flow.missing(Stage::Published).await.unwrap(),
        1,
        "the relay had entered the record in the ledger"
    );
    let _fanout = flow.start(Service::Fanout, &[]).await;
    eventually("its rows are written", async || {
        (flow.rows_of(posted.id).await.ok()? == 20).then_some(())
    })
    .await;

    let _relay = flow.start(Service::Relay, &[]).await;
    eventually("the record comes again", async || {
        (flow.records().await.ok()? == 2).then_some(())
    })
    .await;
    eventually("the slot moves", async || {
        (flow.confirmed_lsn().await.ok()? > at_kill).then_some(())
    })
    .await;
    let verdict = flow.verdict().await.unwrap();
    assert!(verdict.is_clean(), "{verdict}");
}

/// SIGTERM under no load leaves nothing to repeat.
#[tokio::test(flavor = "multi_thread")]
async fn an_idle_restart_repeats_nothing() {
    let _turn = crate::ONE_AT_A_TIME.lock().await;
    let flow = Flow::new(1, 5).await.unwrap();
    let [_api, mut relay, _fanout] = flow.start_all().await;
    let _first = flow.client().post(UserId(1), "first").await.unwrap();
    let verdict = flow.verdict().await.unwrap();
    assert!(verdict.is_clean(), "{verdict}");

    let status =
        tokio::task::spawn_blocking(move || relay.stop(std::time::Duration::from_secs(10)));
    assert_eq!(status.await.unwrap().unwrap().code(), Some(0));
    let _relay = flow.start(Service::Relay, &[]).await;
    let _second = flow.client().post(UserId(1), "second").await.unwrap();
    let verdict = flow.verdict().await.unwrap();
    assert!(verdict.is_clean(), "{verdict}");
    assert_eq!(flow.records().await.unwrap(), 2);
}
