//! What is still missing of a batch of ids, and what decides about each row of it.
//!
//! Owns the statements of a claim that read. Each is simple enough for one plan that is always
//! good: the ledger first, then the rows in what remains, then what is noted about them. As one
//! statement with joins it cost thirty times as much per row.
//!
//! Promise: the ledger is read in a snapshot that is taken after the lock of the block was had, and
//! everything else later than that. Rows of the outbox never change, and what the sweep notes
//! changes only under that lock.

use std::collections::{HashMap, HashSet};

use deadpool_postgres::Transaction;
use events::{EventId, IdRange, IdRanges, Micros, Stage};
use tokio_postgres::Row;

use super::ClaimRow;
use crate::{
    Error, delivery_ledger, stages,
    statement::{self, Params, column},
};

/// Where one id in so many is missing or more, all rows between the first and the last are walked;
/// where fewer are, each id is looked up in each outbox day.
const DENSE: u64 = 16;

/// Those of the ids that exist and that the stage still lacks, in id order.
pub(super) async fn rows(
    transaction: &Transaction<'_>,
    stage: Stage,
    ids: &[EventId],
) -> Result<Vec<ClaimRow>, Error> {
    let asked = IdRanges::from_ids(ids.iter().copied());
    let Some(span) = span(&asked) else {
        return Ok(Vec::new());
    };
    let passed = delivery_ledger::passed(transaction, stage, span).await?;
    let missing = asked.subtract(&passed);
    let Some(span) = self::span(&missing) else {
        return Ok(Vec::new());
    };
    let exact = missing.to_string();
    // One behind the other on one connection, without a pause between them.
    let (rows, sent, finished) = tokio::try_join!(
        outbox_rows(transaction, &missing, span, &exact),
        redeliveries(transaction, stage, span, &exact),
        finished(transaction, stage, span, &exact),
    )?;
    let mut rows = rows.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    rows.sort_unstable_by_key(|row| row.event);
    let posts = posts(transaction, &rows).await?;
    for row in &mut rows {
        row.post_exists = is_of_post(row).then(|| match post_of(row) {
            Some(post) => posts.contains(&post),
            None => false,
        });
        if let Some((attempts, last_us)) = sent.get(&row.event) {
            row.attempts = *attempts;
            row.last_us = Some(*last_us);
        }
        if let Some(finished) = finished.get(&row.event) {
            row.dead_letter_open = finished.dead_letter_open;
            row.discarded.clone_from(&finished.discarded);
        }
    }
    Ok(rows)
}

/// From the lowest id to the one behind the highest.
fn span(ids: &IdRanges) -> Option<IdRange> {
    let (lowest, highest) = ids.lowest().zip(ids.highest())?;
    Some(IdRange {
        low: lowest.0,
        high: highest.0.saturating_add(1),
    })
}

async fn outbox_rows(
    transaction: &Transaction<'_>,
    missing: &IdRanges,
    span: IdRange,
    exact: &str,
) -> Result<Vec<Row>, Error> {
    const WALK: &str = "select id, aggregatetype, aggregateid, type, created_at::text,
            tideline.micros(created_at), partition_key, payload::text, traceparent
        from tideline.outbox
        where id >= $1 and id < $2 and (select $3::text::int8multirange) @> id";
    const LOOK_UP: &str = "select id, aggregatetype, aggregateid, type, created_at::text,
            tideline.micros(created_at), partition_key, payload::text, traceparent
        from tideline.outbox where id = any($1)";
    let doing = "read claimed rows";
    if span.ids() <= missing.ids().saturating_mul(DENSE) {
        let params: Params<'_> = &[&span.low, &span.high, &exact];
        return statement::all(transaction, doing, WALK, params).await;
    }
    let ids: Vec<i64> = missing
        .iter()
        .flat_map(|range| range.low..range.high)
        .collect();
    statement::all(transaction, doing, LOOK_UP, &[&ids]).await
}

