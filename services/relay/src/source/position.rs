//! `relay_position` and `epoch`: notes beside the slot, by which a change is noticed, and what
//! follows from one: a new epoch, a request to the sweep.
//!
//! Never the source of a position to start from (C14): the stream starts at 0/0, where the slot
//! itself stands.

use database::relay_position::{self, Position};
use database::{
    Pool,
    epoch::{self, Begin, Begun},
};
use events::envelope;
use pgoutput::Lsn;
use replication::SystemIdentity;
use tracing::{error, info};

use super::{Happened, Request, Source};
use crate::core::{Attempt, Epoch};
use crate::error::ConnectError;

/// Reads and writes the notes of one slot.
#[derive(Clone, Debug)]
pub struct Positions {
    pool: Pool,
    slot: String,
}

impl Positions {
    /// The notes of this slot.
    pub fn new(pool: Pool, slot: &str) -> Self {
        Self {
            pool,
            slot: slot.to_owned(),
        }
    }

    /// The note, if anything was ever confirmed through the slot.
    ///
    /// # Errors
    /// When Postgres cannot be asked.
    pub async fn known(&self) -> Result<Option<Position>, database::Error> {
        relay_position::get(&self.pool.get().await?, &self.slot).await
    }

    /// Notes what was confirmed.
    ///
    /// # Errors
    /// When Postgres cannot be asked.
    pub async fn save(
        &self,
        system: &SystemIdentity,
        confirmed: Lsn,
    ) -> Result<(), database::Error> {
        let position = Position {
            slot: self.slot.clone(),
            system_id: system.system_id.to_string(),
            pg_timeline: i64::from(system.timeline),
            confirmed_lsn: confirmed.as_u64(),
        };
        relay_position::set(&self.pool.get().await?, &position).await
    }
}

impl Source {
    /// The epoch of this server; begins one when it is not the server, or not the timeline, of the
    /// newest epoch (C31).
    pub(super) async fn epoch(
        &self,
        system: &SystemIdentity,
        happened: &mut Happened,
    ) -> Result<Epoch, ConnectError> {
        let mut client = self.pool.get().await?;
        let current = epoch::current(&client).await?;
        let replication = (system.system_id.to_string(), i64::from(system.timeline));
        if (&current.system_id, current.pg_timeline) == (&replication.0, replication.1) {
            return Ok(self.naming(current.epoch));
        }
        happened.other_server = true;
        let here = epoch::here(&client).await?;
        if (&here.system_id, here.pg_timeline) != (&replication.0, replication.1) {
            return Err(ConnectError::TwoServers {
                replication: format!("{}/{}", replication.0, replication.1),
                sql: format!("{}/{}", here.system_id, here.pg_timeline),
            });
        }
        match epoch::begin(&mut client, &here).await? {
            Begin::Begun(Begun { epoch, doubted }) => {
                error!(
                    epoch,
                    doubted,
                    system_id = here.system_id,
                    pg_timeline = here.pg_timeline,
                    "server is not the one of the last epoch: a new one began, events around its start are delivered again"
                );
                self.ask(Request::NewEpoch, happened).await?;
                Ok(self.naming(epoch))
            }
            Begin::AlreadyBegun(epoch) => {
                info!(epoch, "a new epoch was begun by another process");
                Ok(self.naming(epoch))
            }
        }
    }

    /// The epoch of this number, with the `ce_source` of its records.
    pub fn naming(&self, number: i64) -> Epoch {
        Epoch {
            number,
            source: envelope::source(&self.config.database, number),
        }
    }

    /// Compares the slot with the note and with what this process has confirmed. A slot that is
    /// ahead of both may have been moved past rows by somebody (C15), or by idle advances, which
    /// are not noted: the sweep looks, and alarms only if it finds rows. The first note is made
    /// here, so that from now on a missing slot is a lost one.
    pub(super) async fn compare(
        &self,
        system: &SystemIdentity,
        confirmed: Lsn,
        known: Option<&Position>,
        attempt: Attempt,
        happened: &mut Happened,
    ) -> Result<(), ConnectError> {
        let Some(known) = known else {
            return Ok(self.positions.save(system, confirmed).await?);
        };
        let here = (system.system_id.to_string(), i64::from(system.timeline));
        if (&known.system_id, known.pg_timeline) != (&here.0, here.1) {
            // Positions of two servers say nothing about each other.
            return Ok(self.positions.save(system, confirmed).await?);
        }
        let noted = Lsn::new(known.confirmed_lsn);
        let expected = noted.max(attempt.confirmed);
        if noted > confirmed {
            info!(%noted, %confirmed, bytes = noted.bytes_since(confirmed), "slot is behind its note: records will repeat");
        } else if confirmed > expected && !happened.gap_mended {
            info!(%expected, %confirmed, bytes = confirmed.bytes_since(expected), "slot is ahead of what is known: the sweep is asked to look");
            self.ask(Request::SlotAhead, happened).await?;
            self.positions.save(system, confirmed).await?;
        }
        Ok(())
    }
}
