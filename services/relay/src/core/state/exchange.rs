//! What the core is told, and what it asks for.

use events::{
    Class, EventId,
    route::{Letter, Record},
};
use pgoutput::{Lsn, Message};

use super::{Failure, Ignored, Lost, State, StopReason};
use crate::core::Moment;
use crate::core::confirm::Status;

/// What happened.
#[derive(Debug)]
pub enum Input {
    /// The stream runs. The slot's confirmed position was read on this connection.
    Connected {
        /// `confirmed_flush_lsn` of the slot.
        confirmed: Lsn,
        /// Microseconds between periodic statuses: a third of `wal_sender_timeout`.
        status_interval_us: u64,
        /// The epoch of this server.
        epoch: Epoch,
    },
    /// The slot was moved past the spot where the publication was missing.
    GapMended,
    /// Another epoch has begun while the stream runs.
    Epoch(Epoch),
    /// Connecting failed.
    Refused(Failure),
    /// The stream ended.
    Lost(Lost),
    /// A message of the plugin, with the position it came at.
    Message(Lsn, Message),
    /// A keepalive.
    Keepalive {
        /// How far the server has read for this slot.
        end: Lsn,
        /// Whether it wants a status at once.
        reply_requested: bool,
    },
    /// A record or dead letter is safe.
    Acked(u64),
    /// A record or dead letter is not.
    Failed(u64, Class),
    /// The broker answered a probe.
    SinkUp,
    /// It did not.
    SinkDown,
    /// The moment of the last [`Action::SleepUntil`] has come.
    Tick,
    /// The process is asked to stop.
    Shutdown,
}

/// What to do about it. Each is one call of the event loop.
#[derive(Debug, PartialEq, Eq)]
pub enum Action {
    /// Open a replication connection and check everything.
    Connect,
    /// Ask the broker for a sign of life.
    ProbeSink,
    /// Enqueue a record.
    Produce(u64, Record),
    /// Produce a dead letter, then enter its row.
    DeadLetter(u64, Letter),
    /// Tell Postgres.
    Confirm(Status),
    /// Store the confirmed position beside the slot's name.
    SavePosition(Lsn),
    /// Take no more from the connection.
    PauseRead,
    /// Take again.
    ResumeRead,
    /// This event is at the broker: ledger.
    Published {
        /// The event.
        event: EventId,
        /// When it committed, Unix microseconds.
        commit_time: i64,
        /// The epoch that its record names.
        epoch: i64,
    },
    /// Count a message that means nothing here.
    Ignored(Ignored),
    /// Come back at this moment at the latest.
    SleepUntil(Moment),
    /// Close the replication connection.
    Disconnect,
    /// Throw the producer with all it holds away and make a new one.
    RebuildSink,
    /// Tell the world about a state, with what there is to say.
    Enter(State, String),
    /// End. Everything that could be finished is.
    Stop(StopReason),
}

/// The epoch under which records are made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Epoch {
    /// Its number; the ledger takes entries of the newest one only.
    pub number: i64,
    /// `ce_source` of its records.
    pub source: String,
}

/// What a connection attempt has to know of the connections before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// What this process has confirmed last; zero before the first connection.
    pub confirmed: Lsn,
    /// The last stream ended where the publication was missing: the slot has to be moved past
    /// that spot before it can stream again.
    pub behind_gap: bool,
}

/// Actions in the order in which they must be carried out.
pub type Actions = Vec<Action>;

/// How long things may take, microseconds.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    /// The broker may go without an acknowledgement for this long while records are in flight.
    pub sink_patience_us: u64,
    /// Least time between two stored positions.
    pub save_position_us: u64,
    /// How long a shutdown waits for acknowledgements.
    pub drain_us: u64,
    /// How long the first connection may take before exit 69.
    pub startup_budget_us: u64,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            sink_patience_us: 20_000_000,
            save_position_us: 10_000_000,
            drain_us: 10_000_000,
            startup_budget_us: 300_000_000,
        }
    }
}
