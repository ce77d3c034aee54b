//! What others do, and what nobody can beat.
//!
//! Finding: an anti-join that reads every row, and `count(*)`, the least that reading every row
//! takes. Accounting: one entry of many ids in the ledger, against marking each row, which finds
//! as fast as an index does and pays at every event.

use std::time::Instant;

use database::{Pool, delivery_ledger};
use events::{EventId, Stage};
use serde::Serialize;
use tokio_postgres::Client;

use crate::{
    ledger::BATCH,
    numbers::{Runs, millis, real},
};

/// Statements that read every row.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct WholeOutbox {
    pub(crate) anti_join_ms: Runs,
    pub(crate) count_ms: Runs,
}

/// The price of one event in an account.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Price {
    pub(crate) micros: f64,
    pub(crate) wal_bytes: f64,
    /// What tables and indexes grew by, before any vacuum.
    pub(crate) bytes: f64,
}

/// Accounting by entry and by mark.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Accounting {
    pub(crate) events: i64,
    pub(crate) ledger: Price,
    pub(crate) mark: Price,
    /// Finding 1 000 rows that bear no mark, by the index made for it.
    pub(crate) find_unmarked_ms: Runs,
}

/// Reads the whole outbox.
pub(crate) async fn whole_outbox(sql: &Client, runs: u32) -> anyhow::Result<WholeOutbox> {
    const ANTI_JOIN: &str = "with passed as (
            select coalesce(range_agg(r), '{}') as ids
            from tideline.delivery_ledger l, unnest(l.ids) as r where l.stage = 'published'
        )
        select count(*) from tideline.outbox o, passed where not passed.ids @> o.id";
    const COUNT: &str = "select count(*) from tideline.outbox";
    let mut spans = WholeOutbox::default();
    for _ in 0..runs {
        spans.anti_join_ms.push(timed(sql, ANTI_JOIN).await?);
        spans.count_ms.push(timed(sql, COUNT).await?);
    }
    Ok(spans)
}

/// Accounts for so many events in both ways, batch by batch as they would arrive. Empties the
/// ledger.
pub(crate) async fn accounting(
    pool: &Pool,
    sql: &Client,
    events: i64,
    runs: u32,
    epoch: i64,
) -> anyhow::Result<Accounting> {
    const MARKED: &str = "drop table if exists bench_marked;
        create table bench_marked (id bigint primary key, payload json not null,
            created_at timestamptz not null, published_at timestamptz);
        create index bench_unmarked on bench_marked (id) where published_at is null;
        set synchronous_commit = on";
    const FILL: &str = "insert into bench_marked (id, payload, created_at)
        select id, payload, created_at from tideline.outbox where id <= $1";
    const MARK: &str =
        "update bench_marked set published_at = clock_timestamp() where id >= $1 and id < $2";
    const UNMARK: &str = "update bench_marked set published_at = null
        where id % (select greatest(count(*) / 1000, 1) from bench_marked) = 0";
    const FIND: &str = "select count(*) from (select id, payload from bench_marked
        where published_at is null order by id limit 100000) as found";
    let mut accounting = Accounting {
        events,
        ..Accounting::default()
    };
    sql.batch_execute("truncate tideline.delivery_ledger")
        .await?;
    sql.batch_execute(MARKED).await?;
    sql.execute(FILL, &[&events]).await?;

    let meter = Meter::start(sql, "tideline.delivery_ledger").await?;
    let client = pool.get().await?;
    for low in batches(events) {
        let ids: Vec<EventId> = (low..low + BATCH).map(EventId).collect();
        delivery_ledger::record(&client, Stage::Published, &ids, epoch).await?;
    }
    accounting.ledger = meter.stop(sql, events).await?;

    let meter = Meter::start(sql, "bench_marked").await?;
    let mark = sql.prepare(MARK).await?;
    for low in batches(events) {
        sql.execute(&mark, &[&low, &(low + BATCH)]).await?;
    }
    accounting.mark = meter.stop(sql, events).await?;
    sql.execute(UNMARK, &[]).await?;
    for _ in 0..runs {
        accounting.find_unmarked_ms.push(timed(sql, FIND).await?);
    }
    sql.batch_execute("drop table bench_marked; truncate tideline.delivery_ledger")
        .await?;
    Ok(accounting)
}

fn batches(events: i64) -> impl Iterator<Item = i64> {
    (0..events / BATCH).map(|batch| batch * BATCH + 1)
}

async fn timed(sql: &Client, statement: &str) -> anyhow::Result<f64> {
    let began = Instant::now();
    let _row = sql.query_one(statement, &[]).await?;
    Ok(millis(began.elapsed()))
}

/// Time, WAL and room, from a beginning on.
struct Meter {
    table: &'static str,
    began: Instant,
    lsn: String,
    bytes: i64,
}

impl Meter {
    async fn start(sql: &Client, table: &'static str) -> anyhow::Result<Self> {
        const SQL: &str =
            "select pg_current_wal_insert_lsn()::text, pg_total_relation_size($1::text::regclass)";
        // So that neither pays for pages that the filling has left to be logged whole.
        sql.batch_execute("checkpoint").await?;
        let row = sql.query_one(SQL, &[&table]).await?;
        Ok(Self {
            table,
            lsn: row.try_get(0)?,
            bytes: row.try_get(1)?,
            began: Instant::now(),
        })
    }

    async fn stop(self, sql: &Client, events: i64) -> anyhow::Result<Price> {
        const SQL: &str = "select (pg_current_wal_insert_lsn() - $1::text::pg_lsn)::bigint,
            pg_total_relation_size($2::text::regclass)";
        let micros = millis(self.began.elapsed()) * 1e3;
        let row = sql.query_one(SQL, &[&self.lsn, &self.table]).await?;
        let each = |total: i64| real(total) / real(events);
        Ok(Price {
            micros: micros / real(events),
            wal_bytes: each(row.try_get(0)?),
            bytes: each(row.try_get::<_, i64>(1)? - self.bytes),
        })
    }
}
