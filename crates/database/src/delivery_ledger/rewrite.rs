//! Folding the ledger's rows together, and taking ids out of them.
//!
//! Promise: each function is one transaction that changes no answer about any id, except
//! [`forget`] and [`trim_below`], which are for that. All are safe beside writers, who only add
//! rows, and beside each other: rows are locked before they are read, and who takes ids out does so
//! alone ([`alone`]), so that none of them hides in a row that is just being folded.

use deadpool_postgres::Transaction;
use events::{BLOCK, EventId, IdRange, IdRanges, Stage};

use super::parse;
use crate::{
    Client, Error,
    statement::{self, column},
};

/// The lock of the ledger's rewrites, also named by `tideline.ledger_epoch()`: "tide", 1.
const LOCK: [i32; 2] = [0x7469_6465, 1];

/// Rows of one block before and after; equal when there was nothing to fold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compacted {
    /// Rows that held ids of the block.
    pub before: u64,
    /// Rows in their place.
    pub after: u64,
}

/// Blocks whose ids are in more than one row, or in a row that crosses a border without filling
/// its blocks; those with the most rows first.
///
/// # Errors
/// See [`Error::class`].
pub async fn crowded_blocks(client: &Client, stage: Stage, limit: i64) -> Result<Vec<i64>, Error> {
    const SQL: &str = "select block from (
            select block, last_block, ids,
                max(last_block) over (order by block, entry rows between unbounded preceding and 1 preceding) as reached
            from tideline.delivery_ledger where stage = $1 and block is not null) as l
        where reached >= block
           or block <> last_block and ids <> int8multirange(int8range(block * $3, (last_block + 1) * $3))
        group by block order by count(*) desc, block limit $2";
    let params: statement::Params<'_> = &[&stage.as_str(), &limit, &BLOCK];
    let rows = statement::all(client, "look for crowded blocks", SQL, params).await?;
    rows.iter().map(|row| column(row, 0)).collect()
}

/// Folds the rows that hold ids of a block into one. Rows that cross a border are cut there, unless
/// they fill their blocks.
///
/// # Errors
/// See [`Error::class`].
///
/// # Cancel safety
/// As in the crate's head: all or nothing.
pub async fn compact_block(
    client: &mut Client,
    stage: Stage,
    block: i64,
) -> Result<Compacted, Error> {
    const ROWS: &str = "select entry, ids::text, epoch, tideline.micros(recorded_at)
        from tideline.delivery_ledger
        where stage = $1 and block <= $2 and last_block >= $2
          and ids && int8multirange(int8range($2::bigint * $3, ($2::bigint + 1) * $3))
        order by entry for update";
    let transaction = statement::begin(client).await?;
    beside(&transaction).await?;
    let params: statement::Params<'_> = &[&stage.as_str(), &block, &BLOCK];
    let rows = statement::all(&transaction, "lock the rows of a block", ROWS, params).await?;
    let mut folded = Folded::default();
    let mut whole = false;
    for row in &rows {
        let ids = parse(column(row, 1)?)?;
        if fills_blocks(&ids) {
            whole = true;
        } else {
            folded.add(column(row, 0)?, &ids, column(row, 2)?, column(row, 3)?);
        }
    }
    let before = rows.len() as u64;
    let full = before - folded.entries.len() as u64;
    if whole {
        // The full row has all of it.
        folded.ids = folded
            .ids
            .subtract(&IdRanges::from_ranges([block_range(block)]));
    }
    let blocks: Vec<String> = folded
        .ids
        .blocks()
        .map(|(_, ids)| ids.to_string())
        .collect();
    if folded.entries.is_empty() || (!whole && folded.entries.len() == 1 && blocks.len() == 1) {
        return Ok(Compacted {
            before,
            after: before,
        });
    }
    let after = full + blocks.len() as u64;
    folded.replace(&transaction, stage, &blocks).await?;
    statement::commit(transaction).await?;
    Ok(Compacted { before, after })
}

/// Joins adjoining rows that fill their blocks into one each. Answers how many rows that saved.
///
/// # Errors
/// See [`Error::class`].
///
/// # Cancel safety
/// As in the crate's head: all or nothing.
pub async fn join_complete(client: &mut Client, stage: Stage) -> Result<u64, Error> {
    const ROWS: &str = "select entry, ids::text, epoch, tideline.micros(recorded_at)
        from tideline.delivery_ledger
        where stage = $1 and ids = int8multirange(int8range(block * $2, (last_block + 1) * $2))
        order by entry for update";
    let transaction = statement::begin(client).await?;
    beside(&transaction).await?;
    let params: statement::Params<'_> = &[&stage.as_str(), &BLOCK];
    let rows = statement::all(&transaction, "lock the complete rows", ROWS, params).await?;
    let mut folded = Folded::default();
    for row in &rows {
        let ids = parse(column(row, 1)?)?;
        folded.add(column(row, 0)?, &ids, column(row, 2)?, column(row, 3)?);
    }
    let joined: Vec<String> = folded
        .ids
        .iter()
        .map(|range| IdRanges::from_ranges([range]).to_string())
        .collect();
    let saved = (folded.entries.len() - joined.len()) as u64;
    if saved > 0 {
        folded.replace(&transaction, stage, &joined).await?;
        statement::commit(transaction).await?;
    }
    Ok(saved)
}

