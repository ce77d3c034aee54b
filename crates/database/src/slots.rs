//! The replication slot and the publication, as SQL sees them.
//!
//! Owns looking, creating, moving and dropping. Whether a missing or different one is a reason to
//! stop is for the relay to say.

use tokio_postgres::types::PgLsn;

use crate::{
    Client, Error,
    statement::{self, column},
};

/// A publication. `exists` false leaves the rest at false and empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Publication {
    /// Whether there is one of this name.
    pub exists: bool,
    /// Inserts are published.
    pub insert: bool,
    /// Updates, deletes or truncates are published too.
    pub other_changes: bool,
    /// Rows appear as those of the partitioned root.
    pub via_root: bool,
    /// Its tables, `schema.table`, sorted.
    pub tables: Vec<String>,
    /// Some table is published through a row filter or with a column list.
    pub row_filter: bool,
}

/// A replication slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slot {
    /// A walsender holds it.
    pub active: bool,
    /// That walsender's process.
    pub active_pid: Option<i32>,
    /// Output plugin; none for a physical slot.
    pub plugin: Option<String>,
    /// Its database; none for a physical slot.
    pub database: Option<String>,
    /// The LSN that the relay has confirmed.
    pub confirmed_flush_lsn: Option<u64>,
    /// The oldest WAL that it pins; none when the slot was invalidated.
    pub restart_lsn: Option<u64>,
    /// `reserved`, `extended`, `unreserved`, `lost`.
    pub wal_status: Option<String>,
    /// Bytes of WAL between `restart_lsn` and now.
    pub retained_bytes: Option<i64>,
}

/// The publication of this name.
///
/// # Errors
/// See [`Error::class`].
pub async fn publication(client: &Client, name: &str) -> Result<Publication, Error> {
    // Row filters came with version 15: to_jsonb() reads the column where there is one.
    const SQL: &str = "select p.pubinsert, p.pubupdate or p.pubdelete or p.pubtruncate, p.pubviaroot,
            coalesce((select array_agg(t.schemaname || '.' || t.tablename order by 1)
                      from pg_publication_tables t where t.pubname = p.pubname), '{}'),
            exists (select from pg_publication_rel r
                    where r.prpubid = p.oid
                      and (to_jsonb(r) ->> 'prqual' is not null or to_jsonb(r) ->> 'prattrs' is not null))
        from pg_publication p where p.pubname = $1";
    let Some(row) = statement::optional(client, "read the publication", SQL, &[&name]).await?
    else {
        return Ok(Publication::default());
    };
    Ok(Publication {
        exists: true,
        insert: column(&row, 0)?,
        other_changes: column(&row, 1)?,
        via_root: column(&row, 2)?,
        tables: column(&row, 3)?,
        row_filter: column(&row, 4)?,
    })
}

/// The name of the database, by which a slot is of it or not; also a part of `ce_source`.
///
/// # Errors
/// See [`Error::class`].
pub async fn database(client: &Client) -> Result<String, Error> {
    const SQL: &str = "select current_database()::text";
    let row = statement::one(client, "read the name of the database", SQL, &[]).await?;
    column(&row, 0)
}

/// The slot of this name.
///
/// # Errors
/// See [`Error::class`].
pub async fn get(client: &Client, name: &str) -> Result<Option<Slot>, Error> {
    const SQL: &str =
        "select active, active_pid, plugin::text, database::text, confirmed_flush_lsn, restart_lsn,
            wal_status, pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn)::bigint
        from pg_replication_slots where slot_name = $1";
    let Some(row) = statement::optional(client, "read the replication slot", SQL, &[&name]).await?
    else {
        return Ok(None);
    };
    Ok(Some(Slot {
        active: column(&row, 0)?,
        active_pid: column(&row, 1)?,
        plugin: column(&row, 2)?,
        database: column(&row, 3)?,
        confirmed_flush_lsn: column::<Option<PgLsn>>(&row, 4)?.map(u64::from),
        restart_lsn: column::<Option<PgLsn>>(&row, 5)?.map(u64::from),
        wal_status: column(&row, 6)?,
        retained_bytes: column(&row, 7)?,
    }))
}

/// Creates a logical slot for `pgoutput` in this database, with failover where the server has it
/// (17), and answers the LSN from which it decodes.
///
/// # Errors
/// See [`Error::class`]; a slot of this name that is there already is among them (42710).
pub async fn create(client: &Client, name: &str) -> Result<u64, Error> {
    let failover: bool = {
        const SQL: &str = "select current_setting('server_version_num')::int >= 170000";
        column(
            &statement::one(client, "read the server version", SQL, &[]).await?,
            0,
        )?
    };
    let sql = create_sql(failover);
    let row = statement::one(client, "create the replication slot", sql, &[&name]).await?;
    Ok(column::<PgLsn>(&row, 0)?.into())
}

/// Drops a slot.
///
/// # Errors
/// See [`Error::class`]; a slot that a walsender holds (55006) or that is not there (42704) is
/// among them.
pub async fn drop_slot(client: &Client, name: &str) -> Result<(), Error> {
    const SQL: &str = "select pg_drop_replication_slot($1::text)";
    statement::one(client, "drop the replication slot", SQL, &[&name])
        .await
        .map(drop)
}

/// Moves a slot to the end of the flushed WAL, past every commit that was answered, without sending
/// any of them, and answers where it stands now.
///
/// # Errors
/// As [`drop_slot`].
pub async fn advance(client: &Client, name: &str) -> Result<u64, Error> {
    const SQL: &str =
        "select end_lsn from pg_replication_slot_advance($1::text, pg_current_wal_lsn())";
    let row = statement::one(client, "advance the replication slot", SQL, &[&name]).await?;
    Ok(column::<PgLsn>(&row, 0)?.into())
}

/// Writes a mark into the WAL and answers its LSN: a slot that has confirmed it has passed
/// everything that was committed before. It is also the WAL that an idle server needs to pass it.
///
/// # Errors
/// See [`Error::class`].
pub async fn mark(client: &Client) -> Result<u64, Error> {
    const SQL: &str = "select pg_logical_emit_message(false, 'tideline', 'look')";
    let row = statement::one(client, "mark the wal", SQL, &[]).await?;
    Ok(column::<PgLsn>(&row, 0)?.into())
}

/// The statement that creates a slot and answers its LSN.
pub(crate) const fn create_sql(failover: bool) -> &'static str {
    if failover {
        "select lsn from pg_create_logical_replication_slot($1::text, 'pgoutput', false, false, true)"
    } else {
        "select lsn from pg_create_logical_replication_slot($1::text, 'pgoutput')"
    }
}
