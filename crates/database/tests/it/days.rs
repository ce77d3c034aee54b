//! Making outbox days while others use the outbox.

use database::outbox::{self, Days};
use events::Micros;

use crate::{
    fresh::Fresh,
    rows::{self, day},
    writer::Writers,
};

const DAY: i64 = 24 * Micros::HOUR;

#[tokio::test]
async fn days_reach_from_retention_behind_to_two_weeks_ahead() {
    let fresh = Fresh::migrated().await;
    let client = fresh.client().await;
    let made = outbox::ensure_days(&client, 7).await.unwrap();
    let expected = Days {
        created: 6,
        present: 16,
        ..Days::default()
    };
    assert_eq!(made, expected);
    let days = outbox::days(&client).await.unwrap();
    assert_eq!(days.len(), 22);
    for (index, pair) in days.windows(2).enumerate() {
        assert_eq!(pair[0].until_us, pair[1].since_us, "{index}");
    }
    let first = &days[0];
    assert_eq!(first.date, rows::date(&fresh, -7).await);
    assert_eq!(
        first.leaf,
        format!("outbox_{}", first.date.replace('-', ""))
    );
    assert_eq!(first.until_us.0 - first.since_us.0, DAY);
    assert_eq!(first.since_us.0 % DAY, 0);
    fresh.end().await;
}

#[tokio::test]
async fn writers_hold_up_no_day_and_are_not_held_up() {
    let fresh = Fresh::migrated().await;
    let client = fresh.client().await;
    let mut holders = Vec::new();
    for offset in [-1, 0] {
        let holder = fresh.client().await;
        holder
            .batch_execute(&format!(
                "begin; insert into tideline.outbox (aggregatetype, aggregateid, partition_key, type, payload, created_at)
                 values ('post', '1', '1', 'tideline.post.created.v1', '{{}}', {})",
                day(offset)
            ))
            .await
            .unwrap();
        holders.push(holder);
    }
    let writers = Writers::start(&fresh).await;
    let made = outbox::ensure_days(&client, 10).await.unwrap();
    assert_eq!(writers.finish().await, 0, "writers waited");
    assert_eq!((made.created, made.busy), (9, 0));
    for holder in holders {
        holder.batch_execute("commit").await.unwrap();
    }
    fresh.end().await;
}

#[tokio::test]
async fn a_reader_holds_days_up_but_no_writer() {
    let fresh = Fresh::migrated().await;
    let client = fresh.client().await;
    let reader = fresh.client().await;
    reader
        .batch_execute("begin; select count(*) from tideline.outbox")
        .await
        .unwrap();
    let writers = Writers::start(&fresh).await;
    let made = outbox::ensure_days(&client, 4).await.unwrap();
    assert_eq!(writers.finish().await, 0, "writers waited");
    assert_eq!((made.created, made.present, made.busy), (0, 16, 3));
    reader.batch_execute("commit").await.unwrap();
    let made = outbox::ensure_days(&client, 4).await.unwrap();
    assert_eq!((made.created, made.busy), (3, 0));
    fresh.end().await;
}

#[tokio::test]
async fn two_makers_at_once_make_each_day_once() {
    let fresh = Fresh::migrated().await;
    let (one, other) = (fresh.client().await, fresh.client().await);
    let mut created = 0;
    loop {
        let both = tokio::join!(outbox::ensure_days(&one, 9), outbox::ensure_days(&other, 9));
        let (one, other) = (both.0.unwrap(), both.1.unwrap());
        created += one.created + other.created;
        // Where a commit takes long, whoever waits for the lock may be told to come again.
        if one.busy + other.busy == 0 {
            break;
        }
    }
    assert_eq!(created, 8);
    fresh.end().await;
}
