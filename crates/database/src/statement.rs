//! Runs statements: prepared once per connection, with a bound on the wait, under a name that
//! errors carry.

use std::time::Duration;

use deadpool_postgres::{GenericClient, Transaction};
use tokio_postgres::{Row, types::FromSql, types::ToSql};

use crate::{Client, Error, pool::STATEMENT_TIMEOUT};

/// How long this side waits for a statement. Longer than the server's own limit, which gives the
/// better answer.
pub(crate) const LIMIT: Duration = STATEMENT_TIMEOUT.saturating_add(Duration::from_secs(5));

/// The parameters of a statement.
pub(crate) type Params<'a> = &'a [&'a (dyn ToSql + Sync)];

/// All rows.
pub(crate) async fn all<C: GenericClient>(
    client: &C,
    doing: &'static str,
    sql: &str,
    params: Params<'_>,
) -> Result<Vec<Row>, Error> {
    bounded(doing, LIMIT, async {
        let statement = client.prepare_cached(sql).await?;
        client.query(&statement, params).await
    })
    .await
}

/// The one row, if there is one.
pub(crate) async fn optional<C: GenericClient>(
    client: &C,
    doing: &'static str,
    sql: &str,
    params: Params<'_>,
) -> Result<Option<Row>, Error> {
    bounded(doing, LIMIT, async {
        let statement = client.prepare_cached(sql).await?;
        client.query_opt(&statement, params).await
    })
    .await
}

/// The one row that there always is.
pub(crate) async fn one<C: GenericClient>(
    client: &C,
    doing: &'static str,
    sql: &str,
    params: Params<'_>,
) -> Result<Row, Error> {
    bounded(doing, LIMIT, async {
        let statement = client.prepare_cached(sql).await?;
        client.query_one(&statement, params).await
    })
    .await
}

/// How many rows were changed.
pub(crate) async fn execute<C: GenericClient>(
    client: &C,
    doing: &'static str,
    sql: &str,
    params: Params<'_>,
) -> Result<u64, Error> {
    bounded(doing, LIMIT, async {
        let statement = client.prepare_cached(sql).await?;
        client.execute(&statement, params).await
    })
    .await
}

/// Opens a transaction; dropping it rolls back.
pub(crate) async fn begin(client: &mut Client) -> Result<Transaction<'_>, Error> {
    bounded("begin a transaction", LIMIT, client.transaction()).await
}

/// Commits. After an error the outcome is unknown.
pub(crate) async fn commit(transaction: Transaction<'_>) -> Result<(), Error> {
    bounded("commit", LIMIT, transaction.commit()).await
}

/// Waits no longer than `limit`.
pub(crate) async fn bounded<T>(
    doing: &'static str,
    limit: Duration,
    work: impl Future<Output = Result<T, tokio_postgres::Error>>,
) -> Result<T, Error> {
    match tokio::time::timeout(limit, work).await {
        Ok(result) => result.map_err(|source| Error::Sql { doing, source }),
        Err(_) => Err(Error::Silent { doing, limit }),
    }
}

/// A column by its place.
pub(crate) fn column<'a, T: FromSql<'a>>(row: &'a Row, index: usize) -> Result<T, Error> {
    row.try_get(index).map_err(|source| Error::Sql {
        doing: "read a column",
        source,
    })
}
