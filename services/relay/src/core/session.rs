//! One replication connection: its tables, its transactions, its positions.
//!
//! Everything here is thrown away with the connection. The number of the connection is the
//! tracker's generation, so that an acknowledgement of a record which an earlier connection had
//! enqueued confirms nothing on this one.

use std::collections::HashMap;
use std::num::NonZeroUsize;

use ack_tracker::{Ticket, Tracker};
use events::route::{Routed, Router, Via};
use pgoutput::{Begin, Commit, Lsn, Oid, Relation, Tuple};

use crate::core::columns::{Columns, MissingColumn, is_outbox};
use crate::core::confirm::Confirm;
use crate::core::txn::{Txn, entry_position};
use crate::core::{Moment, state::Lost};

/// Transactions that may be open or wait behind an open one, finished ones included (D-13).
/// Reading pauses at half of it.
const TRANSACTIONS: NonZeroUsize = NonZeroUsize::new(65_536).expect("65 536 is not zero");

/// What one table means for the relay.
#[derive(Debug)]
enum Table {
    Outbox(Columns),
    Unreadable(MissingColumn),
    Stray,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) confirm: Confirm,
    tracker: Tracker<Lsn>,
    tables: HashMap<Oid, Table>,
    txn: Option<Txn>,
}

/// What an insert turned out to be.
#[derive(Debug)]
pub(super) enum Inserted {
    /// A row of the outbox.
    Row { txn: Txn, routed: Box<Routed> },
    /// A row of a table that is none of ours.
    Stray,
}

impl Session {
    pub(super) fn new(generation: u64, confirm: Confirm) -> Self {
        Self {
            confirm,
            tracker: Tracker::with_generation(TRANSACTIONS, generation),
            tables: HashMap::new(),
            txn: None,
        }
    }

    pub(super) fn relation(&mut self, relation: &Relation) {
        let table = if !is_outbox(relation) {
            Table::Stray
        } else {
            match Columns::find(relation) {
                Ok(columns) => Table::Outbox(columns),
                Err(missing) => Table::Unreadable(missing),
            }
        };
        self.tables.insert(relation.oid, table);
    }

    pub(super) fn begin(&mut self, begin: Begin, now: Moment) -> Result<(), Lost> {
        let position = entry_position(begin);
        let ticket = self
            .tracker
            .open(position, now.0)
            .map_err(|error| Lost::protocol(&error))?;
        self.txn = Some(Txn::new(begin, ticket));
        Ok(())
    }

    pub(super) fn insert(
        &mut self,
        oid: Oid,
        row: &Tuple,
        router: &Router,
    ) -> Result<Inserted, Lost> {
        let columns = match self.tables.get(&oid) {
            Some(Table::Outbox(columns)) => columns,
            Some(Table::Stray) => return Ok(Inserted::Stray),
            Some(Table::Unreadable(missing)) => return Err(Lost::schema(missing)),
            None => {
                return Err(Lost::protocol_text(
                    "a row of a table that was never described",
                ));
            }
        };
        let txn = self
            .txn
            .as_mut()
            .ok_or_else(|| Lost::protocol_text("a row outside a transaction"))?;
        let row = columns.read(row).map_err(|error| Lost::schema(&error))?;
        let place = txn.next_place();
        let via = Via::Relay {
            commit_lsn: place.lsn.as_u64(),
            index: place.index,
        };
        let routed = router.route(&row, via);
        self.tracker
            .add_parts(txn.ticket, 1)
            .map_err(|error| Lost::protocol(&error))?;
        Ok(Inserted::Row {
            txn: *txn,
            routed: Box::new(routed),
        })
    }

    pub(super) fn commit(&mut self, commit: Commit) -> Result<(), Lost> {
        let txn = self
            .txn
            .take()
            .ok_or_else(|| Lost::protocol_text("a commit without a begin"))?;
        let done = self
            .tracker
            .seal_at(txn.ticket, commit.end_lsn)
            .map_err(|error| Lost::protocol(&error))?;
        self.confirm.receive(commit.end_lsn);
        if let Some(done) = done {
            self.confirm.ack(done);
        }
        Ok(())
    }

    /// One record of the transaction is acknowledged. A ticket of an earlier connection, or of
    /// one that is done, changes nothing.
    pub(super) fn complete(&mut self, ticket: Ticket) {
        if let Ok(Some(done)) = self.tracker.complete(ticket) {
            self.confirm.ack(done);
        }
    }

    /// Lets the last keepalive count if nothing is outstanding (D-4). Returns whether the
    /// confirmed position moved.
    pub(super) fn idle(&mut self) -> bool {
        self.tracker.is_idle() && self.confirm.idle()
    }

    /// Whether the tracker has little room left.
    pub(super) fn is_crowded(&self) -> bool {
        self.tracker.held() >= TRANSACTIONS.get() / 2
    }

    /// Whether the ticket belongs to this connection.
    pub(super) fn owns(&self, generation: u64) -> bool {
        self.tracker.generation() == generation
    }
}
