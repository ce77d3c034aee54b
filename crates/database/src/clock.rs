//! Postgres's clock: the one that decides about data.

use events::Micros;

use crate::{
    Client, Error,
    statement::{self, column},
};

/// The server's time now.
///
/// # Errors
/// See [`Error::class`].
pub async fn now(client: &Client) -> Result<Micros, Error> {
    const SQL: &str = "select (extract(epoch from clock_timestamp()) * 1000000)::bigint";
    let row = statement::one(client, "read the clock", SQL, &[]).await?;
    column(&row, 0).map(Micros)
}
