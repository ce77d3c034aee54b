//! What is never sent: discarded, dead-lettered, gone.

use std::time::Duration;

use events::{Stage, topic::TopicKind};

use crate::rig::{Rig, command};

/// Past the horizon: discarded with the reason, counted, and finished (D-9).
#[tokio::test(flavor = "multi_thread")]
async fn d_9_an_event_past_the_horizon_is_discarded() {
    let rig = Rig::new().await;
    rig.drop_slot().await;
    let posts = rig.posts(2).await;
    let moved =
        "update tideline.outbox set created_at = created_at - interval '3 days' where id = $1";
    rig.sql.execute(moved, &[&posts[0]]).await.unwrap();
    let sweep = rig.start(&[("TIDELINE_SWEEP__HORIZON", "2d")]).await;
    let discarded = "tideline_sweep_discarded_total{reason=\"too_old\",stage=\"published\"}";
    sweep.reaches(discarded, |value| value == 1.0).await;
    sweep
        .reaches("tideline_ledger_discarded{stage=\"published\"}", |value| {
            value == 1.0
        })
        .await;
    sweep
        .reaches(
            "tideline_ledger_unaccounted{stage=\"published\"}",
            |value| value == 0.0,
        )
        .await;
    let reason: String = rig
        .one("select string_agg(reason || event_id, ',') from tideline.discarded")
        .await;
    assert_eq!(reason, format!("too_old{}", posts[0]));
    let copies = rig.copies(TopicKind::Posts).await;
    assert_eq!(copies.into_keys().collect::<Vec<_>>(), posts[1..]);
    sweep.stop().await;
}

/// A ghost: the outbox row is there, the post was removed by an operator.
#[tokio::test(flavor = "multi_thread")]
async fn an_event_of_a_removed_post_is_discarded() {
    let rig = Rig::new().await;
    rig.drop_slot().await;
    let posts = rig.posts(3).await;
    let sql = "delete from tideline.posts p using tideline.outbox o
        where o.id = $1 and p.id = o.aggregateid::bigint";
    assert_eq!(rig.sql.execute(sql, &[&posts[1]]).await.unwrap(), 1);
    let once = command(Stage::Published, Duration::from_secs(30));
    let summary = rig.once(&once, &[]).await;
    let stage = &summary.stages[0];
    assert!(stage.done);
    assert_eq!((stage.redelivered, stage.discarded), (2, 1));
    let reason: String = rig
        .one("select string_agg(reason || event_id, ',') from tideline.discarded")
        .await;
    assert_eq!(reason, format!("no_post{}", posts[1]));
    let account = stage.account.unwrap();
    assert_eq!((account.discarded, account.unaccounted), (1, 0));
}

/// An open dead letter is a person's to decide; redriven, its event is missing again.
#[tokio::test(flavor = "multi_thread")]
async fn an_open_dead_letter_is_never_sent_again() {
    let rig = Rig::new().await;
    rig.drop_slot().await;
    let posts = rig.posts(2).await;
    let sql = "insert into tideline.dead_letters
            (stage, event_id, record_topic, record_partition, record_offset, reason)
        values ('published', $1, 't', 0, 0, 'refused')";
    rig.sql.execute(sql, &[&posts[0]]).await.unwrap();
    let sweep = rig.start(&[]).await;
    let letters = "tideline_ledger_dead_lettered{stage=\"published\"}";
    sweep.reaches(letters, |value| value == 1.0).await;
    sweep
        .reaches("tideline_sweep_missing{stage=\"published\"}", |value| {
            value == 0.0
        })
        .await;
    sweep.rounds(3.0).await;
    let copies = rig.copies(TopicKind::Posts).await;
    assert_eq!(copies.into_keys().collect::<Vec<_>>(), posts[1..]);

    rig.sql
        .execute("update tideline.dead_letters set state = 'redriven'", &[])
        .await
        .unwrap();
    rig.complete(Stage::Published).await;
    assert_eq!(rig.copies(TopicKind::Posts).await.len(), 2);
    sweep.stop().await;
}

/// What can never be produced becomes the dead letter that the relay would have made.
#[tokio::test(flavor = "multi_thread")]
async fn a_row_that_cannot_be_produced_becomes_a_dead_letter() {
    let rig = Rig::new().await;
    rig.drop_slot().await;
    let sql =
        "insert into tideline.outbox (aggregatetype, aggregateid, partition_key, type, payload)
        values ('follow', '1:2', '2', 'tideline.follow.blocked.v9', '{}') returning id";
    let id: i64 = rig.one(sql).await;
    let once = command(Stage::Published, Duration::from_secs(30));
    let summary = rig.once(&once, &[]).await;
    assert!(summary.stages[0].done);
    let row: String = rig
        .one("select string_agg(stage || ' ' || event_id || ' ' || reason || ' ' || state, ',') from tideline.dead_letters")
        .await;
    assert_eq!(row, format!("published {id} unknown_type open"));
    let letters = rig.kafka.namespace.relay_dead_letters(TopicKind::Follows);
    let letters = rig.read(&letters).await;
    assert_eq!(letters.len(), 1);
    assert_eq!(letters[0].id(), id);
    assert_eq!(letters[0].headers["dlq-step"], "sweep");
    let again = rig.once(&once, &[]).await;
    assert_eq!(again.stages[0].missing, 0);
}
