//! Runs the questions that only an operator asks, which cross what `database` keeps per noun.
//!
//! Promise: every wait is bounded; every statement reads, none writes.

use std::time::Duration;

use database::{Client, Error, pool::STATEMENT_TIMEOUT};
use tokio_postgres::{
    Row,
    types::{FromSql, ToSql},
};

/// How long this side waits: longer than the server's own limit, which gives the better answer.
const LIMIT: Duration = STATEMENT_TIMEOUT.saturating_add(Duration::from_secs(5));

/// All rows.
///
/// # Errors
/// See [`Error::class`].
pub(crate) async fn all(
    client: &Client,
    doing: &'static str,
    sql: &str,
    params: &[&(dyn ToSql + Sync)],
) -> Result<Vec<Row>, Error> {
    let work = async {
        let statement = client.prepare_cached(sql).await?;
        client.query(&statement, params).await
    };
    match tokio::time::timeout(LIMIT, work).await {
        Ok(rows) => rows.map_err(|source| Error::Sql { doing, source }),
        Err(_) => Err(Error::Silent {
            doing,
            limit: LIMIT,
        }),
    }
}

/// The first row, if there is one.
///
/// # Errors
/// See [`Error::class`].
pub(crate) async fn first(
    client: &Client,
    doing: &'static str,
    sql: &str,
    params: &[&(dyn ToSql + Sync)],
) -> Result<Option<Row>, Error> {
    Ok(all(client, doing, sql, params).await?.into_iter().next())
}

/// A column by its place.
///
/// # Errors
/// When the column has another type.
pub(crate) fn column<'a, T: FromSql<'a>>(row: &'a Row, index: usize) -> Result<T, Error> {
    row.try_get(index).map_err(|source| Error::Sql {
        doing: "read a column",
        source,
    })
}
