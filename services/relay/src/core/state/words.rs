//! The words for states, ignored messages and gauges: the same in logs, metrics and `/readyz`.

use pgoutput::Lsn;

/// What the relay is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// Looking for Postgres.
    Connecting,
    /// Another relay holds the slot: a normal state.
    Standby,
    /// Records flow.
    Streaming,
    /// The broker does not acknowledge; the replication connection is closed.
    SinkUnavailable,
    /// The slot is missing or invalidated.
    SlotLost,
    /// The publication is missing, or does not publish the outbox.
    PublicationGap,
    /// The outbox lacks a column that the relay needs.
    SchemaError,
}

impl State {
    /// Every state.
    pub const ALL: [Self; 7] = [
        Self::Connecting,
        Self::Standby,
        Self::Streaming,
        Self::SinkUnavailable,
        Self::SlotLost,
        Self::PublicationGap,
        Self::SchemaError,
    ];

    /// The word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Connecting => "connecting",
            Self::Standby => "standby",
            Self::Streaming => "streaming",
            Self::SinkUnavailable => "sink_unavailable",
            Self::SlotLost => "slot_lost",
            Self::PublicationGap => "publication_gap",
            Self::SchemaError => "schema_error",
        }
    }

    /// Whether all is well in it.
    pub const fn is_ready(self) -> bool {
        matches!(self, Self::Standby | Self::Streaming)
    }

    /// Whether a person has to act.
    pub const fn needs_repair(self) -> bool {
        matches!(
            self,
            Self::SlotLost | Self::PublicationGap | Self::SchemaError
        )
    }
}

/// Messages that are counted and skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ignored {
    /// A row of another table.
    Stray,
    /// A changed row.
    Update,
    /// A removed row.
    Delete,
    /// An emptied table.
    Truncate,
    /// Bytes from `pg_logical_emit_message`.
    Logical,
    /// A message or frame of a later version.
    Unknown,
}

impl Ignored {
    /// Every kind.
    pub const ALL: [Self; 6] = [
        Self::Stray,
        Self::Update,
        Self::Delete,
        Self::Truncate,
        Self::Logical,
        Self::Unknown,
    ];

    /// The metric label.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Stray => "stray",
            Self::Update => "update",
            Self::Delete => "delete",
            Self::Truncate => "truncate",
            Self::Logical => "logical",
            Self::Unknown => "unknown",
        }
    }
}

/// Numbers for the metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gauges {
    /// Everything up to here arrived, on the present or the last connection.
    pub received: Lsn,
    /// Everything up to here is acknowledged.
    pub acked: Lsn,
    /// Everything up to here is confirmed, or will be with the next status.
    pub confirmed: Lsn,
    /// Records in flight.
    pub rows: usize,
    /// Their bytes.
    pub bytes: usize,
    /// Transactions received whole since the start.
    pub transactions: u64,
    /// How often a keepalive moved the confirmed position.
    pub idle_advances: u64,
}
