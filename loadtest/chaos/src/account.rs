//! What Postgres says about events: finished or not, sent again or not.
//!
//! Owns counting from outside, in its own words: nothing here asks the service that is judged.

use std::time::Duration;

use events::{EventId, Stage, registry};

use crate::Flow;

/// Outbox rows that no ledger entry of the stages covers and no dead letter accounts for. What is
/// delivered counts as published.
const MISSING: &str = "with passed as (
        select coalesce(range_agg(r), '{}') as ids
        from tideline.delivery_ledger l, unnest(l.ids) as r where l.stage = any($1)
    )
    select count(*), coalesce(extract(epoch from clock_timestamp() - min(o.created_at)), 0)::float8
    from tideline.outbox o, passed
    where o.type = any($2) and o.id <= $3 and not passed.ids @> o.id
        and not exists (select from tideline.dead_letters d where d.event_id = o.id)";

/// Events that a stage lacks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Missing {
    /// How many.
    pub count: i64,
    /// How long ago the oldest of them was created.
    pub oldest: Duration,
}

/// Events up to and including `last` that `stage` lacks.
///
/// # Errors
/// When Postgres does not answer.
pub async fn missing(flow: &Flow, stage: Stage, last: EventId) -> anyhow::Result<Missing> {
    let stages: Vec<&str> = match stage {
        Stage::Published => vec![Stage::Published.as_str(), Stage::Delivered.as_str()],
        Stage::Delivered => vec![Stage::Delivered.as_str()],
    };
    let types: Vec<&str> = registry::entries()
        .iter()
        .filter(|entry| entry.stages.contains(&stage))
        .map(|entry| entry.name)
        .collect();
    let sql = flow.sql().get().await?;
    let row = sql.query_one(MISSING, &[&stages, &types, &last.0]).await?;
    Ok(Missing {
        count: row.get(0),
        oldest: Duration::try_from_secs_f64(row.get(1)).unwrap_or_default(),
    })
}

/// The newest event.
///
/// # Errors
/// When Postgres does not answer.
pub async fn newest(flow: &Flow) -> anyhow::Result<EventId> {
    let sql = flow.sql().get().await?;
    let row = sql
        .query_one("select coalesce(max(id), 0) from tideline.outbox", &[])
        .await?;
    Ok(EventId(row.get(0)))
}

/// The events with higher ids than this one.
///
/// # Errors
/// When Postgres does not answer.
pub async fn later_than(flow: &Flow, event: EventId) -> anyhow::Result<Vec<EventId>> {
    let sql = flow.sql().get().await?;
    let rows = sql
        .query(
            "select id from tideline.outbox where id > $1 order by id",
            &[&event.0],
        )
        .await?;
    Ok(rows.iter().map(|row| EventId(row.get(0))).collect())
}

/// How often the sweep sent an event again, all stages together.
///
/// # Errors
/// When Postgres does not answer.
pub async fn redelivered(flow: &Flow) -> anyhow::Result<i64> {
    const SQL: &str = "select coalesce(sum(attempts), 0)::bigint from tideline.redelivery";
    let sql = flow.sql().get().await?;
    Ok(sql.query_one(SQL, &[]).await?.get(0))
}

/// How many of these events the outbox has no row of.
///
/// # Errors
/// When Postgres does not answer.
pub async fn without_row(flow: &Flow, events: &[EventId]) -> anyhow::Result<i64> {
    const SQL: &str = "select count(*) from unnest($1::bigint[]) as event
        where not exists (select from tideline.outbox o where o.id = event)";
    let ids: Vec<i64> = events.iter().map(|event| event.0).collect();
    let sql = flow.sql().get().await?;
    Ok(sql.query_one(SQL, &[&ids]).await?.get(0))
}
