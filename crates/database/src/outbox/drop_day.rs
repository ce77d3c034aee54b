//! Dropping an outbox day (D-11).
//!
//! Promise: a day goes only when each of its rows is finished in each stage: judged without a lock
//! first, and again under the lock that keeps rows out until the partition is gone. Writers of
//! other days wait only for the last lock, [`ROOT_LOCK`] at the longest; all locks together are
//! waited for at most 200 ms.

use deadpool_postgres::{GenericClient, Transaction};
use events::{EventId, IdRange, IdRanges, Stage};
use tokio_postgres::error::SqlState;

use super::{Found, find};
use crate::{
    Client, Error, delivery_ledger, stages,
    statement::{self, column},
};

/// The wait for the day and for the default partition, each: readers of the outbox wait with it.
const LEAF_LOCK: &str = "set local lock_timeout = '25ms'";
/// The wait for the whole outbox: writers wait with it.
const ROOT_LOCK: &str = "set local lock_timeout = '100ms'";

/// Rows that are looked at in one statement.
const PAGE: i64 = 100_000;
/// Unfinished ids that are named.
const SAMPLE: usize = 20;

/// What became of [`drop_day`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DropOutcome {
    /// The day is gone.
    Dropped {
        /// The rows it had, counted just before.
        rows: u64,
    },
    /// The day stays: rows of it are not finished.
    Unfinished {
        /// In this stage; others were not looked at.
        stage: Stage,
        /// How many of the first 100 000 rows that have not passed it.
        count: u64,
        /// The lowest of them.
        sample: Vec<EventId>,
    },
    /// The day stays for now: somebody holds the outbox.
    Busy {
        /// Who, for a person: process, application, user, how long.
        holders: String,
    },
    /// There is no such day.
    Absent,
}

/// Drops the day of this date (`2026-11-29`), when every row of it is finished in all of `stages`:
/// passed, discarded, or an open dead letter whose full record is kept. An oversized record is kept
/// nowhere else, so it holds its day.
///
/// # Errors
/// See [`Error::class`].
///
/// # Cancel safety
/// As in the crate's head: all or nothing.
pub async fn drop_day(
    client: &mut Client,
    date: &str,
    stages: &[Stage],
) -> Result<DropOutcome, Error> {
    let Some(leaf) = leaf_of(client, date).await? else {
        return Ok(DropOutcome::Absent);
    };
    if let Some(unfinished) = unfinished(client, &leaf, stages).await? {
        return Ok(unfinished);
    }
    let rows = count(client, &leaf).await?;
    let transaction = statement::begin(client).await?;
    match drop_locked(&transaction, &leaf, stages).await {
        Ok(None) => {
            statement::commit(transaction).await?;
            Ok(DropOutcome::Dropped { rows })
        }
        Ok(Some(unfinished)) => Ok(unfinished),
        Err(error) if error.sql_state() == Some(&SqlState::LOCK_NOT_AVAILABLE) => {
            // The failed transaction must end before anything can be asked.
            statement::bounded("roll back", statement::LIMIT, transaction.rollback()).await?;
            let holders = holders(client, &leaf).await?;
            Ok(DropOutcome::Busy { holders })
        }
        Err(error) => Err(error),
    }
}

/// The partition of a date, if there is one.
async fn leaf_of(client: &Client, date: &str) -> Result<Option<String>, Error> {
    const SQL: &str =
        "select c.relname::text from pg_inherits i join pg_class c on c.oid = i.inhrelid
        where i.inhparent = 'tideline.outbox'::regclass
          and c.relname = 'outbox_' || to_char($1::text::date, 'YYYYMMDD')";
    let row = statement::optional(client, "look for an outbox day", SQL, &[&date]).await?;
    row.map(|row| column(&row, 0)).transpose()
}

/// Locks, judges again and drops, in this order: what writers of other days need comes last.
/// Answers what is unfinished, and then nothing is dropped.
async fn drop_locked(
    transaction: &Transaction<'_>,
    leaf: &str,
    stages: &[Stage],
) -> Result<Option<DropOutcome>, Error> {
    run(transaction, "limit the wait", LEAF_LOCK).await?;
    // Nobody takes ids out of the ledger until the day is gone.
    delivery_ledger::beside(transaction).await?;
    // SHARE keeps writers out and lets readers in while the rows are judged.
    let share = format!("lock table only tideline.{leaf} in share mode");
    run(transaction, "lock an outbox day", &share).await?;
    if let Some(unfinished) = unfinished(transaction, leaf, stages).await? {
        return Ok(Some(unfinished));
    }
    let both = format!(
        "lock table only tideline.{leaf}, only tideline.outbox_default in access exclusive mode"
    );
    run(transaction, "lock an outbox day", &both).await?;
    run(transaction, "limit the wait", ROOT_LOCK).await?;
    let drop = format!("drop table tideline.{leaf}");
    run(transaction, "drop an outbox day", &drop).await?;
    Ok(None)
}

