//! The delivery ledger: which outbox ids have passed which stage.
//!
//! Owns entering ids, one row per block of 65 536 ids and batch, every question about them,
//! and folding rows together. An entry that is lost means a later, harmless
//! re-delivery, so no LSN and no offset ever waits for one.
//!
//! Promise: entries of another epoch than the newest are refused. An entry that runs into the
//! start of an epoch is either seen by it, and doubted, or refused. Anything delivered counts as
//! published.

mod mirror;
mod rewrite;

use deadpool_postgres::GenericClient;
use events::{EventId, IdRange, IdRanges, Stage};

pub(crate) use self::rewrite::{alone, beside, remove};
pub use self::{
    mirror::Mirror,
    rewrite::{Compacted, compact_block, crowded_blocks, forget, join_complete, trim_below},
};
use crate::{
    Client, Error, stages,
    statement::{self, column},
};

/// Enters ids, in any order, with repeats or without: one row per block. No ids, no row.
///
/// # Errors
/// [`Error::OtherEpoch`] when `epoch` is not the newest one; else see [`Error::class`].
pub async fn record(
    client: &Client,
    stage: Stage,
    ids: &[EventId],
    epoch: i64,
) -> Result<(), Error> {
    enter(client, stage, ids, epoch).await
}

/// The ids within `within` that have passed the stage. Delivered ids have been published too.
///
/// # Errors
/// See [`Error::class`].
pub async fn ranges(client: &Client, stage: Stage, within: IdRange) -> Result<IdRanges, Error> {
    passed(client, stage, within).await
}

/// Whether an id is in the ledger of a stage.
///
/// # Errors
/// See [`Error::class`].
pub async fn contains(client: &Client, stage: Stage, id: EventId) -> Result<bool, Error> {
    const SQL: &str = "select tideline.has_entry($2, $1)";
    let row = statement::one(
        client,
        "look into the ledger",
        SQL,
        &[&stage.as_str(), &id.0],
    )
    .await?;
    column(&row, 0)
}

/// How many outbox rows that the stage accounts for have not passed it. Dead letters count as
/// missing.
///
/// # Errors
/// See [`Error::class`].
pub async fn missing_count(client: &Client, stage: Stage) -> Result<i64, Error> {
    const SQL: &str = "with passed as (
            select coalesce(range_agg(r), '{}') as ids
            from tideline.delivery_ledger l, unnest(l.ids) as r where l.stage = any($1)
        )
        select count(*) from tideline.outbox o
        where o.type = any($2) and not (select ids from passed) @> o.id";
    let params: statement::Params<'_> = &[&stages::implying(stage), &stages::types(stage)];
    let row = statement::one(client, "count what the ledger lacks", SQL, params).await?;
    column(&row, 0)
}

/// [`ranges`] through a connection or inside a transaction.
pub(crate) async fn passed<C: GenericClient>(
    client: &C,
    stage: Stage,
    within: IdRange,
) -> Result<IdRanges, Error> {
    // The rows are found by the blocks they span.
    const SQL: &str = "with asked as (select int8multirange(int8range($2, $3)) as ids)
        select (coalesce(range_agg(r), '{}') * (select ids from asked))::text
        from tideline.delivery_ledger l, unnest(l.ids) as r
        where l.stage = any($1) and l.block <= $5 and l.last_block >= $4
          and l.ids && (select ids from asked)";
    let (first, last) = within.block_span();
    let params: statement::Params<'_> = &[
        &stages::implying(stage),
        &within.low,
        &within.high,
        &first,
        &last,
    ];
    let row = statement::one(client, "read the ledger", SQL, params).await?;
    parse(column(&row, 0)?)
}

/// Enters ids through a connection or inside a transaction.
pub(crate) async fn enter<C: GenericClient>(
    client: &C,
    stage: Stage,
    ids: &[EventId],
    epoch: i64,
) -> Result<(), Error> {
    const SQL: &str = "insert into tideline.delivery_ledger (stage, ids, epoch)
        select $1, block::int8multirange, $3 from unnest($2::text[]) as block
        where $3 = (select tideline.ledger_epoch())";
    const CURRENT: &str = "select max(epoch) from tideline.epoch";
    if ids.is_empty() {
        return Ok(());
    }
    let ranges = IdRanges::from_ids(ids.iter().copied());
    let blocks: Vec<String> = ranges.blocks().map(|(_, ids)| ids.to_string()).collect();
    let params: statement::Params<'_> = &[&stage.as_str(), &blocks, &epoch];
    if statement::execute(client, "enter ids in the ledger", SQL, params).await? > 0 {
        return Ok(());
    }
    let row = statement::one(client, "read the epoch", CURRENT, &[]).await?;
    let current = column::<Option<i64>>(&row, 0)?.ok_or(Error::NoEpoch)?;
    Err(Error::OtherEpoch {
        given: epoch,
        current,
    })
}

/// Reads a multirange as Postgres prints it.
pub(crate) fn parse(text: &str) -> Result<IdRanges, Error> {
    text.parse().map_err(|_| Error::Value {
        what: "an int8multirange",
    })
}
