//! Records that can never be delivered: dead letter, row, and only then the offset.

use std::collections::BTreeMap;

use bytes::Bytes;
use events::{Event, Micros};
use kafka::{Consumed, Consumer, ConsumerEvent, Record, dead_letters, record::Header};
use testkit::unique;

use crate::stage::Stage;

#[tokio::test]
async fn undecodable_records_are_stored_and_the_lane_goes_on() {
    let stage = Stage::new().await;
    let (author, _) = stage.author(1).await;
    let member = stage.start();
    let (id, post) = stage.post(author).await;
    let good = stage.record(id, &Event::PostCreated(post.clone()));

    let cases: [(&str, Record); 6] = [
        (
            "header_missing",
            Record {
                headers: Vec::new(),
                ..good.clone()
            },
        ),
        ("event_id_malformed", with_header(&good, "ce_id", "x")),
        (
            "type_unknown",
            with_header(&good, "ce_type", "tideline.post.liked.v1"),
        ),
        (
            "payload_malformed",
            Record {
                payload: Some(Bytes::from_static(b"{\0")),
                ..good.clone()
            },
        ),
        (
            "payload_null",
            Record {
                payload: None,
                ..good.clone()
            },
        ),
        (
            "key_mismatch",
            Record {
                key: None,
                ..good.clone()
            },
        ),
    ];
    let mut expected = BTreeMap::new();
    for (reason, record) in cases {
        let position = stage.send(record).await;
        stage.committed(position).await;
        let _new = expected.insert(reason.to_owned(), position);
    }
    // The good one behind them is delivered.
    let position = stage.send(good.clone()).await;
    stage.committed(position).await;
    assert_eq!(stage.rows(post.post_id).await.len(), 1);

    let letters = letters(&stage, expected.len()).await;
    for letter in &letters {
        let header = |name| {
            letter
                .header(name)
                .unwrap_or_else(|| panic!("{name} in {letter:?}"))
        };
        let position = expected[header(dead_letters::REASON)];
        assert_eq!(header(dead_letters::ORIGINAL_TOPIC), stage.topic());
        assert_eq!(
            header(dead_letters::ORIGINAL_PARTITION),
            position.partition.to_string()
        );
        assert_eq!(
            header(dead_letters::ORIGINAL_OFFSET),
            position.offset.to_string()
        );
        assert_eq!(header(dead_letters::STEP), "decode");
    }
    let sql = "select reason, record_partition, record_offset from tideline.dead_letters where state = 'open'";
    let rows = stage
        .deployment
        .sql()
        .await
        .query(sql, &[])
        .await
        .expect("rows");
    // Those that tell their event share one row, that of the last.
    assert!((3..=6).contains(&rows.len()), "{} rows", rows.len());
    for row in rows {
        let position = expected[row.get::<_, &str>(0)];
        assert_eq!(
            (row.get::<_, i32>(1), row.get::<_, i64>(2)),
            (position.partition, position.offset)
        );
    }
    member.stop().await;
}

/// The rest of the partition does not wait for a record that panics each time.
#[cfg(feature = "crash-points")]
#[tokio::test]
async fn a_record_that_panics_is_a_dead_letter_after_some_tries() {
    let stage = Stage::new().await;
    let (author, _) = stage.author(1).await;
    let member = stage.start();
    let (id, poisoned) = stage.post(author).await;
    // Other tests of this process have posts of their own.
    let named = format!("return({})", poisoned.post_id.0);
    fail::cfg("fanout::poisoned-post", &named).expect("a fault point");
    let _at = stage
        .produce(id, &Event::PostCreated(poisoned.clone()))
        .await;
    let (id, post) = stage.post(author).await;
    let position = stage.produce(id, &Event::PostCreated(post.clone())).await;
    stage.committed(position).await;
    assert!(stage.rows(poisoned.post_id).await.is_empty());
    assert_eq!(stage.rows(post.post_id).await.len(), 1);
    let letters = letters(&stage, 1).await;
    assert_eq!(letters[0].header(dead_letters::REASON), Some("panicked"));
    assert_eq!(letters[0].header(dead_letters::STEP), Some("deliver"));
    fail::remove("fanout::poisoned-post");
    member.stop().await;
}

/// D-8: a post past the tombstone horizon is not written, and accounted for.
#[tokio::test]
async fn d_8_post_past_the_horizon_is_a_dead_letter() {
    let stage = Stage::new().await;
    let (author, _) = stage.author(1).await;
    let member = stage.start();
    let (id, mut post) = stage.post(author).await;
    // Made eleven days ago; the edge is older still.
    let back_us = 11 * 86_400 * 1_000_000_i64;
    let sql = stage.deployment.sql().await;
    let update =
        "update tideline.posts set created_at = created_at - interval '11 days' where id = $1";
    let _count = sql
        .execute(update, &[&post.post_id.0])
        .await
        .expect("an older post");
    let _count = sql
        .execute(
            "update tideline.follows set edge_us = 1 where followee_id = $1",
            &[&author.0],
        )
        .await
        .expect("an older edge");
    post.post_us = Micros(post.post_us.0 - back_us);
    let position = stage.produce(id, &Event::PostCreated(post.clone())).await;
    stage.committed(position).await;
    assert!(stage.rows(post.post_id).await.is_empty());
    let letters = letters(&stage, 1).await;
    assert_eq!(
        letters[0].header(dead_letters::REASON),
        Some("past_horizon")
    );
    let row = sql
        .query_one("select event_id, post_id from tideline.dead_letters", &[])
        .await
        .expect("one row");
    assert_eq!(
        (row.get::<_, i64>(0), row.get::<_, i64>(1)),
        (id.0, post.post_id.0)
    );
    member.stop().await;
}

fn with_header(record: &Record, name: &'static str, value: &str) -> Record {
    let mut record = record.clone();
    record.headers.retain(|header| header.name != name);
    record.headers.push(Header::text(name, value));
    record
}

/// The dead letters, read by a group of its own.
async fn letters(stage: &Stage, count: usize) -> Vec<Consumed> {
    let topic = stage.deployment.namespace().fanout_posts_dead_letters();
    let (_handle, mut events) =
        Consumer::start(&stage.deployment.kafka_config(), &unique("g"), &topic, None)
            .expect("a member");
    let mut letters = Vec::new();
    while letters.len() < count {
        let event = tokio::time::timeout(std::time::Duration::from_secs(30), events.recv(true))
            .await
            .expect("in time");
        if let Some(ConsumerEvent::Record { record, .. }) = event {
            letters.push(record);
        }
    }
    letters
}
