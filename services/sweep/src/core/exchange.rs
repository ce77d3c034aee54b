//! What a round asks for and what it is told: the words between it and its driver.
//!
//! Owns the vocabulary and the timing. Does not own any rule.

use std::sync::Arc;

use events::{EventId, Micros};

use crate::core::Moment;

/// Which life of the database something was seen in: positions and ids of one say nothing about
/// another.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Life {
    /// The newest row of `epoch`.
    pub epoch: i64,
    /// The cluster's system identifier.
    pub system_id: String,
    /// The timeline it writes, which a promotion raises.
    pub pg_timeline: i64,
}

/// What was missing in a stage at one time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Look {
    /// Where.
    pub life: Life,
    /// Existing outbox rows that the stage does not have, in id order. For `delivered` only those
    /// that were in `published` in the same snapshot.
    pub ids: Vec<EventId>,
    /// Postgres's clock, read in a statement before the rows were.
    pub taken_us: Micros,
    /// The log position of the mark written *after* the rows were read: every transaction the
    /// look saw committed below it. Not used for `delivered`.
    pub lsn: u64,
    /// More is missing than a look holds.
    pub truncated: bool,
}

/// Something to find out or to do: one call at a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Want {
    /// See what is missing.
    Look,
    /// Read the slot, and in which life.
    Slot,
    /// Read the positions of the stage's hop with this index (`Stage::hops`).
    Hop(usize),
    /// Publish a record of the sweep's own and say whether the broker acknowledged it.
    Probe,
    /// Deliver what is still missing of this look. Before this the position was found to have
    /// passed it; the ledger and [`crate::core::fate()`] decide about each id.
    Claim(Arc<Look>),
}

/// What the driver does next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// Do this, then report it. Asking again before the report gives the same answer.
    Do(Want),
    /// Nothing until then, or until a request.
    WaitUntil(Moment),
}

/// What came of a [`Want`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    /// The look that was asked for.
    Looked(Look),
    /// The slot.
    Slot {
        /// Read in the same statement or after it.
        life: Life,
        /// How it stands.
        slot: SlotView,
    },
    /// The positions of every partition of the hop.
    Hop(Vec<Mark>),
    /// Whether the broker acknowledged the probe.
    Probed(bool),
    /// What the claim did.
    Claimed(Claimed),
    /// It failed, or its outcome is unknown.
    Failed,
}

/// A replication slot as a sweep sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotView {
    /// Whether somebody reads it.
    pub state: SlotState,
    /// `confirmed_flush_lsn`.
    pub confirmed: Option<u64>,
}

/// Whether a slot can still deliver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlotState {
    /// There is none.
    Absent,
    /// Its log was removed; it never delivers again.
    Lost,
    /// Nobody is connected.
    Inactive,
    /// A relay is connected.
    Active,
}

/// The positions of one partition of a hop. `committed` is read *before* `end`: the other way
/// round a group that goes on in between would seem to have committed beyond the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// The partition.
    pub partition: i32,
    /// The lowest offset there is.
    pub low: i64,
    /// The offset of the next record.
    pub end: i64,
    /// The offset the group goes on from; none while it has never committed.
    pub committed: Option<i64>,
}

/// What a claim did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Claimed {
    /// Published again and acknowledged.
    pub redelivered: u64,
    /// Entered as never to be delivered.
    pub discarded: u64,
    /// Left alone: not due, dead-lettered, or another sweeper's.
    pub left: u64,
    /// The claim stopped before the end of the look, for instance because its share of time was
    /// used up. The position is looked at again before it goes on.
    pub more: bool,
}

/// How a round stands, for the gauge, the alarm and the summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Standing {
    /// Nothing was missing when last looked, or the last look is dealt with.
    Idle,
    /// Waiting for a position to pass the look.
    Waiting,
    /// No relay is live, so what is missing is being claimed.
    NoRelay,
    /// The position does not move, so nothing is sent again: a person must look.
    Blocked,
    /// The group's offset lies beyond the end of its topic: the topic was made anew.
    OffsetLost,
}

impl Standing {
    /// Every standing.
    pub const ALL: [Self; 5] = [
        Self::Idle,
        Self::Waiting,
        Self::NoRelay,
        Self::Blocked,
        Self::OffsetLost,
    ];

    /// The label value.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Waiting => "waiting",
            Self::NoRelay => "no_relay",
            Self::Blocked => "blocked",
            Self::OffsetLost => "offset_lost",
        }
    }

    /// Whether a person must act.
    pub const fn is_alarm(self) -> bool {
        matches!(self, Self::Blocked | Self::OffsetLost)
    }
}

/// Waiting times, microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// From the end of a round to the next look.
    pub interval: u64,
    /// From a position that has passed to the claim, for the ledger insert that follows it.
    pub grace: u64,
    /// How long a slot is inactive, while the broker can be reached, before no relay is live.
    pub relay_patience: u64,
    /// How long a position stands still before it is blocked.
    pub blocked_after: u64,
    /// Between two readings of a position, and after a failure.
    pub poll: u64,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            interval: 30_000_000,
            grace: 5_000_000,
            relay_patience: 600_000_000,
            blocked_after: 60_000_000,
            poll: 1_000_000,
        }
    }
}

/// How rows get to the broker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    /// A relay publishes, and the sweep what it lost.
    Sweep,
    /// There is no logical replication: the sweep publishes everything, at once.
    Dispatch,
}
