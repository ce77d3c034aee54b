//! Ids that the ledger has and the outbox has not.
//!
//! An id enters the ledger after its row was committed, so one statement sees the row whenever it
//! sees the entry. Ids of days that were dropped are left out.

use database::Client;
use events::{BLOCK, EventId, Micros, Stage};

use crate::{
    error::Error,
    sql::{self, column},
};

use super::{
    difference::{Kind, Place},
    walk::Walk,
};

/// Runs of ids that are read at once.
const RUNS: i64 = 1_000;
/// Ids of these runs that are forgotten at most; a run beyond the newest row may be of any length.
const FORGOTTEN: usize = 1_000_000;

/// Goes through the ids of the range, block by block, and, when the range has the newest row, through
/// all above it.
pub(super) async fn walk(walk: &mut Walk, (low, high): (EventId, EventId)) -> Result<(), Error> {
    let bounds = bounds(walk, low, high).await?;
    let Some((mut from, newest)) = bounds else {
        return Ok(());
    };
    while from <= high.0 {
        let to = (from / BLOCK + 1).saturating_mul(BLOCK).min(high.0 + 1);
        stretch(walk, from, Some(to)).await?;
        from = to;
    }
    if newest <= high.0 {
        stretch(walk, high.0 + 1, None).await?;
    }
    Ok(())
}

/// The first id to look at, and the newest one there is. Around the begin of the oldest day ids of
/// the dropped one lie among those that are kept; an hour later they do not.
async fn bounds(walk: &Walk, low: EventId, high: EventId) -> Result<Option<(i64, i64)>, Error> {
    const SQL: &str = "select (select min(id) from tideline.outbox
             where created_at >= tideline.at_micros($1) and created_at < tideline.at_micros($2)),
            (select max(id) from tideline.outbox)";
    let since_us = walk.range.since_us.plus(Micros::HOUR);
    let params: &[&(dyn tokio_postgres::types::ToSql + Sync)] =
        &[&since_us.0, &walk.range.until_us.0];
    let row = sql::first(&walk.client, "read the ids of the range", SQL, params).await?;
    let Some(row) = row else { return Ok(None) };
    let first: Option<i64> = if walk.range.clipped {
        column(&row, 0)?
    } else {
        Some(low.0)
    };
    let newest: Option<i64> = column(&row, 1)?;
    Ok(first.map(|first| (first, newest.unwrap_or(high.0))))
}

/// The ids from `from` (included) to `to` (excluded), in every stage.
async fn stretch(walk: &mut Walk, from: i64, to: Option<i64>) -> Result<(), Error> {
    for stage in Stage::ALL {
        let mut from = from;
        loop {
            let runs = without_row(&walk.client, stage, from, to).await?;
            for (low, high) in &runs {
                let place = Place {
                    event: Some(EventId(*low)),
                    last_event: (high - low > 1).then_some(EventId(high - 1)),
                    note: Some(format!("in {}", stage.as_str())),
                    ..Place::default()
                };
                let count = high.abs_diff(*low);
                walk.found.add_many(Kind::LedgerWithoutRow, count, place);
            }
            let ids = runs.iter().flat_map(|(low, high)| *low..*high);
            let ids: Vec<EventId> = ids.take(FORGOTTEN).map(EventId).collect();
            walk.forget(Kind::LedgerWithoutRow, &[stage], &ids).await?;
            match runs.last() {
                Some((_, high)) if i64::try_from(runs.len()) == Ok(RUNS) => from = *high,
                _ => break,
            }
        }
    }
    Ok(())
}

async fn without_row(
    client: &Client,
    stage: Stage,
    from: i64,
    to: Option<i64>,
) -> Result<Vec<(i64, i64)>, Error> {
    const SQL: &str = "with claimed as (
            select range_agg(r) as ids
            from tideline.delivery_ledger l, unnest(l.ids * int8multirange(int8range($2, $3))) as r
            where l.stage = $1 and l.last_block >= $2 / 65536 and ($3::bigint is null or l.block <= ($3 - 1) / 65536)
        ), existing as (
            select range_agg(int8range(id, id, '[]')) as ids from tideline.outbox
            where id >= $2 and ($3::bigint is null or id < $3)
        )
        select lower(r), upper(r)
        from claimed, existing, unnest(claimed.ids - coalesce(existing.ids, '{}'::int8multirange)) as r
        order by 1 limit $4";
    let params: &[&(dyn tokio_postgres::types::ToSql + Sync)] =
        &[&stage.as_str(), &from, &to, &RUNS];
    let rows = sql::all(client, "compare ledger and outbox", SQL, params).await?;
    rows.iter()
        .map(|row| Ok((column(row, 0)?, column(row, 1)?)))
        .collect()
}
