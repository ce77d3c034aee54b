//! What the sweep has sent again, and how often.

use deadpool_postgres::Transaction;
use events::{EventId, Micros, Stage};

use crate::{
    Client, Error,
    statement::{self, column},
};

/// Re-deliveries of one event in one stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Redelivery {
    /// The stage that it had not passed.
    pub stage: Stage,
    /// How often it was sent again.
    pub attempts: u32,
    /// When it was last.
    pub last_us: Micros,
}

/// The re-deliveries of an event, one per stage.
///
/// # Errors
/// See [`Error::class`].
pub async fn of(client: &Client, event: EventId) -> Result<Vec<Redelivery>, Error> {
    const SQL: &str = "select stage, attempts, tideline.micros(last_at) from tideline.redelivery
        where event_id = $1 order by stage desc";
    let rows = statement::all(client, "read re-deliveries", SQL, &[&event.0]).await?;
    rows.iter()
        .map(|row| {
            Ok(Redelivery {
                stage: Stage::from_name(column(row, 0)?).ok_or(Error::Value {
                    what: "redelivery.stage",
                })?,
                attempts: column::<i32>(row, 1)?.unsigned_abs(),
                last_us: Micros(column(row, 2)?),
            })
        })
        .collect()
}

/// Notes that these ids were sent once more, in the transaction that holds their claim.
pub(crate) async fn note(
    transaction: &Transaction<'_>,
    stage: Stage,
    ids: &[i64],
) -> Result<(), Error> {
    const SQL: &str = "insert into tideline.redelivery as r (stage, event_id, attempts)
        select distinct $1::text, id, 1 from unnest($2::bigint[]) as id
        on conflict (stage, event_id) do update
            set attempts = r.attempts + 1, last_at = clock_timestamp()";
    let params: statement::Params<'_> = &[&stage.as_str(), &ids];
    statement::execute(transaction, "note re-deliveries", SQL, params)
        .await
        .map(drop)
}
