//! Where rows come from: the replication connection, after everything about it was checked.
//!
//! Owns opening a stream: who the server is, publication, slot, position, in this order and, as
//! far as the answer must hold for the stream, on the replication connection itself, so that no
//! failover can slip in between a check and the stream. Decides nothing that the core decides.

mod position;
mod slot;
mod stream;

use database::Pool;
use pgoutput::Lsn;
use replication::{Connection, ReplicationConfig, SystemIdentity};
use tracing::info;

pub use position::Positions;
pub use stream::{Incoming, Stream, unix_micros};

use crate::error::ConnectError;

/// How often between two of the server's timeouts a status is sent (C22).
const STATUSES_PER_TIMEOUT: u64 = 3;
/// The interval for a server without a timeout, microseconds.
const NO_TIMEOUT_US: u64 = 10_000_000;

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
    /// Whether the server is not the one that the epoch names.
    pub other_server: bool,
}

impl Source {
    /// Checks everything and starts the stream at 0/0, where the slot stands.
    ///
    /// # Errors
    /// [`ConnectError`].
    ///
    /// # Cancel safety
    /// A dropped call closes the connection.
    pub async fn connect(&self) -> Result<Connected, ConnectError> {
        let mut connection = Connection::connect(&self.config).await?;
        let system = connection.identify_system().await?;
        slot::refuse_recovery(&mut connection).await?;
        slot::check_publication(&mut connection, &self.publication).await?;
        let known = self.positions.known().await?;
        let confirmed = slot::check(&mut connection, self, known.as_ref()).await?;
        let other_server = self
            .positions
            .compare(&system, confirmed, known.as_ref())
            .await?;
        let timeout_us = slot::wal_sender_timeout_us(&mut connection).await?;
        let status_interval_us = match timeout_us {
            0 => NO_TIMEOUT_US,
            timeout => timeout / STATUSES_PER_TIMEOUT,
        };
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
            other_server,
        })
    }
}