/// The first unfinished rows of a leaf, in the first stage that has any.
async fn unfinished<C: GenericClient>(
    client: &C,
    leaf: &str,
    stages: &[Stage],
) -> Result<Option<DropOutcome>, Error> {
    let span = format!("select min(id), max(id) from tideline.{leaf}");
    let row = statement::one(client, "read the span of a day", &span, &[]).await?;
    let (Some(low), Some(highest)) = (column(&row, 0)?, column::<Option<i64>>(&row, 1)?) else {
        return Ok(None);
    };
    let whole = IdRange {
        low,
        high: highest.saturating_add(1),
    };
    for stage in stages {
        let passed = delivery_ledger::passed(client, *stage, whole).await?;
        let mut left = IdRanges::from_ranges([whole]).subtract(&passed);
        loop {
            let page = find(client, leaf, &left, None, PAGE).await?;
            let Some(last) = page.last().map(|found| found.event) else {
                break;
            };
            let open = open_rows(client, *stage, &page).await?;
            if !open.is_empty() {
                return Ok(Some(DropOutcome::Unfinished {
                    stage: *stage,
                    count: open.len() as u64,
                    sample: open.into_iter().take(SAMPLE).collect(),
                }));
            }
            if last.0 >= highest {
                break;
            }
            left = left.within(IdRange {
                low: last.0 + 1,
                high: whole.high,
            });
        }
    }
    Ok(None)
}

/// Those of the rows that the stage accounts for and that nothing finishes.
async fn open_rows<C: GenericClient>(
    client: &C,
    stage: Stage,
    page: &[Found],
) -> Result<Vec<EventId>, Error> {
    // An oversized record is not in the dead-letter topic: its outbox row is all there is.
    const SQL: &str = "select asked.id from unnest($2::bigint[]) as asked (id)
        where not exists (select from tideline.discarded x where x.stage = any($1) and x.event_id = asked.id)
          and not exists (select from tideline.dead_letters d
              where d.stage = any($1) and d.event_id = asked.id and d.state = 'open' and d.reason <> 'oversize')
        order by asked.id";
    let types = stages::types(stage);
    let ids: Vec<i64> = page
        .iter()
        .filter(|found| types.contains(&found.type_name.as_str()))
        .map(|found| found.event.0)
        .collect();
    let params: statement::Params<'_> = &[&stages::finishing(stage), &ids];
    let rows = statement::all(client, "look what finishes rows", SQL, params).await?;
    rows.iter().map(|row| column(row, 0).map(EventId)).collect()
}

/// How many rows a leaf has, in statements of bounded length.
async fn count(client: &Client, leaf: &str) -> Result<u64, Error> {
    const ROWS: i64 = 1_000_000;
    let sql = format!(
        "select count(*), max(id) from (
            select id from tideline.{leaf} where id > $1 order by id limit $2) as page"
    );
    let (mut total, mut after) = (0, i64::MIN);
    loop {
        let row = statement::one(client, "count the rows of a day", &sql, &[&after, &ROWS]).await?;
        let rows: i64 = column(&row, 0)?;
        total += rows.unsigned_abs();
        match column(&row, 1)? {
            Some(last) if rows == ROWS => after = last,
            _ => return Ok(total),
        }
    }
}

/// Who holds locks on the leaf, the outbox or the default partition.
async fn holders(client: &Client, leaf: &str) -> Result<String, Error> {
    // A prepared transaction holds locks and has no process.
    const SQL: &str = "select coalesce(string_agg(distinct
            case when l.pid is null then 'a prepared transaction'
            else format('pid %s (application %L, user %s, %s, for %s s)', l.pid, a.application_name, a.usename, a.state,
                        extract(epoch from clock_timestamp() - a.xact_start)::bigint) end, '; '), 'nobody any more')
        from pg_locks l left join pg_stat_activity a on a.pid = l.pid
        where l.locktype = 'relation' and l.granted and l.pid is distinct from pg_backend_pid()
          and l.database = (select oid from pg_database where datname = current_database())
          and l.relation in (to_regclass('tideline.' || $1), 'tideline.outbox'::regclass, 'tideline.outbox_default'::regclass)";
    let row = statement::one(client, "look who holds the outbox", SQL, &[&leaf]).await?;
    column(&row, 0)
}

/// A statement that answers nothing and is not worth preparing.
async fn run(transaction: &Transaction<'_>, doing: &'static str, sql: &str) -> Result<(), Error> {
    statement::bounded(doing, statement::LIMIT, transaction.batch_execute(sql)).await
}
