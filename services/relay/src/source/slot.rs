//! Publication and slot, as they must be before a stream may start.
//!
//! Reads by simple query on the replication connection. Names were checked to need no quoting.

use database::relay_position::Position;
use pgoutput::Lsn;
use replication::{Connection, ReplicationError, Row};
use tracing::{info, warn};

use crate::error::ConnectError;
use crate::source::Source;

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

/// Checks the slot, and makes it when nothing was ever confirmed through it. Answers its
/// confirmed position.
pub(super) async fn check(
    connection: &mut Connection,
    source: &Source,
    known: Option<&Position>,
) -> Result<Lsn, ConnectError> {
    let slot = &source.slot;
    let Some(row) = look(connection, slot).await? else {
        if let Some(known) = known {
            let confirmed = Lsn::new(known.confirmed_lsn);
            return Err(ConnectError::SlotMissing {
                slot: slot.clone(),
                confirmed,
            });
        }
        create(source).await?;
        let row = look(connection, slot)
            .await?
            .ok_or(ReplicationError::Answer {
                column: "slot_name",
            })?;
        return judge(slot, connection, &row);
    };
    judge(slot, connection, &row)
}

/// The server's `wal_sender_timeout` on this connection, microseconds; 0 for none.
pub(super) async fn wal_sender_timeout_us(
    connection: &mut Connection,
) -> Result<u64, ConnectError> {
    let sql = "SELECT setting FROM pg_settings WHERE name = 'wal_sender_timeout'";
    let row = one(connection, sql).await?;
    let millis: u64 = text(&row, "setting")?
        .parse()
        .map_err(|_| ReplicationError::Answer { column: "setting" })?;
    Ok(millis.saturating_mul(1_000))
}

fn judge(slot: &str, connection: &Connection, row: &Row) -> Result<Lsn, ConnectError> {
    let value = |column| row.get(column).unwrap_or_default().to_owned();
    if row.get("wal_status") == Some("lost") || row.get("restart_lsn").is_none() {
        let version = connection.parameter("server_version").unwrap_or_default();
        let why = format!("wal_status {} on version {version}", value("wal_status"));
        return Err(ConnectError::SlotInvalidated {
            slot: slot.to_owned(),
            why,
        });
    }
    if row.get("plugin") != Some("pgoutput") || row.get("here") != Some("true") {
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
    let column = "confirmed_flush_lsn";
    text(row, column)?
        .parse()
        .map_err(|_| ReplicationError::Answer { column }.into())
}

async fn look(connection: &mut Connection, slot: &str) -> Result<Option<Row>, ConnectError> {
    let sql = format!(
        "SELECT slot_name::text, plugin::text, database::text, (database = current_database())::text AS here, \
            active_pid::text, restart_lsn::text, confirmed_flush_lsn::text, wal_status \
         FROM pg_replication_slots WHERE slot_name = '{slot}'"
    );
    Ok(connection.query(&sql).await?.into_iter().next())
}

/// Makes the slot: waits for every open transaction, for as long as a statement may take (C33).
async fn create(source: &Source) -> Result<(), ConnectError> {
    let slot = &source.slot;
    let client = source.pool.get().await?;
    warn!(slot, "slot does not exist and was never used: creating it");
    match database::slots::create(&client, slot).await {
        Ok(lsn) => {
            info!(slot, from = %Lsn::new(lsn), "slot created");
            Ok(())
        }
        // Another relay was faster.
        Err(error)
            if error
                .sql_state()
                .is_some_and(|state| state.code() == "42710") =>
        {
            Ok(())
        }
        Err(error) if error.class() == events::Class::Unsure => {
            const BLOCKERS: &str = "select coalesce(string_agg(format('process %s (%s) since %s', pid, \
                    application_name, xact_start), ', ' order by xact_start), 'transactions that ended meanwhile') \
                from pg_stat_activity where backend_xid is not null and pid <> pg_backend_pid()";
            let blockers = match source.pool.get().await?.query_one(BLOCKERS, &[]).await {
                Ok(row) => row.try_get(0).unwrap_or_default(),
                Err(_) => String::from("transactions that could not be read"),
            };
            Err(ConnectError::SlotBlocked {
                slot: slot.clone(),
                blockers,
            })
        }
        Err(error) => Err(error.into()),
    }
}

async fn one(connection: &mut Connection, sql: &str) -> Result<Row, ConnectError> {
    let row = connection.query(sql).await?.into_iter().next();
    row.ok_or_else(|| ReplicationError::Answer { column: "row" }.into())
}

fn text<'a>(row: &'a Row, column: &'static str) -> Result<&'a str, ConnectError> {
    row.get(column)
        .ok_or_else(|| ReplicationError::Answer { column }.into())
}
