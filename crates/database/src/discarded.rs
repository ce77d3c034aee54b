//! Events that will never pass a stage, with the reason.

use deadpool_postgres::Transaction;
use events::{EventId, Micros, Stage};

use crate::{
    Client, Error,
    statement::{self, column},
};

/// That an event was given up in one stage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Discarded {
    /// The stage that it will not pass.
    pub stage: Stage,
    /// Why: `too_old`, `no_post`.
    pub reason: String,
    /// Since when.
    pub discarded_us: Micros,
}

/// The discards of an event, at most one per stage.
///
/// # Errors
/// See [`Error::class`].
pub async fn of(client: &Client, event: EventId) -> Result<Vec<Discarded>, Error> {
    const SQL: &str = "select stage, reason, tideline.micros(discarded_at) from tideline.discarded
        where event_id = $1 order by stage desc";
    let rows = statement::all(client, "read discards", SQL, &[&event.0]).await?;
    rows.iter()
        .map(|row| {
            Ok(Discarded {
                stage: Stage::from_name(column(row, 0)?).ok_or(Error::Value {
                    what: "discarded.stage",
                })?,
                reason: column(row, 1)?,
                discarded_us: Micros(column(row, 2)?),
            })
        })
        .collect()
}

/// Gives events up, in the transaction that holds their claim. The first reason stays.
pub(crate) async fn note(
    transaction: &Transaction<'_>,
    stage: Stage,
    discards: &[(EventId, &str)],
) -> Result<(), Error> {
    const SQL: &str = "insert into tideline.discarded (stage, event_id, reason)
        select $1, id, reason from unnest($2::bigint[], $3::text[]) as given (id, reason)
        on conflict (stage, event_id) do nothing";
    if discards.is_empty() {
        return Ok(());
    }
    let (ids, reasons): (Vec<i64>, Vec<&str>) =
        discards.iter().map(|(id, reason)| (id.0, *reason)).unzip();
    let params: statement::Params<'_> = &[&stage.as_str(), &ids, &reasons];
    statement::execute(transaction, "note discards", SQL, params)
        .await
        .map(drop)
}
