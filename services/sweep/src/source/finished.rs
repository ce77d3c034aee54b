//! What is finished although it is not in the ledger: open dead letters and discards.
//!
//! Left out of looks, so that a round does not ask for the same finished ids again and again. The
//! claim decides by its own reading under the lock, so this may be behind.

use std::time::Duration;

use database::{Client, Error};
use events::{
    Stage,
    id_ranges::{IdRange, IdRanges},
};

/// How long this side waits; the server gives up earlier.
const ANSWERED_WITHIN: Duration = Duration::from_secs(15);

/// Ids of a range that are finished without a ledger entry of the stage.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Finished {
    /// A dead letter of it is open.
    pub(crate) dead_lettered: IdRanges,
    /// Given up with a reason.
    pub(crate) discarded: IdRanges,
}

/// Reads them, in one snapshot. What never passed an earlier stage never passes this one.
pub(crate) async fn of(client: &Client, stage: Stage, within: IdRange) -> Result<Finished, Error> {
    const DOING: &str = "read what is finished without an entry";
    const SQL: &str = "select
        (select coalesce(range_agg(int8range(event_id, event_id, '[]')), '{}')::text
         from tideline.dead_letters
         where stage = any($1) and state = 'open' and event_id >= $2 and event_id < $3),
        (select coalesce(range_agg(int8range(event_id, event_id, '[]')), '{}')::text
         from tideline.discarded where stage = any($1) and event_id >= $2 and event_id < $3)";
    let stages: &[&str] = match stage {
        Stage::Published => &["published"],
        Stage::Delivered => &["published", "delivered"],
    };
    let answer = async {
        let statement = client.prepare_cached(SQL).await?;
        client
            .query_one(&statement, &[&stages, &within.low, &within.high])
            .await
    };
    let row = tokio::time::timeout(ANSWERED_WITHIN, answer)
        .await
        .map_err(|_| Error::Silent {
            doing: DOING,
            limit: ANSWERED_WITHIN,
        })?
        .map_err(|source| Error::Sql {
            doing: DOING,
            source,
        })?;
    let ranges = |index: usize| -> Result<IdRanges, Error> {
        let text: &str = row.try_get(index).map_err(|source| Error::Sql {
            doing: DOING,
            source,
        })?;
        text.parse().map_err(|_| Error::Value {
            what: "an int8multirange",
        })
    };
    Ok(Finished {
        dead_lettered: ranges(0)?,
        discarded: ranges(1)?,
    })
}
