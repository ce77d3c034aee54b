//! Epochs: the lives of this database's outbox ids.
//!
//! Owns starting one, after a failover or a restore. What the last moments of the old life entered
//! in the ledger may be about rows that are lost, and rows that are there may be of nobody's
//! entries: the ids of that time and all above leave every stage and are delivered again, which is
//! harmless.
//!
//! Promise: one transaction, under the lock that entries share: an entry is either doubted here or
//! finds the new epoch and is refused.

use deadpool_postgres::{GenericClient, Transaction};
use events::{IdRange, IdRanges, Micros, Stage};

use crate::{
    Client, Error, delivery_ledger,
    statement::{self, column},
};

/// How far the ids jump at a failover: more than the old server can have drawn unseen.
const JUMP: i64 = 1_000_000;

/// What was created this long before the last sign of the old life is doubted.
const DOUBT: i64 = Micros::HOUR;

/// The newest epoch. `ce_source` carries its number, and the ledger refuses entries of another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Epoch {
    /// Its number, from 1.
    pub epoch: i64,
    /// `systemid` as IDENTIFY_SYSTEM answers it.
    pub system_id: String,
    /// Postgres's timeline id when the epoch began.
    pub pg_timeline: i64,
}

/// Which server this is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerIdentity {
    /// `systemid` as IDENTIFY_SYSTEM answers it.
    pub system_id: String,
    /// Postgres's timeline id, of the WAL that is being written; in recovery, of the last restart
    /// point.
    pub pg_timeline: i64,
    /// A standby, which nothing can be written to.
    pub in_recovery: bool,
}

/// An epoch that was started now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Begun {
    /// Its number.
    pub epoch: i64,
    /// Ids that left a stage, summed over the stages.
    pub doubted: u64,
}

/// What became of [`begin`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begin {
    /// A new epoch.
    Begun(Begun),
    /// The newest epoch, of this number, is of this server: somebody else was faster.
    AlreadyBegun(i64),
}

/// The newest epoch.
///
/// # Errors
/// [`Error::NoEpoch`] when the migrations have not run to the end.
pub async fn current(client: &Client) -> Result<Epoch, Error> {
    newest(client).await
}

/// Which server answers.
///
/// # Errors
/// See [`Error::class`].
pub async fn here(client: &Client) -> Result<ServerIdentity, Error> {
    identity(client).await
}

/// Starts an epoch on this server, unless the newest one is of it: ids go on a million higher, and
/// what was created since an hour before the last sign of the old life leaves every stage.
///
/// # Errors
/// See [`Error::class`]; 25006 on a standby. [`events::Class::Unsure`]: entries or a claim were
/// under way for too long, do it again.
///
/// # Cancel safety
/// As in the crate's head: all or nothing, and a repeat is harmless; only the ids jump once more.
pub async fn begin(client: &mut Client, server: &ServerIdentity) -> Result<Begin, Error> {
    let transaction = statement::begin(client).await?;
    delivery_ledger::alone(&transaction).await?;
    let old = newest(&transaction).await?;
    if (&old.system_id, old.pg_timeline) == (&server.system_id, server.pg_timeline) {
        return Ok(Begin::AlreadyBegun(old.epoch));
    }
    let begun = start(&transaction, &old, server, JUMP).await?;
    statement::commit(transaction).await?;
    Ok(Begin::Begun(begun))
}

/// Starts an epoch on this server, whatever the newest one is of: after a restore, by the operator,
/// who says how far the ids must jump to be above all that were drawn before it.
///
/// # Errors
/// As [`begin`].
///
/// # Cancel safety
/// As in the crate's head: all or nothing.
pub async fn bump(client: &mut Client, by: i64) -> Result<Begun, Error> {
    let transaction = statement::begin(client).await?;
    delivery_ledger::alone(&transaction).await?;
    let old = newest(&transaction).await?;
    let server = identity(&transaction).await?;
    let begun = start(&transaction, &old, &server, by).await?;
    statement::commit(transaction).await?;
    Ok(begun)
}

