//! Begin … Commit: which transaction the rows on the wire belong to, and their order in it.
//!
//! With protocol version 1 a transaction arrives whole and its rows may leave for Kafka one by
//! one, so nothing is buffered here; only the acknowledgement waits for the Commit. The end LSN
//! is known only then. Until then a transaction goes by the LSN of its commit *record*, which
//! Begin carries: that is what `ce_sequence` and `tideline-commit-lsn` hold, it is unique to the
//! transaction and rises in commit order.

use ack_tracker::Ticket;
use pgoutput::{Begin, Lsn};

/// Where a row stands: its transaction and its index in it. The first part of `ce_sequence`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// LSN of the commit record.
    pub lsn: Lsn,
    /// Number of the row among the outbox rows of its transaction, from 0.
    pub index: u32,
}

/// The transaction that is being received.
#[derive(Clone, Copy, Debug)]
pub struct Txn {
    /// Its entry in the tracker.
    pub ticket: Ticket,
    /// When it committed, by Postgres's clock, Unix microseconds.
    pub commit_time: i64,
    lsn: Lsn,
    rows: u32,
}

impl Txn {
    /// A transaction begins.
    pub const fn new(begin: Begin, ticket: Ticket) -> Self {
        Self {
            ticket,
            commit_time: begin.commit_time,
            lsn: begin.final_lsn,
            rows: 0,
        }
    }

    /// The place of the next row.
    pub const fn next_place(&mut self) -> Place {
        let place = Place {
            lsn: self.lsn,
            index: self.rows,
        };
        self.rows = self.rows.saturating_add(1);
        place
    }
}

/// The position under which the tracker takes a transaction in. The commit record of the next
/// transaction may start exactly where the one before ends, and the tracker wants positions to
/// rise, so it is one byte into the record: above every earlier end, below its own.
pub const fn entry_position(begin: Begin) -> Lsn {
    match begin.final_lsn.checked_add(1) {
        Some(position) => position,
        None => begin.final_lsn,
    }
}
