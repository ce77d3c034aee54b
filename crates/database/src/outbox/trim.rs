//! What is noted about events whose day is gone.

use events::EventId;

use crate::{Client, Error, delivery_ledger, outbox, statement};

/// Rows that one statement deletes.
const BATCH: i64 = 10_000;
/// Statements of one call and table.
const BATCHES: u32 = 100;

/// Deletes ledger rows, deliveries, re-deliveries, discards and noted gaps of ids below the lowest
/// that the outbox still has; open dead letters stay. Answers how many rows it deleted. A long
/// backlog takes several calls.
///
/// # Errors
/// See [`Error::class`]. What was deleted before stays deleted.
///
/// # Cancel safety
/// Safe.
pub async fn trim(client: &Client) -> Result<u64, Error> {
    const BY_EVENT: [(&str, &str); 3] = [
        (
            "trim the deliveries",
            "delete from tideline.post_delivery where event_id in
                (select event_id from tideline.post_delivery where event_id < $1 limit $2)",
        ),
        (
            "trim the re-deliveries",
            "delete from tideline.redelivery where ctid = any(array
                (select ctid from tideline.redelivery where event_id < $1 limit $2))",
        ),
        (
            "trim the discards",
            "delete from tideline.discarded where ctid = any(array
                (select ctid from tideline.discarded where event_id < $1 limit $2))",
        ),
    ];
    const GAPS: &str = "delete from tideline.outbox_void where upper(ids) <= $1";
    // An empty outbox tells nothing about where it will go on.
    let Some(span) = outbox::span(client).await? else {
        return Ok(0);
    };
    let mut deleted = delivery_ledger::trim_below(client, EventId(span.low)).await?;
    deleted += statement::execute(client, "trim the gaps", GAPS, &[&span.low]).await?;
    for (doing, sql) in BY_EVENT {
        for _ in 0..BATCHES {
            let rows = statement::execute(client, doing, sql, &[&span.low, &BATCH]).await?;
            deleted += rows;
            if rows < BATCH.unsigned_abs() {
                break;
            }
        }
    }
    Ok(deleted)
}
