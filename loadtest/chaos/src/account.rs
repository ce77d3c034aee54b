//! What Postgres and Kafka say about events: finished or not, sent again or not, by which path.
//!
//! Owns counting from outside, in its own words: nothing here asks the service that is judged.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use events::{EventId, Stage, envelope::Path, registry, topic::TopicKind};
use kafka::KafkaConfig;

use crate::Flow;

/// Longer than partitions take to find their leader.
const BACK_WITHIN: Duration = Duration::from_secs(15);

/// Outbox rows that no ledger entry of the stages covers. What is delivered counts as published.
const MISSING: &str = "with passed as (
        select coalesce(range_agg(r), '{}') as ids
        from tideline.delivery_ledger l, unnest(l.ids) as r where l.stage = any($1)
    )
    select count(*), coalesce(extract(epoch from clock_timestamp() - min(o.created_at)), 0)::float8
    from tideline.outbox o, passed
    where o.type = any($2) and o.id <= $3 and not passed.ids @> o.id";

/// Events that a stage lacks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Missing {
    /// How many.
    pub count: i64,
    /// How long ago the oldest of them was created.
    pub oldest: Duration,
}

/// How often the topics of events hold each event, by the path it came.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Census {
    /// By the relay.
    pub relay: BTreeMap<EventId, u32>,
    /// By the sweep.
    pub sweep: BTreeMap<EventId, u32>,
}

impl Census {
    /// Records that the sweep sent.
    pub fn by_sweep(&self) -> u64 {
        self.sweep.values().map(|&times| u64::from(times)).sum()
    }

    /// Records of the sweep that nobody needed: beyond the first of an event, or of an event that
    /// the relay has sent too.
    pub fn doubled(&self) -> u64 {
        let beyond = |(event, &times): (&EventId, &u32)| {
            let needed = u32::from(!self.relay.contains_key(event));
            u64::from(times.saturating_sub(needed))
        };
        self.sweep.iter().map(beyond).sum()
    }

    fn add(&mut self, path: Path, event: EventId) {
        let side = match path {
            Path::Cdc => &mut self.relay,
            Path::Sweep => &mut self.sweep,
        };
        *side.entry(event).or_default() += 1;
    }
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

/// How often the sweep sent an event again, all stages together.
///
/// # Errors
/// When Postgres does not answer.
pub async fn redelivered(flow: &Flow) -> anyhow::Result<i64> {
    const SQL: &str = "select coalesce(sum(attempts), 0)::bigint from tideline.redelivery";
    let sql = flow.sql().get().await?;
    Ok(sql.query_one(SQL, &[]).await?.get(0))
}

/// Reads every record of the topics of events.
///
/// # Errors
/// When the broker does not answer, or a record has no envelope.
pub async fn census(flow: &Flow) -> anyhow::Result<Census> {
    let config = flow.pipeline().deployment().kafka_config();
    let mut census = Census::default();
    for kind in TopicKind::ALL {
        let topic = config.namespace.topic(kind);
        for (path, event) in records(&config, &topic).await? {
            census.add(path, event);
        }
    }
    Ok(census)
}

/// Path and event of every record; a broker that is coming back is asked again.
async fn records(config: &KafkaConfig, topic: &str) -> anyhow::Result<Vec<(Path, EventId)>> {
    let deadline = Instant::now() + BACK_WITHIN;
    loop {
        let found = kafka::snapshot::read(config, topic, |record| {
            Some(record.envelope().map(|found| (found.path, found.event_id)))
        });
        match found.await {
            Ok(found) => return Ok(found.into_iter().collect::<Result<_, _>>()?),
            Err(error) if error.class().is_retried() && Instant::now() < deadline => {
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
            Err(error) => return Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_nobody_needed_is_doubled() {
        let mut census = Census::default();
        let records = [
            (Path::Cdc, 1),
            // The relay may repeat itself.
            (Path::Cdc, 1),
            // Missing, sent once.
            (Path::Sweep, 2),
            // Missing, sent twice.
            (Path::Sweep, 3),
            (Path::Sweep, 3),
            // In flight, sent for nothing.
            (Path::Cdc, 4),
            (Path::Sweep, 4),
        ];
        for (path, event) in records {
            census.add(path, EventId(event));
        }
        assert_eq!((census.by_sweep(), census.doubled()), (4, 2));
    }
}
