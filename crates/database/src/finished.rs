//! What is finished in a stage although it is not in the ledger: open dead letters and discards.

use events::{IdRange, IdRanges, Stage};

use crate::{
    Client, Error, delivery_ledger, stages,
    statement::{self, column},
};

/// Ids of a range that are finished without a ledger entry of the stage.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Finished {
    /// A dead letter of it is open.
    pub dead_lettered: IdRanges,
    /// Given up with a reason.
    pub discarded: IdRanges,
}

/// Reads them, in one snapshot. What never passed an earlier stage never passes this one.
///
/// # Errors
/// See [`Error::class`].
pub async fn of(client: &Client, stage: Stage, within: IdRange) -> Result<Finished, Error> {
    const SQL: &str = "select
        (select coalesce(range_agg(int8range(event_id, event_id, '[]')), '{}')::text
         from tideline.dead_letters
         where stage = any($1) and state = 'open' and event_id >= $2 and event_id < $3),
        (select coalesce(range_agg(int8range(event_id, event_id, '[]')), '{}')::text
         from tideline.discarded where stage = any($1) and event_id >= $2 and event_id < $3)";
    let stages = stages::finishing(stage);
    let params: statement::Params<'_> = &[&stages, &within.low, &within.high];
    let row = statement::one(
        client,
        "read what is finished without an entry",
        SQL,
        params,
    )
    .await?;
    Ok(Finished {
        dead_lettered: delivery_ledger::parse(column(&row, 0)?)?,
        discarded: delivery_ledger::parse(column(&row, 1)?)?,
    })
}
