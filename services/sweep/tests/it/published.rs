//! Stage `published`: what a relay has passed or will never deliver is sent once.

use std::{collections::BTreeSet, time::Duration};

use events::{Stage, topic::TopicKind};
use sweep::Command;
use testkit::{Service, Signal, eventually, eventually_within};

use crate::rig::{PATIENT, Rig, command};

/// D-9, D-10: without a slot nobody else will publish; each row is sent once, as the relay would
/// have sent it, and the account of the stage is even afterwards.
#[tokio::test(flavor = "multi_thread")]
async fn d_9_rows_without_a_slot_are_published_once() {
    let rig = Rig::new().await;
    rig.drop_slot().await;
    let posts: BTreeSet<i64> = rig.posts(30).await.into_iter().collect();
    let follows = rig.follows(5).await;
    let sweep = rig.start(&[]).await;
    rig.complete(Stage::Published).await;
    sweep
        .reaches(
            "tideline_ledger_unaccounted{stage=\"published\"}",
            |value| value == 0.0,
        )
        .await;
    sweep.rounds(2.0).await;

    let records = rig.records(TopicKind::Posts).await;
    assert_eq!(records.len(), posts.len(), "each row once");
    for record in &records {
        assert!(posts.contains(&record.id()));
        assert_eq!(record.headers["tideline-path"], "sweep");
        assert_eq!(record.headers["tideline-attempt"], "1");
        assert_eq!(record.headers["ce_type"], "tideline.post.created.v1");
        assert!(record.headers["ce_source"].ends_with("/outbox/1"));
        assert!(
            !record.headers.contains_key("ce_sequence"),
            "the relay's only"
        );
        assert!(record.key.is_some());
    }
    assert_eq!(rig.copies(TopicKind::Follows).await.len(), follows.len());
    let sent = "tideline_sweep_redelivered_total{stage=\"published\"}";
    assert_eq!(sweep.metric(sent).await, 35.0);
    let delivered = "tideline_ledger_delivered{stage=\"published\"}";
    assert_eq!(sweep.metric(delivered).await, 35.0);
    let attempts: i64 = rig
        .one("select count(*) from tideline.redelivery where stage = 'published' and attempts = 1")
        .await;
    assert_eq!(attempts, 35);
    sweep.stop().await;
}

/// D-10: a relay that is behind has not passed the look; its backlog is its own.
#[tokio::test(flavor = "multi_thread")]
async fn d_10_the_backlog_of_a_relay_is_not_sent_twice() {
    let rig = Rig::new().await;
    let mut relay = rig.process(Service::Relay, &[]).await;
    let options = [PATIENT, ("TIDELINE_SWEEP__BLOCKED_AFTER", "2s")];
    let sweep = rig.start(&options).await;
    // It stands still; its slot is active for as long as the server waits for its answer.
    relay.signal(Signal::Stop).unwrap();
    let posts = rig.posts(40).await;
    sweep
        .reaches("tideline_sweep_missing{stage=\"published\"}", |value| {
            value > 0.0
        })
        .await;
    sweep.stands("published", "blocked").await;
    relay.signal(Signal::Cont).unwrap();
    rig.complete(Stage::Published).await;
    sweep.stands("published", "idle").await;
    let copies = rig.copies(TopicKind::Posts).await;
    assert_eq!(copies.len(), posts.len());
    assert!(copies.values().all(|&copies| copies == 1), "{copies:?}");
    let sent = "tideline_sweep_redelivered_total{stage=\"published\"}";
    assert_eq!(sweep.metric(sent).await, 0.0);
    sweep.stop().await;
    drop(relay);
}

/// An inactive slot is a relay that restarts, until the patience is over; then it is none.
#[tokio::test(flavor = "multi_thread")]
async fn an_inactive_slot_is_waited_for_as_long_as_the_patience() {
    let rig = Rig::new().await;
    let _posts = rig.posts(3).await;
    let patient = rig.start(&[]).await;
    patient.stands("published", "waiting").await;
    patient.rounds(0.0).await;
    assert_eq!(rig.missing(Stage::Published).await, 3);
    // The round waits with its look; the gauges tell of what came after it.
    let _later = rig.posts(2).await;
    let unaccounted = "tideline_ledger_unaccounted{stage=\"published\"}";
    patient.reaches(unaccounted, |value| value == 5.0).await;
    patient.stands("published", "waiting").await;
    patient.stop().await;

    let hasty = rig.start(&[("TIDELINE_SWEEP__RELAY_PATIENCE", "1s")]).await;
    rig.complete(Stage::Published).await;
    hasty.stop().await;
    let copies = rig.copies(TopicKind::Posts).await;
    assert_eq!(copies.values().sum::<usize>(), 5);
}

