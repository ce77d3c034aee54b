//! Reading the outbox by ids.

use database::{outbox, slots};
use events::{EventId, EventType, IdRange, IdRanges, Micros};
use testkit::answered;

use crate::{
    fresh::Fresh,
    rows::{self, day, ranges},
};

#[tokio::test]
async fn rows_are_found_by_ranges_over_days_in_id_order() {
    let fresh = Fresh::migrated().await;
    let client = fresh.client().await;
    assert_eq!(outbox::span(&client).await.unwrap(), None);
    assert_eq!(outbox::default_rows(&client).await.unwrap(), 0);
    // Ids of yesterday and today alternate; one row is of no day.
    let alternating = format!(
        "case when id % 2 = 0 then {} else clock_timestamp() end",
        day(-1)
    );
    rows::insert(&fresh, 11, 40, EventType::PostCreatedV1, &alternating).await;
    let never = "timestamptz '2001-01-01'";
    rows::insert(&fresh, 60, 60, EventType::FollowCreatedV1, never).await;
    assert_eq!(outbox::default_rows(&client).await.unwrap(), 1);
    let span = outbox::span(&client).await.unwrap();
    assert_eq!(span, Some(IdRange { low: 11, high: 61 }));

    let asked = ranges(&[(1, 14), (20, 22), (39, 70)]);
    let find = async |made, limit| {
        let found = outbox::existing(&client, &asked, made, limit)
            .await
            .unwrap();
        found.iter().map(|row| row.event.0).collect::<Vec<_>>()
    };
    let all = [11, 12, 13, 20, 21, 39, 40, 60];
    assert_eq!(find(None, 100).await, all);
    assert_eq!(find(None, 5).await, all[..5]);
    let now = database::clock::now(&client).await.unwrap();
    let hour = (now.plus(-Micros::HOUR), now);
    assert_eq!(find(Some(hour), 100).await, [11, 13, 21, 39]);
    assert_eq!(find(Some((Micros(0), now)), 3).await, all[..3]);
    let no_ids = IdRanges::new();
    let nothing = outbox::existing(&client, &no_ids, None, 10).await;
    assert_eq!(nothing.unwrap(), []);

    let row = outbox::event(&client, EventId(60)).await.unwrap().unwrap();
    assert_eq!(row.created_at_text, "2001-01-01 00:00:00+00");
    assert_eq!(row.created_us, Micros(978_307_200_000_000));
    assert_eq!(
        (row.type_name.as_str(), row.aggregate.as_str()),
        ("tideline.follow.created.v1", "60")
    );
    assert_eq!(outbox::event(&client, EventId(61)).await.unwrap(), None);
    fresh.end().await;
}

#[tokio::test]
async fn a_mark_lies_behind_what_was_committed_and_slots_move_and_go() {
    let fresh = Fresh::migrated().await;
    let client = fresh.client().await;
    // It waits for every transaction of the server that is open.
    answered(|| slots::create(&client, &fresh.slot)).await;
    let first = slots::mark(&client).await.unwrap();
    rows::posts(&fresh, 1, 1).await;
    let second = slots::mark(&client).await.unwrap();
    assert!(second > first);
    // A mark is not flushed at once; the next commit does it.
    rows::posts(&fresh, 2, 2).await;
    let stands = slots::advance(&client, &fresh.slot).await.unwrap();
    assert!(stands >= second);
    let slot = slots::get(&client, &fresh.slot).await.unwrap().unwrap();
    assert_eq!(slot.confirmed_flush_lsn, Some(stands));
    slots::drop_slot(&client, &fresh.slot).await.unwrap();
    assert_eq!(slots::get(&client, &fresh.slot).await.unwrap(), None);
    let error = slots::drop_slot(&client, &fresh.slot).await.unwrap_err();
    assert_eq!(error.class(), events::Class::Config, "{error:?}");
    fresh.end().await;
}

/// A row with such a time would be in no day and in no look.
#[tokio::test]
async fn a_time_that_is_infinite_is_refused() {
    const SQL: &str = "insert into tideline.outbox
            (aggregatetype, aggregateid, partition_key, type, payload, created_at)
        values ('post', '1', '7', 'post.created.v1', '{}', $1::text::timestamptz)";
    let fresh = Fresh::migrated().await;
    let client = fresh.client().await;
    for time in ["infinity", "-infinity"] {
        let error = client.execute(SQL, &[&time]).await.unwrap_err();
        let refused = error.as_db_error().and_then(|error| error.constraint());
        assert_eq!(refused, Some("outbox_created_at_is_finite"));
    }
    client.execute(SQL, &[&"10000-01-01"]).await.unwrap();
    fresh.end().await;
}
