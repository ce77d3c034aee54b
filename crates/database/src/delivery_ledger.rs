//! The delivery ledger: which outbox ids have passed which stage.
//!
//! Owns entering ids and counting what is missing. An entry that is lost means a later, harmless
//! re-delivery, so no LSN and no offset ever waits for one.

use deadpool_postgres::GenericClient;
use events::{EventId, Stage};

use crate::{
    Client, Error,
    statement::{self, column},
};

/// Enters ids, in any order, with repeats or without: one row. No ids, no row.
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

/// Whether an id has passed a stage.
///
/// # Errors
/// See [`Error::class`].
pub async fn contains(client: &Client, stage: Stage, id: EventId) -> Result<bool, Error> {
    const SQL: &str = "select exists (select from tideline.delivery_ledger where ids @> $2::bigint and stage = $1)";
    let row = statement::one(
        client,
        "look into the ledger",
        SQL,
        &[&stage.as_str(), &id.0],
    )
    .await?;
    column(&row, 0)
}

/// How many outbox rows that the stage accounts for are not in it. Dead letters count as missing.
///
/// # Errors
/// See [`Error::class`].
pub async fn missing_count(client: &Client, stage: Stage) -> Result<i64, Error> {
    const SQL: &str = "with passed as (
            select coalesce(range_agg(r), '{}') as ids
            from tideline.delivery_ledger l, unnest(l.ids) as r where l.stage = $1
        )
        select count(*) from tideline.outbox o, passed where o.type = any($2) and not passed.ids @> o.id";
    let types: Vec<&str> = events::registry::entries()
        .iter()
        .filter(|entry| entry.stages.contains(&stage))
        .map(|entry| entry.name)
        .collect();
    let row = statement::one(
        client,
        "count what the ledger lacks",
        SQL,
        &[&stage.as_str(), &types],
    )
    .await?;
    column(&row, 0)
}

/// Enters ids through a connection or inside a transaction.
pub(crate) async fn enter<C: GenericClient>(
    client: &C,
    stage: Stage,
    ids: &[EventId],
    epoch: i64,
) -> Result<(), Error> {
    const SQL: &str = "insert into tideline.delivery_ledger (stage, ids, epoch)
        select $1, $2::text::int8multirange, $3 where $3 = (select max(epoch) from tideline.epoch)";
    const CURRENT: &str = "select max(epoch) from tideline.epoch";
    if ids.is_empty() {
        return Ok(());
    }
    let ranges = multirange(ids);
    if statement::execute(
        client,
        "enter ids in the ledger",
        SQL,
        &[&stage.as_str(), &ranges, &epoch],
    )
    .await?
        == 1
    {
        return Ok(());
    }
    let row = statement::one(client, "read the epoch", CURRENT, &[]).await?;
    let current = column::<Option<i64>>(&row, 0)?.ok_or(Error::NoEpoch)?;
    Err(Error::OtherEpoch {
        given: epoch,
        current,
    })
}

/// The text form of the multirange of these ids; Postgres makes it canonical.
fn multirange(ids: &[EventId]) -> String {
    let mut sorted: Vec<i64> = ids.iter().map(|id| id.0).collect();
    sorted.sort_unstable();
    sorted.dedup();
    let mut ranges = Vec::new();
    for run in sorted.chunk_by(|low, high| low.checked_add(1) == Some(*high)) {
        if let (Some(first), Some(last)) = (run.first(), run.last()) {
            ranges.push(format!("[{first},{last}]"));
        }
    }
    format!("{{{}}}", ranges.join(","))
}

#[cfg(test)]
mod tests {
    use events::EventId;

    use super::multirange;

    #[test]
    fn runs_become_ranges() {
        let text = |ids: &[i64]| multirange(&ids.iter().copied().map(EventId).collect::<Vec<_>>());
        assert_eq!(text(&[]), "{}");
        assert_eq!(text(&[7]), "{[7,7]}");
        assert_eq!(text(&[3, 1, 2, 2, 9, 8, 5]), "{[1,3],[5,5],[8,9]}");
    }
}
