//! Publication and slot, as they must be before a stream may start.
//!
//! Only looks; what is mended is in [`repair`](super::repair). Reads by simple query on the
//! replication connection. Names were checked to need no quoting.

use pgoutput::Lsn;
use replication::{Connection, ReplicationError, Row};

use crate::error::ConnectError;

/// Refuses a server in recovery (C32).
pub(super) async fn refuse_recovery(connection: &mut Connection) -> Result<(), ConnectError> {
    let row = one(connection, "SELECT pg_is_in_recovery()::text AS recovery").await?;
    if text(&row, "recovery")? == "true" {
        Err(ConnectError::Recovery)
    } else {
        Ok(())
    }
}

/// Compares the publication with what the relay needs (C34, C43).
pub(super) async fn check_publication(
    connection: &mut Connection,
    name: &str,
) -> Result<(), ConnectError> {
    // Row filters came with version 15: to_jsonb() reads the column where there is one.
    let sql = format!(
        "SELECT p.pubinsert::text AS inserts, p.pubviaroot::text AS via_root, \
            (EXISTS (SELECT FROM pg_publication_tables t WHERE t.pubname = p.pubname \
                AND t.schemaname = 'tideline' AND t.tablename = 'outbox'))::text AS listed, \
            (EXISTS (SELECT FROM pg_publication_rel r WHERE r.prpubid = p.oid \
                AND to_jsonb(r) ->> 'prqual' IS NOT NULL))::text AS filtered \
         FROM pg_publication p WHERE p.pubname = '{name}'"
    );
    let fault = |fault, fix: String| ConnectError::Publication {
        publication: name.to_owned(),
        fault,
        fix,
    };
    let Some(row) = connection.query(&sql).await?.into_iter().next() else {
        return Err(fault(
            "does not exist",
            format!(
                "create publication {name} for table tideline.outbox \
                 with (publish = 'insert', publish_via_partition_root = true)"
            ),
        ));
    };
    let holds = |column| text(&row, column).map(|value| value == "true");
    // Before the list, which shows the leaves instead of the root without it.
    if !holds("via_root")? {
        let fix = format!("alter publication {name} set (publish_via_partition_root = true)");
        return Err(fault("publishes partitions instead of the root", fix));
    }
    if !holds("listed")? {
        return Err(fault(
            "lacks the table tideline.outbox",
            format!("alter publication {name} add table tideline.outbox"),
        ));
    }
    if !holds("inserts")? {
        return Err(fault(
            "does not publish inserts",
            format!("alter publication {name} set (publish = 'insert')"),
        ));
    }
    if holds("filtered")? {
        return Err(fault(
            "filters rows",
            format!("alter publication {name} set table tideline.outbox"),
        ));
    }
    Ok(())
}

/// What is in the slot's place.
#[derive(Debug)]
pub(super) enum Found {
    /// Nothing.
    Nothing,
    /// A slot whose log the server gave up, and how it says so.
    Lost(String),
    /// A slot to stream from, with its confirmed position.
    Usable(Lsn),
}

/// Looks at the slot.
///
/// # Errors
/// [`ConnectError::SlotBusy`] when anybody holds it, be it lost or in the making;
/// [`ConnectError::SlotForeign`] when it is not one of ours.
pub(super) async fn look(connection: &mut Connection, slot: &str) -> Result<Found, ConnectError> {
    let sql = format!(
        "SELECT plugin::text, database::text, (database = current_database())::text AS here, active_pid::text, \
            restart_lsn::text, confirmed_flush_lsn::text, wal_status \
         FROM pg_replication_slots WHERE slot_name = '{slot}'"
    );
    match connection.query(&sql).await?.into_iter().next() {
        None => Ok(Found::Nothing),
        Some(row) => judge(slot, connection, &row),
    }
}

/// Longest `wal_sender_timeout` that the relay leaves as it is, milliseconds.
///
/// A server that decodes a large transaction of others looks for our messages only when half of the
/// timeout has passed (`WalSndUpdateProgress` in walsender.c), so a relay that counts unanswered
/// messages has to wait for longer than that half. With the default of a minute it could not tell
/// such a server from a dead one within half a minute.
const LONGEST_TIMEOUT_MS: u64 = 24_000;

/// The server's `wal_sender_timeout` on this connection, microseconds. One that is off, or longer
/// than [`LONGEST_TIMEOUT_MS`], is set to that for this connection.
pub(super) async fn wal_sender_timeout_us(
    connection: &mut Connection,
) -> Result<u64, ConnectError> {
    let sql = "SELECT setting FROM pg_settings WHERE name = 'wal_sender_timeout'";
    let row = one(connection, sql).await?;
    let millis: u64 = text(&row, "setting")?
        .parse()
        .map_err(|_| ReplicationError::Answer { column: "setting" })?;
    if (1..=LONGEST_TIMEOUT_MS).contains(&millis) {
        return Ok(millis * 1_000);
    }
    let sql = format!("SET wal_sender_timeout = {LONGEST_TIMEOUT_MS}");
    let _no_rows = connection.query(&sql).await?;
    Ok(LONGEST_TIMEOUT_MS * 1_000)
}

fn judge(slot: &str, connection: &Connection, row: &Row) -> Result<Found, ConnectError> {
    let value = |column| row.get(column).unwrap_or_default().to_owned();
    // While another relay makes the slot, its plugin and positions are not there yet.
    let in_the_making = row.get("active_pid").is_some() && row.get("plugin").is_none();
    let ours = row.get("plugin") == Some("pgoutput") && row.get("here") == Some("true");
    if !ours && !in_the_making {
        let (plugin, database) = (value("plugin"), value("database"));
        return Err(ConnectError::SlotForeign {
            slot: slot.to_owned(),
            plugin,
            database,
        });
    }
    if let Some(pid) = row.get("active_pid") {
        return Err(ConnectError::SlotBusy {
            slot: slot.to_owned(),
            pid: pid.to_owned(),
        });
    }
    if row.get("wal_status") == Some("lost") || row.get("restart_lsn").is_none() {
        let version = connection.parameter("server_version").unwrap_or_default();
        let status = value("wal_status");
        return Ok(Found::Lost(format!(
            "wal_status {status} on version {version}"
        )));
    }
    let column = "confirmed_flush_lsn";
    let confirmed = text(row, column)?
        .parse()
        .map_err(|_| ReplicationError::Answer { column })?;
    Ok(Found::Usable(confirmed))
}

async fn one(connection: &mut Connection, sql: &str) -> Result<Row, ConnectError> {
    let row = connection.query(sql).await?.into_iter().next();
    row.ok_or_else(|| ReplicationError::Answer { column: "row" }.into())
}

fn text<'a>(row: &'a Row, column: &'static str) -> Result<&'a str, ConnectError> {
    row.get(column)
        .ok_or_else(|| ReplicationError::Answer { column }.into())
}
