//! `relay_position` and `epoch`: notes beside the slot, by which a change is noticed.
//!
//! Never the source of a position to start from (C14): the stream starts at 0/0, where the slot
//! itself stands.

use database::relay_position::{self, Position};
use database::{Pool, epoch};
use pgoutput::Lsn;
use replication::SystemIdentity;
use tracing::{info, warn};

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

    /// Compares server and slot with the notes. Answers whether the server is another one than
    /// the epoch names. The first note is made here, so that from now on a missing slot is a
    /// lost one.
    ///
    /// # Errors
    /// When Postgres cannot be asked.
    pub async fn compare(
        &self,
        system: &SystemIdentity,
        confirmed: Lsn,
        known: Option<&Position>,
    ) -> Result<bool, database::Error> {
        let client = self.pool.get().await?;
        let epoch = epoch::current(&client).await?;
        let here = (system.system_id.to_string(), i64::from(system.timeline));
        let other_server = (&epoch.system_id, epoch.pg_timeline) != (&here.0, here.1);
        if other_server {
            warn!(
                epoch = epoch.epoch,
                system_id = here.0,
                pg_timeline = here.1,
                "server is not the one of the epoch: after a failover or restore run the sweep over its time"
            );
        }
        match known.map(|known| Lsn::new(known.confirmed_lsn)) {
            None => self.save(system, confirmed).await?,
            Some(noted) if noted > confirmed => {
                info!(%noted, %confirmed, bytes = noted.bytes_since(confirmed), "slot is behind its note: records will repeat");
            }
            // Idle advances are not noted, so a slot is usually a little ahead.
            Some(noted) => {
                info!(%noted, %confirmed, bytes = confirmed.bytes_since(noted), "slot is at or ahead of its note")
            }
        }
        Ok(other_server)
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
