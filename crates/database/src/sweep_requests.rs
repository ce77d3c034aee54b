//! "Look now": by the relay after a slot was lost, by fan-out after offsets were lost, by people.

use events::{IdRange, Micros};

use crate::{
    Client, Error,
    statement::{self, column},
};

/// A request that no look has been taken for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Its number.
    pub request: i64,
    /// Why.
    pub reason: String,
    /// The ids in doubt; all, if none.
    pub range: Option<IdRange>,
    /// Since when.
    pub requested_us: Micros,
}

/// Asks for a look.
///
/// # Errors
/// See [`Error::class`].
pub async fn add(client: &Client, reason: &str, range: Option<IdRange>) -> Result<(), Error> {
    const SQL: &str = "insert into tideline.sweep_request (reason, low, high) values ($1, $2, $3)";
    // The table names the last id, the range the one behind it.
    let (low, last) = range.map(|range| (range.low, range.high - 1)).unzip();
    statement::execute(client, "ask for a sweep", SQL, &[&reason, &low, &last])
        .await
        .map(drop)
}

/// The open requests, oldest first.
///
/// # Errors
/// See [`Error::class`].
pub async fn pending(client: &Client) -> Result<Vec<Request>, Error> {
    const SQL: &str = "select request, reason, low, high, tideline.micros(requested_at)
        from tideline.sweep_request where honoured_at is null order by request";
    let rows = statement::all(client, "read sweep requests", SQL, &[]).await?;
    rows.iter()
        .map(|row| {
            let (low, last): (Option<i64>, Option<i64>) = (column(row, 2)?, column(row, 3)?);
            Ok(Request {
                request: column(row, 0)?,
                reason: column(row, 1)?,
                range: low.zip(last).map(|(low, last)| IdRange {
                    low,
                    high: last.saturating_add(1),
                }),
                requested_us: Micros(column(row, 4)?),
            })
        })
        .collect()
}

/// Closes requests of the list that [`pending`] answered before the look. By number, not "up to":
/// a request with a lower number may have been made since.
///
/// # Errors
/// See [`Error::class`].
pub async fn honour(client: &Client, requests: &[i64]) -> Result<(), Error> {
    const SQL: &str = "update tideline.sweep_request set honoured_at = clock_timestamp()
        where request = any($1) and honoured_at is null";
    statement::execute(client, "close sweep requests", SQL, &[&requests])
        .await
        .map(drop)
}
