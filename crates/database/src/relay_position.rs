//! How far the relay has confirmed its slot: a note beside the slot, by which a slot that was lost
//! or made anew is noticed. Never the source of a confirmation.

use tokio_postgres::types::PgLsn;

use crate::{
    Client, Error,
    statement::{self, column},
};

/// A confirmed position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Position {
    /// The replication slot.
    pub slot: String,
    /// `systemid` as IDENTIFY_SYSTEM answers it.
    pub system_id: String,
    /// Postgres's timeline id.
    pub pg_timeline: i64,
    /// The LSN confirmed to the server.
    pub confirmed_lsn: u64,
}

/// The position noted for a slot.
///
/// # Errors
/// See [`Error::class`].
pub async fn get(client: &Client, slot: &str) -> Result<Option<Position>, Error> {
    const SQL: &str = "select slot, system_id, pg_timeline, confirmed_lsn from tideline.relay_position where slot = $1";
    let Some(row) = statement::optional(client, "read the relay position", SQL, &[&slot]).await?
    else {
        return Ok(None);
    };
    Ok(Some(Position {
        slot: column(&row, 0)?,
        system_id: column(&row, 1)?,
        pg_timeline: column(&row, 2)?,
        confirmed_lsn: column::<PgLsn>(&row, 3)?.into(),
    }))
}

/// Notes a position, in place of the earlier one of the slot.
///
/// # Errors
/// See [`Error::class`].
pub async fn set(client: &Client, position: &Position) -> Result<(), Error> {
    const SQL: &str = "insert into tideline.relay_position (slot, system_id, pg_timeline, confirmed_lsn)
        values ($1, $2, $3, $4)
        on conflict (slot) do update set system_id = excluded.system_id, pg_timeline = excluded.pg_timeline,
            confirmed_lsn = excluded.confirmed_lsn, updated_at = clock_timestamp()";
    let lsn = PgLsn::from(position.confirmed_lsn);
    statement::execute(
        client,
        "note the relay position",
        SQL,
        &[
            &position.slot,
            &position.system_id,
            &position.pg_timeline,
            &lsn,
        ],
    )
    .await
    .map(drop)
}