async fn start(
    transaction: &Transaction<'_>,
    old: &Epoch,
    server: &ServerIdentity,
    jump: i64,
) -> Result<Begun, Error> {
    const INSERT: &str =
        "insert into tideline.epoch (epoch, system_id, pg_timeline) values ($1, $2, $3)";
    // Also above the highest row: a sequence may come back behind its table.
    const IDS: &str = "select setval(s.name, greatest(nextval(s.name), (select max(id) from tideline.outbox)) + $1)
        from (select pg_get_serial_sequence('tideline.outbox', 'id')::regclass as name) as s";
    let since = doubted_since(transaction, old.epoch).await?;
    let doubtful = doubtful_ids(transaction, since).await?;
    let epoch = old.epoch + 1;
    let params: statement::Params<'_> = &[&epoch, &server.system_id, &server.pg_timeline];
    let _row = statement::execute(transaction, "start an epoch", INSERT, params).await?;
    let _row = statement::one(transaction, "raise the outbox ids", IDS, &[&jump]).await?;
    let mut doubted = 0;
    for stage in Stage::ALL {
        doubted += delivery_ledger::remove(transaction, &[stage.as_str()], &doubtful).await?;
    }
    Ok(Begun { epoch, doubted })
}

/// The moment from which on rows are doubted: an hour before the newest evidence that the old epoch
/// lived, and never later than now.
async fn doubted_since(transaction: &Transaction<'_>, old: i64) -> Result<Micros, Error> {
    const SQL: &str = "select tideline.micros(least(clock_timestamp(), greatest(
            (select max(recorded_at) from tideline.delivery_ledger),
            (select max(updated_at) from tideline.relay_position),
            (select started_at from tideline.epoch where epoch = $1))))";
    let row = statement::one(transaction, "look for the old epoch", SQL, &[&old]).await?;
    column(&row, 0).map(|us| Micros(us).plus(-DOUBT))
}

/// The ids from the lowest of the rows that were created at or after a moment up to the highest in
/// the ledger. Not only those of rows: an entry of the old life may be about a row that is lost
/// here, and its id be drawn again, by a transaction that has not committed yet, before the jump.
async fn doubtful_ids(transaction: &Transaction<'_>, since: Micros) -> Result<IdRanges, Error> {
    const SQL: &str = "select coalesce(
                (select min(id) from tideline.outbox where created_at >= tideline.at_micros($1)),
                (select max(id) + 1 from tideline.outbox), 1),
            coalesce((select max(upper(ids)) from tideline.delivery_ledger), 0)";
    let row = statement::one(transaction, "read doubtful ids", SQL, &[&since.0]).await?;
    let (low, high) = (column(&row, 0)?, column(&row, 1)?);
    // An empty range is ignored.
    Ok(IdRanges::from_ranges([IdRange { low, high }]))
}

async fn newest<C: GenericClient>(client: &C) -> Result<Epoch, Error> {
    const SQL: &str =
        "select epoch, system_id, pg_timeline from tideline.epoch order by epoch desc limit 1";
    let row = statement::optional(client, "read the epoch", SQL, &[])
        .await?
        .ok_or(Error::NoEpoch)?;
    Ok(Epoch {
        epoch: column(&row, 0)?,
        system_id: column(&row, 1)?,
        pg_timeline: column(&row, 2)?,
    })
}

async fn identity<C: GenericClient>(client: &C) -> Result<ServerIdentity, Error> {
    // The name of the current WAL file begins with the timeline, in hexadecimal. It is known at
    // once after a promotion, pg_control_checkpoint() only after the next checkpoint; but a
    // standby refuses to name one.
    // Whether it is in recovery is asked once, since it may be promoted in the middle.
    const SQL: &str = "select (select system_identifier::text from pg_control_system()),
            case when standby then (select timeline_id::bigint from pg_control_checkpoint())
            else ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::bigint end,
            standby
        from (select pg_is_in_recovery() as standby offset 0) as here";
    let row = statement::one(client, "ask which server this is", SQL, &[]).await?;
    Ok(ServerIdentity {
        system_id: column(&row, 0)?,
        pg_timeline: column(&row, 1)?,
        in_recovery: column(&row, 2)?,
    })
}