/// How often, and when last, each id was sent again in the stage.
async fn redeliveries(
    transaction: &Transaction<'_>,
    stage: Stage,
    span: IdRange,
    exact: &str,
) -> Result<HashMap<EventId, (u32, Micros)>, Error> {
    const SQL: &str = "select event_id, attempts, tideline.micros(last_at) from tideline.redelivery
        where stage = $1 and event_id >= $2 and event_id < $3
            and (select $4::text::int8multirange) @> event_id";
    let params: Params<'_> = &[&stage.as_str(), &span.low, &span.high, &exact];
    let rows = statement::all(transaction, "read re-deliveries", SQL, params).await?;
    let read = |row: &Row| {
        let attempts = column::<i32>(row, 1)?.unsigned_abs();
        Ok((
            EventId(column(row, 0)?),
            (attempts, Micros(column(row, 2)?)),
        ))
    };
    rows.iter().map(read).collect()
}

/// What finishes an id without an entry.
#[derive(Debug, Default)]
struct Finished {
    dead_letter_open: bool,
    discarded: Option<String>,
}

/// Open dead letters and discards, of the stage or one before it.
async fn finished(
    transaction: &Transaction<'_>,
    stage: Stage,
    span: IdRange,
    exact: &str,
) -> Result<HashMap<EventId, Finished>, Error> {
    // The reason of the earliest stage is read last, and stays: `published` is greater than
    // `delivered`.
    const SQL: &str = "select event_id, null as reason, stage from tideline.dead_letters
        where stage = any($1) and state = 'open' and event_id >= $2 and event_id < $3
            and (select $4::text::int8multirange) @> event_id
        union all
        select event_id, reason, stage from tideline.discarded
        where stage = any($1) and event_id >= $2 and event_id < $3
            and (select $4::text::int8multirange) @> event_id
        order by stage";
    let params: Params<'_> = &[&stages::finishing(stage), &span.low, &span.high, &exact];
    let rows = statement::all(transaction, "read what is finished", SQL, params).await?;
    let mut finished: HashMap<EventId, Finished> = HashMap::new();
    for row in &rows {
        let entry = finished.entry(EventId(column(row, 0)?)).or_default();
        match column::<Option<String>>(row, 1)? {
            None => entry.dead_letter_open = true,
            reason => entry.discarded = reason,
        }
    }
    Ok(finished)
}

/// Which of the posts that these rows are about are there, also deleted ones.
async fn posts(transaction: &Transaction<'_>, rows: &[ClaimRow]) -> Result<HashSet<i64>, Error> {
    const SQL: &str = "select array_agg(id) from tideline.posts where id = any($1)";
    let posts: Vec<i64> = rows.iter().filter_map(post_of).collect();
    if posts.is_empty() {
        return Ok(HashSet::new());
    }
    let row = statement::one(transaction, "look for posts", SQL, &[&posts]).await?;
    let found: Option<Vec<i64>> = column(&row, 0)?;
    Ok(found.unwrap_or_default().into_iter().collect())
}

fn is_of_post(row: &ClaimRow) -> bool {
    row.aggregate == "post"
}

/// The post that a row is about, if its subject can be one.
fn post_of(row: &ClaimRow) -> Option<i64> {
    let is_number =
        row.subject.len() <= 18 && row.subject.bytes().all(|byte| byte.is_ascii_digit());
    (is_of_post(row) && is_number)
        .then(|| row.subject.parse().ok())
        .flatten()
}

/// A row of the outbox; what is noted about it comes later.
fn read(row: &Row) -> Result<ClaimRow, Error> {
    Ok(ClaimRow {
        event: EventId(column(row, 0)?),
        aggregate: column(row, 1)?,
        subject: column(row, 2)?,
        type_name: column(row, 3)?,
        created_at_text: column(row, 4)?,
        created_us: Micros(column(row, 5)?),
        partition_key: column(row, 6)?,
        payload: column(row, 7)?,
        traceparent: column(row, 8)?,
        post_exists: None,
        attempts: 0,
        last_us: None,
        dead_letter_open: false,
        discarded: None,
    })
}
