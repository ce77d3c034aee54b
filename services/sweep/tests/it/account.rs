//! Stage `delivered` and the whole account, with a relay and fan-out that run.

use std::time::Duration;

use events::{Stage, topic::TopicKind};
use testkit::{Service, eventually, eventually_within};

use crate::rig::{PATIENT, Rig, command};

/// D-9: rows that the relay never saw, and deliveries that the ledger never got, are found; at
/// rest nothing is unaccounted for and nothing is in flight.
#[tokio::test(flavor = "multi_thread")]
async fn d_9_what_was_lost_is_delivered_and_the_account_is_even() {
    let rig = Rig::whole().await;
    let fanout = rig.process(Service::Fanout, &[]).await;
    let mut relay = rig.process(Service::Relay, &[]).await;
    let seen = rig.posts(10).await;
    rig.complete(Stage::Delivered).await;

    // Rows that are lost to the slot while no relay is there.
    relay.stop(Duration::from_secs(20)).unwrap();
    let lost = rig.posts(15).await;
    let follows = rig.follows(4).await;
    let client = rig.pool.get().await.unwrap();
    eventually("the slot is free", async || {
        database::slots::advance(&client, &rig.slot).await.ok()
    })
    .await;
    // A delivery that the ledger lost.
    let forgotten = [events::EventId(seen[3])];
    let mut client = rig.pool.get().await.unwrap();
    let removed =
        database::delivery_ledger::forget(&mut client, Stage::Delivered, &forgotten).await;
    assert_eq!(removed.unwrap(), 1);
    let relay = rig.process(Service::Relay, &[]).await;

    let sweep = rig.start(&[PATIENT]).await;
    eventually_within(
        Duration::from_secs(120),
        "everything is delivered",
        async || (rig.missing(Stage::Delivered).await == 0).then_some(()),
    )
    .await;
    for stage in ["published", "delivered"] {
        for series in ["tideline_ledger_unaccounted", "tideline_ledger_in_flight"] {
            let series = format!("{series}{{stage=\"{stage}\"}}");
            sweep.reaches(&series, |value| value == 0.0).await;
        }
    }
    let accepted = (seen.len() + lost.len() + follows.len()) as f64;
    sweep
        .reaches("tideline_ledger_delivered{stage=\"delivered\"}", |value| {
            value == accepted
        })
        .await;
    let sent = |stage: &str| format!("tideline_sweep_redelivered_total{{stage=\"{stage}\"}}");
    assert_eq!(sweep.metric(&sent("published")).await, 19.0);
    assert_eq!(sweep.metric(&sent("delivered")).await, 1.0);
    let copies = rig.copies(TopicKind::Posts).await;
    for (id, copies) in copies {
        let expected = if id == seen[3] { 2 } else { 1 };
        assert_eq!(copies, expected, "D-10: event {id}");
    }
    sweep.stop().await;
    drop((relay, fanout));
}

/// D-10: while the group has not passed a look nothing is sent; a person is told.
#[tokio::test(flavor = "multi_thread")]
async fn d_10_a_group_that_does_not_move_blocks() {
    let rig = Rig::whole().await;
    let relay = rig.process(Service::Relay, &[]).await;
    let posts = rig.posts(5).await;
    rig.complete(Stage::Published).await;
    let sweep = rig.start(&[PATIENT]).await;
    sweep.stands("delivered", "blocked").await;
    let once = command(Stage::Delivered, Duration::from_secs(15));
    let soon = ("TIDELINE_SWEEP__BLOCKED_AFTER", "500ms");
    let summary = rig.once(&once, &[soon]).await;
    assert!(!summary.stages[0].done);
    assert_eq!(summary.stages[0].standing, "blocked");
    assert!(summary.text(false).contains("not dealt with, blocked"));
    let copies = rig.copies(TopicKind::Posts).await;
    assert_eq!(copies.values().sum::<usize>(), posts.len());

    let fanout = rig.process(Service::Fanout, &[]).await;
    rig.complete(Stage::Delivered).await;
    sweep.stands("delivered", "idle").await;
    let copies = rig.copies(TopicKind::Posts).await;
    assert_eq!(copies.values().sum::<usize>(), posts.len());
    sweep.stop().await;
    drop((relay, fanout));
}