/// Deletes the rows of all stages that lie wholly below `id`. Answers how many.
///
/// # Errors
/// See [`Error::class`].
pub async fn trim_below(client: &Client, id: EventId) -> Result<u64, Error> {
    const SQL: &str = "delete from tideline.delivery_ledger where isempty(ids) or upper(ids) <= $1";
    statement::execute(client, "trim the ledger", SQL, &[&id.0]).await
}

/// Takes ids out of every row of a stage: what the ledger claims is not so. Answers how many of
/// them were in it.
///
/// # Errors
/// See [`Error::class`].
///
/// # Cancel safety
/// As in the crate's head: all or nothing.
pub async fn forget(client: &mut Client, stage: Stage, ids: &[EventId]) -> Result<u64, Error> {
    let ids = IdRanges::from_ids(ids.iter().copied());
    let transaction = statement::begin(client).await?;
    alone(&transaction).await?;
    let removed = remove(&transaction, &[stage.as_str()], &ids).await?;
    statement::commit(transaction).await?;
    Ok(removed)
}

/// Takes ids out of the rows of these stages, in a transaction that holds [`alone`]. Answers how
/// many of them were in any.
pub(crate) async fn remove(
    transaction: &Transaction<'_>,
    stages: &[&str],
    ids: &IdRanges,
) -> Result<u64, Error> {
    // Block by block, so that many rows and many ranges do not multiply.
    const COUNT: &str = "select coalesce(sum(upper(r) - lower(r)), 0)::bigint from unnest((
            select range_agg(r) * $2::text::int8multirange
            from tideline.delivery_ledger l, unnest(l.ids) as r
            where l.stage = any($1) and l.block <= $3 and l.last_block >= $3
              and l.ids && $2::text::int8multirange)) as r";
    const UPDATE: &str = "update tideline.delivery_ledger set ids = ids - $2::text::int8multirange
        where stage = any($1) and block <= $3 and last_block >= $3
          and ids && $2::text::int8multirange";
    const EMPTY: &str =
        "delete from tideline.delivery_ledger where stage = any($1) and isempty(ids)";
    let mut removed = 0;
    for (block, ids) in ids.blocks() {
        let text = ids.to_string();
        let params: statement::Params<'_> = &[&stages, &text, &block];
        let row = statement::one(transaction, "count ids in the ledger", COUNT, params).await?;
        let found: i64 = column(&row, 0)?;
        if found > 0 {
            removed += found.unsigned_abs();
            let _rows =
                statement::execute(transaction, "take ids out of the ledger", UPDATE, params)
                    .await?;
        }
    }
    if removed > 0 {
        let _rows = statement::execute(transaction, "delete empty rows", EMPTY, &[&stages]).await?;
    }
    Ok(removed)
}

/// Makes the transaction one that folds rows: others may too, nobody takes ids out meanwhile.
pub(crate) async fn beside(transaction: &Transaction<'_>) -> Result<(), Error> {
    const SQL: &str = "select pg_advisory_xact_lock_shared($1, $2)";
    let params: statement::Params<'_> = &[&LOCK[0], &LOCK[1]];
    statement::one(transaction, "lock the ledger", SQL, params)
        .await
        .map(drop)
}

/// Makes the transaction one that takes ids out or starts an epoch: it waits for entries and
/// foldings that are under way, and later ones wait for it.
pub(crate) async fn alone(transaction: &Transaction<'_>) -> Result<(), Error> {
    const SQL: &str = "select pg_advisory_xact_lock($1, $2)";
    let params: statement::Params<'_> = &[&LOCK[0], &LOCK[1]];
    statement::one(transaction, "lock the ledger alone", SQL, params)
        .await
        .map(drop)
}

/// Rows that are about to be replaced.
#[derive(Default)]
struct Folded {
    entries: Vec<i64>,
    ids: IdRanges,
    epoch: i64,
    recorded_us: i64,
}

impl Folded {
    fn add(&mut self, entry: i64, ids: &IdRanges, epoch: i64, recorded_us: i64) {
        self.entries.push(entry);
        self.ids = self.ids.union(ids);
        self.epoch = self.epoch.max(epoch);
        self.recorded_us = self.recorded_us.max(recorded_us);
    }

    /// Puts rows in their place. The newest time stays: it is evidence of when this epoch lived.
    async fn replace(
        &self,
        transaction: &Transaction<'_>,
        stage: Stage,
        rows: &[String],
    ) -> Result<(), Error> {
        const DELETE: &str = "delete from tideline.delivery_ledger where entry = any($1)";
        const INSERT: &str = "insert into tideline.delivery_ledger (stage, ids, epoch, recorded_at)
            select $1, r::int8multirange, $3, tideline.at_micros($4) from unnest($2::text[]) as r";
        let _deleted =
            statement::execute(transaction, "delete folded rows", DELETE, &[&self.entries]).await?;
        let params: statement::Params<'_> =
            &[&stage.as_str(), &rows, &self.epoch, &self.recorded_us];
        statement::execute(transaction, "insert a folded row", INSERT, params)
            .await
            .map(drop)
    }
}

/// Whether these are all ids of one or more adjoining blocks.
fn fills_blocks(ids: &IdRanges) -> bool {
    let mut ranges = ids.iter();
    match (ranges.next(), ranges.next()) {
        (Some(range), None) => {
            range.low.rem_euclid(BLOCK) == 0 && range.high.rem_euclid(BLOCK) == 0
        }
        _ => false,
    }
}

fn block_range(block: i64) -> IdRange {
    IdRange {
        low: block * BLOCK,
        high: (block + 1) * BLOCK,
    }
}
