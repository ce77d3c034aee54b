//! Epochs: the lives of this database's outbox ids.

use crate::{
    Client, Error,
    statement::{self, column},
};

/// The newest epoch. `ce_source` carries its number, and the ledger refuses entries of another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Epoch {
    /// Its number, from 1.
    pub epoch: i64,
    /// `systemid` as IDENTIFY_SYSTEM answers it.
    pub system_id: String,
    /// Postgres's timeline id when the epoch began.
    pub pg_timeline: i64,
}

/// The newest epoch.
///
/// # Errors
/// [`Error::NoEpoch`] when the migrations have not run to the end.
pub async fn current(client: &Client) -> Result<Epoch, Error> {
    const SQL: &str =
        "select epoch, system_id, pg_timeline from tideline.epoch order by epoch desc limit 1";
    let row = statement::optional(client, "read the epoch", SQL, &[])
        .await?
        .ok_or(Error::NoEpoch)?;
    Ok(Epoch {
        epoch: column(&row, 0)?,
        system_id: column(&row, 1)?,
        pg_timeline: column(&row, 2)?,
    })
}