/// D-9: what the log has passed is in flight no longer, and still unaccounted for.
#[tokio::test(flavor = "multi_thread")]
async fn d_9_what_the_log_has_passed_is_not_in_flight() {
    let rig = Rig::new().await;
    let _lost = rig.posts(3).await;
    // The grace keeps the sweep from sending them while this looks.
    let sweep = rig.start(&[("TIDELINE_SWEEP__GRACE", "60s")]).await;
    let unaccounted = "tideline_ledger_unaccounted{stage=\"published\"}";
    let in_flight = "tideline_ledger_in_flight{stage=\"published\"}";
    sweep.reaches(unaccounted, |value| value == 3.0).await;
    sweep.reaches(in_flight, |value| value == 3.0).await;
    // The look with the mark is over; these two are told of by the gauges only.
    let _late = rig.posts(2).await;
    sweep.reaches(in_flight, |value| value == 5.0).await;
    let client = rig.pool.get().await.unwrap();
    let _position = database::slots::advance(&client, &rig.slot).await.unwrap();
    sweep.reaches(in_flight, |value| value == 2.0).await;
    assert_eq!(sweep.metric(unaccounted).await, 5.0);
    sweep.stop().await;
}

/// D-12: while the broker does not take records nothing is noted, and everything is sent later.
#[tokio::test(flavor = "multi_thread")]
async fn d_12_nothing_is_noted_while_the_broker_refuses() {
    let rig = Rig::new().await;
    let kafka = rig.kafka.clone();
    rig.drop_slot().await;
    let sweep = rig.start(&[]).await;
    let topic = kafka.namespace.topic(TopicKind::Posts);
    kafka::surgery::delete_topic(&kafka, &topic).await.unwrap();
    let _posts = rig.posts(20).await;
    let failures = "tideline_sweep_failures_total{stage=\"published\",step=\"claim\"}";
    eventually_within(Duration::from_secs(60), "a claim fails", async || {
        (sweep.metric(failures).await >= 1.0).then_some(())
    })
    .await;
    assert_eq!(rig.missing(Stage::Published).await, 20);
    assert_eq!(
        rig.one::<i64>("select count(*) from tideline.redelivery")
            .await,
        0
    );
    assert_eq!(
        rig.one::<i64>("select count(*) from tideline.dead_letters")
            .await,
        0
    );
    let (ready, text) = sweep.get("/readyz").await.unwrap();
    assert_eq!(ready, 503, "{text}");

    let _report = kafka::topics::create(&kafka).await.unwrap();
    eventually_within(Duration::from_secs(60), "all are published", async || {
        (rig.missing(Stage::Published).await == 0).then_some(())
    })
    .await;
    let copies = rig.copies(TopicKind::Posts).await;
    assert_eq!(copies.len(), 20);
    sweep.stop().await;
}

/// A request is honoured at once, and closed after a look that began later.
#[tokio::test(flavor = "multi_thread")]
async fn a_request_is_honoured_at_once() {
    let rig = Rig::new().await;
    rig.drop_slot().await;
    let sweep = rig.start(&[("TIDELINE_SWEEP__INTERVAL", "1h")]).await;
    let looks = "tideline_sweep_look_seconds_count{stage=\"published\"}";
    sweep.reaches(looks, |value| value >= 1.0).await;
    let _posts = rig.posts(4).await;
    assert_eq!(rig.missing(Stage::Published).await, 4);
    let client = rig.pool.get().await.unwrap();
    database::sweep_requests::add(&client, "test", None)
        .await
        .unwrap();
    rig.complete(Stage::Published).await;
    eventually("the request is closed", async || {
        let sql = "select count(*) from tideline.sweep_request where honoured_at > requested_at";
        (rig.one::<i64>(sql).await == 1).then_some(())
    })
    .await;
    sweep.stop().await;
}

/// A dry run tells and sends nothing; a range limits what a run sends.
#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_sends_nothing_and_a_range_is_kept() {
    let rig = Rig::new().await;
    rig.drop_slot().await;
    let posts = rig.posts(10).await;
    let mut dry = command(Stage::Published, Duration::from_secs(20));
    dry.dry_run = true;
    let summary = rig.once(&dry, &[]).await;
    let stage = &summary.stages[0];
    assert_eq!((stage.missing, stage.redelivered), (10, 10));
    assert_eq!(stage.plan.len(), 10);
    assert_eq!(stage.plan[0].action, "send");
    assert!(summary.text(false).contains("10 would be sent again"));
    assert!(rig.copies(TopicKind::Posts).await.is_empty());

    let (low, high) = (posts[2], posts[5]);
    let range = format!("{low}..{high}");
    let mut some = Command::new(Some("published"), Some(&range), None, None).unwrap();
    some.patience = Duration::from_secs(20);
    let summary = rig.once(&some, &[]).await;
    assert!(summary.stages[0].done);
    assert_eq!(summary.stages[0].redelivered, 4);
    let sent: Vec<i64> = rig.copies(TopicKind::Posts).await.into_keys().collect();
    assert_eq!(sent, posts[2..=5]);

    // Made in the last hour, all but those that were sent; before that, none.
    let mut old = Command::new(Some("published"), None, None, Some("1h")).unwrap();
    old.patience = Duration::from_secs(20);
    assert_eq!(rig.once(&old, &[]).await.stages[0].missing, 0);
    let mut new = Command::new(Some("published"), None, Some("1h"), None).unwrap();
    new.patience = Duration::from_secs(20);
    let summary = rig.once(&new, &[]).await;
    assert_eq!(summary.stages[0].redelivered, 6);
    let account = summary.stages[0].account.unwrap();
    assert_eq!((account.accepted, account.unaccounted), (10, 0));
}
