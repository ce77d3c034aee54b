//! The outbox: one row per event, insert-only, in partitions of one day.
//!
//! Rows are appended by the modules that make the changes, in their transactions (D-1); only they
//! can. Days are made and dropped here too, without keeping a writer waiting.

mod days;
mod drop_day;
mod trim;

use deadpool_postgres::{GenericClient, Transaction};
use events::{Event, EventId, IdRange, IdRanges, Micros, PostId, Stage};

pub use self::{
    days::{AHEAD, Day, Days, days, ensure_days},
    drop_day::{DropOutcome, drop_day},
    trim::trim,
};

use crate::{
    Client, Error, delivery_ledger,
    statement::{self, column},
};

/// How many ids may lie between two ranges that are read as one.
const CLOSE: i64 = 64;

/// A row that was found by its id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Its id.
    pub event: EventId,
    /// `ce_type`.
    pub type_name: String,
    /// When the change was made.
    pub created_us: Micros,
}

/// A whole row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FullRow {
    /// Its id.
    pub event: EventId,
    /// Column `aggregatetype`.
    pub aggregate_type: String,
    /// Column `aggregateid`: `ce_subject`.
    pub aggregate: String,
    /// The record key.
    pub partition_key: String,
    /// `ce_type`.
    pub type_name: String,
    /// The payload as it was written.
    pub payload: String,
    /// W3C trace context of the request.
    pub traceparent: Option<String>,
    /// When the change was made.
    pub created_us: Micros,
    /// The same as Postgres prints it, in UTC.
    pub created_at_text: String,
}

/// From the lowest id in the outbox to the one behind the highest. None when it is empty.
///
/// # Errors
/// See [`Error::class`].
pub async fn span(client: &Client) -> Result<Option<IdRange>, Error> {
    const SQL: &str = "select min(id), max(id) from tideline.outbox";
    let row = statement::one(client, "read the span of the outbox", SQL, &[]).await?;
    let (low, highest): (Option<i64>, Option<i64>) = (column(&row, 0)?, column(&row, 1)?);
    Ok(low.zip(highest).map(|(low, highest)| IdRange {
        low,
        high: highest.saturating_add(1),
    }))
}

/// The first `limit` rows whose ids lie in `ids`, in id order; with `made`, only those whose
/// `created_at` is at or after the first moment and before the second. What it costs follows the
/// ranges and what is found in them, not the outbox.
///
/// # Errors
/// See [`Error::class`].
pub async fn existing(
    client: &Client,
    ids: &IdRanges,
    made: Option<(Micros, Micros)>,
    limit: i64,
) -> Result<Vec<Found>, Error> {
    find(client, "outbox", ids, made, limit).await
}

/// The row with this id.
///
/// # Errors
/// See [`Error::class`].
pub async fn event(client: &Client, id: EventId) -> Result<Option<FullRow>, Error> {
    const SQL: &str =
        "select id, aggregatetype, aggregateid, partition_key, type, payload::text, traceparent,
            tideline.micros(created_at), created_at::text
        from tideline.outbox where id = $1 limit 1";
    let row = statement::optional(client, "read an outbox row", SQL, &[&id.0]).await?;
    row.map(|row| {
        Ok(FullRow {
            event: EventId(column(&row, 0)?),
            aggregate_type: column(&row, 1)?,
            aggregate: column(&row, 2)?,
            partition_key: column(&row, 3)?,
            type_name: column(&row, 4)?,
            payload: column(&row, 5)?,
            traceparent: column(&row, 6)?,
            created_us: Micros(column(&row, 7)?),
            created_at_text: column(&row, 8)?,
        })
    })
    .transpose()
}

/// How many rows are in the default partition, where none should be.
///
/// # Errors
/// See [`Error::class`].
pub async fn default_rows(client: &Client) -> Result<i64, Error> {
    const SQL: &str = "select count(*) from tideline.outbox_default";
    let row = statement::one(client, "count rows of no day", SQL, &[]).await?;
    column(&row, 0)
}

/// How many outbox rows are not in the ledger as published: what the relay still has to do.
///
/// # Errors
/// See [`Error::class`].
pub async fn unpublished(client: &Client) -> Result<i64, Error> {
    delivery_ledger::missing_count(client, Stage::Published).await
}

