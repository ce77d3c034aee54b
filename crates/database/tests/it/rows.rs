//! Outbox rows with chosen ids and times.

use events::{EventId, EventType, IdRange, IdRanges};

use crate::fresh::Fresh;

/// Inserts a row per id. `created` is an SQL expression that may use `id`.
pub(crate) async fn insert(
    fresh: &Fresh,
    first: i64,
    last: i64,
    event_type: EventType,
    created: &str,
) {
    let entry = event_type.entry();
    fresh
        .run(&format!(
            "insert into tideline.outbox (id, aggregatetype, aggregateid, partition_key, type, payload, created_at)
                 overriding system value
             select id, '{}', id::text, '7', '{}', '{{}}', {created} from generate_series({first}::bigint, {last}) as id",
            entry.aggregate, entry.name
        ))
        .await;
}

/// Inserts rows of new posts, made now.
pub(crate) async fn posts(fresh: &Fresh, first: i64, last: i64) {
    insert(
        fresh,
        first,
        last,
        EventType::PostCreatedV1,
        "clock_timestamp()",
    )
    .await;
}

/// The first moment of the day that is this many days from today.
pub(crate) fn day(offset: i32) -> String {
    format!(
        "(((clock_timestamp() at time zone 'UTC')::date + {offset})::timestamp at time zone 'UTC')"
    )
}

/// The date that is this many days from today.
pub(crate) async fn date(fresh: &Fresh, offset: i32) -> String {
    let sql = format!("select ((clock_timestamp() at time zone 'UTC')::date + {offset})::text");
    let client = fresh.client().await;
    client.query_one(&sql, &[]).await.unwrap().get(0)
}

pub(crate) fn ids(ids: impl IntoIterator<Item = i64>) -> Vec<EventId> {
    ids.into_iter().map(EventId).collect()
}

pub(crate) fn ranges(pairs: &[(i64, i64)]) -> IdRanges {
    IdRanges::from_ranges(pairs.iter().map(|&(low, high)| IdRange { low, high }))
}
