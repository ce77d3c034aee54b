//! Where rows come from: the replication connection, after everything about it was checked.
//!
//! Owns opening a stream: who the server is, publication, slot, position, in this order and, as
//! far as the answer must hold for the stream, on the replication connection itself, so that no
//! failover can slip in between a check and the stream. Decides nothing that the core decides.
//!
//! What an attempt changed for good, a slot made anew or an epoch begun, is told in [`Happened`]
//! also when the attempt fails afterwards.

mod position;
mod repair;
mod slot;
mod stream;

use database::Pool;
use pgoutput::Lsn;
use replication::{Connection, ReplicationConfig, SystemIdentity};
use tracing::info;

pub use position::Positions;
pub use repair::Request;
pub use stream::{Incoming, Stream, unix_micros};

use crate::config::OnSlotLost;
use crate::core::{Attempt, Epoch};
use crate::error::ConnectError;

/// How often between two of the server's timeouts a status is sent (C22).
const STATUSES_PER_TIMEOUT: u64 = 3;

/// Opens streams.
#[derive(Clone, Debug)]
pub struct Source {
    /// How to reach the server.
    pub config: ReplicationConfig,
    /// For ordinary SQL.
    pub pool: Pool,
    /// The slot's name.
    pub slot: String,
    /// The publication's name.
    pub publication: String,
    /// What follows a lost slot.
    pub on_slot_lost: OnSlotLost,
    /// `relay_position` and `epoch`.
    pub positions: Positions,
}

/// A stream that has begun.
#[derive(Debug)]
pub struct Connected {
    /// The stream.
    pub stream: Stream,
    /// The slot's confirmed position before it began.
    pub confirmed: Lsn,
    /// Microseconds between two periodic statuses.
    pub status_interval_us: u64,
    /// The server.
    pub system: SystemIdentity,
    /// The epoch of this server.
    pub epoch: Epoch,
}

/// What a connection attempt did, whatever became of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Happened {
    /// A lost slot was made anew.
    pub slot_recreated: bool,
    /// The slot was moved past a publication gap, or made anew behind it.
    pub gap_mended: bool,
    /// The server was not the one of the epoch.
    pub other_server: bool,
    /// The sweep was asked to look.
    pub requests: Vec<Request>,
}

impl Source {
    /// Checks everything, mends what may be mended, and starts the stream at 0/0, where the slot
    /// stands.
    ///
    /// # Errors
    /// [`ConnectError`]; `happened` tells what was done before it.
    ///
    /// # Cancel safety
    /// A dropped call closes the connection.
    pub async fn connect(
        &self,
        attempt: Attempt,
        happened: &mut Happened,
    ) -> Result<Connected, ConnectError> {
        let mut connection = Connection::connect(&self.config).await?;
        // In this order: a server that has left recovery stays out of it, and names its new
        // pg_timeline. The other way round a promotion in between would go unnoticed.
        slot::refuse_recovery(&mut connection).await?;
        let system = connection.identify_system().await?;
        slot::check_publication(&mut connection, &self.publication).await?;
        let epoch = self.epoch(&system, happened).await?;
        let known = self.positions.known().await?;
        if attempt.behind_gap {
            self.mend_gap(&mut connection, happened).await?;
        }
        let confirmed = self
            .slot(&mut connection, &system, known.as_ref(), happened)
            .await?;
        if !happened.slot_recreated {
            self.compare(&system, confirmed, known.as_ref(), attempt, happened)
                .await?;
        }
        let timeout_us = slot::wal_sender_timeout_us(&mut connection).await?;
        let status_interval_us = timeout_us / STATUSES_PER_TIMEOUT;
        let version = connection
            .parameter("server_version")
            .unwrap_or("unknown")
            .to_owned();
        let (reader, writer) = connection.start(&self.slot, &self.publication).await?;
        info!(slot = %self.slot, %confirmed, version, system_id = system.system_id, "stream started");
        Ok(Connected {
            stream: Stream::new(reader, writer),
            confirmed,
            status_interval_us,
            system,
            epoch,
        })
    }
}