/// The outbox id of the event that made a post.
///
/// # Errors
/// See [`Error::class`].
pub async fn event_of_post(client: &Client, post: PostId) -> Result<Option<EventId>, Error> {
    // The row has the post's own created_at, which names the day and finds the row in it. No
    // order and no limit: either makes the planner walk the day by id instead.
    const SQL: &str = "select o.id from tideline.outbox o
        where o.created_at = (select created_at from tideline.posts where id = $1)
          and o.aggregateid = $1::text and o.aggregatetype = 'post' and o.type = $2";
    let event_type = events::EventType::PostCreatedV1.as_str();
    let params: statement::Params<'_> = &[&post.0, &event_type];
    let row = statement::optional(client, "find the event of a post", SQL, params).await?;
    row.map(|row| column(&row, 0).map(EventId)).transpose()
}

/// [`existing`] in the whole outbox or in one of its leaves, through a connection or inside a
/// transaction. `table` is put into the statement as it is: a name that this crate made.
pub(crate) async fn find<C: GenericClient>(
    client: &C,
    table: &str,
    ids: &IdRanges,
    made: Option<(Micros, Micros)>,
    limit: i64,
) -> Result<Vec<Found>, Error> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    // A nested loop over the ranges in their order, each by primary key: the outer limit ends it
    // early, and an outer ORDER BY would read all rows of all ranges first. A sub-select, so that
    // the text is read once and not for each row.
    let sql = format!(
        "select o.id, o.type, tideline.micros(o.created_at)
        from unnest($1::bigint[], $2::bigint[]) as asked (low, high)
        cross join lateral (
            select id, type, created_at from tideline.{table}
            where id >= asked.low and id < asked.high and (select $6::text::int8multirange) @> id
              and created_at >= coalesce(tideline.at_micros($4), '-infinity')
              and created_at < coalesce(tideline.at_micros($5), 'infinity')
            order by id limit $3
        ) as o limit $3"
    );
    let (lows, highs) = strides(ids);
    let exact = ids.to_string();
    let (since, until) = made.map(|(since, until)| (since.0, until.0)).unzip();
    let params: statement::Params<'_> = &[&lows, &highs, &limit, &since, &until, &exact];
    let rows = statement::all(client, "read outbox rows", &sql, params).await?;
    let mut found = rows
        .iter()
        .map(|row| {
            Ok(Found {
                event: EventId(column(row, 0)?),
                type_name: column(row, 1)?,
                created_us: Micros(column(row, 2)?),
            })
        })
        .collect::<Result<Vec<_>, Error>>()?;
    found.sort_unstable_by_key(|found| found.event);
    Ok(found)
}

/// The ranges to read for these ids: those that lie close together as one, since a look into every
/// partition costs as much as reading [`CLOSE`] rows that were not asked for.
fn strides(ids: &IdRanges) -> (Vec<i64>, Vec<i64>) {
    let (mut lows, mut highs): (Vec<i64>, Vec<i64>) = (Vec::new(), Vec::new());
    for range in ids.iter() {
        match highs.last_mut() {
            Some(high) if range.low.saturating_sub(*high) <= CLOSE => *high = range.high,
            _ => {
                lows.push(range.low);
                highs.push(range.high);
            }
        }
    }
    (lows, highs)
}

/// Appends an event in the transaction that made the change. `created_us` is the moment of the
/// change itself.
pub(crate) async fn append(
    transaction: &Transaction<'_>,
    event: &Event,
    traceparent: Option<&str>,
    created_us: Micros,
) -> Result<EventId, Error> {
    const SQL: &str = "insert into tideline.outbox
            (aggregatetype, aggregateid, partition_key, type, payload, traceparent, created_at)
        values ($1, $2, $3, $4, $5::text::json, $6, tideline.at_micros($7)) returning id";
    let entry = event.event_type().entry();
    let row = statement::one(
        transaction,
        "append to the outbox",
        SQL,
        &[
            &entry.aggregate,
            &event.subject(),
            &event.partition_key().to_string(),
            &entry.name,
            &event.encode(),
            &traceparent,
            &created_us.0,
        ],
    )
    .await?;
    column(&row, 0).map(EventId)
}

#[cfg(test)]
mod tests {
    use events::{IdRange, IdRanges};

    use super::{CLOSE, strides};

    #[test]
    fn close_ranges_are_read_as_one() {
        let range = |low, high| IdRange { low, high };
        let far = 10 + CLOSE;
        let ids = [range(0, 1), range(5, 10), range(far, far + 1)];
        let together = strides(&IdRanges::from_ranges(ids));
        assert_eq!(together, (vec![0], vec![far + 1]));
        let apart = strides(&IdRanges::from_ranges([
            range(0, 10),
            range(far + 1, i64::MAX),
        ]));
        assert_eq!(apart, (vec![0, far + 1], vec![10, i64::MAX]));
        assert_eq!(strides(&IdRanges::new()), (vec![], vec![]));
    }
}
