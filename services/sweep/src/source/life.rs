//! Which life of the database this is, and where its slot stands.
//!
//! Promise: answers only for a primary whose newest epoch is its own; a new epoch is begun first
//! when a failover or a restore has made another server of it. Relay and sweep may both notice:
//! `database::epoch::begin` lets one of them do it.

use database::{Client, epoch, slots};

use crate::{
    core::{Life, SlotState, SlotView},
    error::SweepError,
    metrics::SweepMetrics,
};

/// The life this server is in; begins its epoch if it has none yet.
pub(crate) async fn here(client: &mut Client, metrics: &SweepMetrics) -> Result<Life, SweepError> {
    let server = epoch::here(client).await?;
    if server.in_recovery {
        return Err(SweepError::Recovery);
    }
    let current = epoch::current(client).await?;
    if current.system_id == server.system_id && current.pg_timeline == server.pg_timeline {
        return Ok(life(current));
    }
    tracing::warn!(
        epoch = current.epoch,
        was = %format_args!("{} on timeline {}", current.system_id, current.pg_timeline),
        is = %format_args!("{} on timeline {}", server.system_id, server.pg_timeline),
        "another server than the epoch's: a new epoch begins"
    );
    match epoch::begin(client, &server).await? {
        epoch::Begin::Begun(begun) => {
            metrics.epochs.inc();
            tracing::warn!(
                epoch = begun.epoch,
                doubted = begun.doubted,
                "epoch begun: ids in doubt left every stage and are delivered again"
            );
        }
        epoch::Begin::AlreadyBegun(epoch) => {
            tracing::info!(epoch, "epoch begun by another process")
        }
    }
    Ok(life(epoch::current(client).await?))
}

/// The slot as it stands. One that is not of this database and of `pgoutput` is no relay's.
pub(crate) async fn slot(
    client: &Client,
    name: &str,
    database: &str,
) -> Result<SlotView, SweepError> {
    let slot = slots::get(client, name).await?.filter(|slot| {
        slot.plugin.as_deref() == Some("pgoutput") && slot.database.as_deref() == Some(database)
    });
    let Some(slot) = slot else {
        return Ok(SlotView {
            state: SlotState::Absent,
            confirmed: None,
        });
    };
    let is_lost = slot.wal_status.as_deref() == Some("lost") || slot.restart_lsn.is_none();
    let state = match (is_lost, slot.active) {
        (true, _) => SlotState::Lost,
        (false, true) => SlotState::Active,
        (false, false) => SlotState::Inactive,
    };
    Ok(SlotView {
        state,
        confirmed: slot.confirmed_flush_lsn,
    })
}

fn life(epoch: epoch::Epoch) -> Life {
    Life {
        epoch: epoch.epoch,
        system_id: epoch.system_id,
        pg_timeline: epoch.pg_timeline,
    }
}
