//! What really happened, which only the invariants read: names of rows, what a topic has taken,
//! what failed on its way into the ledger.

use std::{
    collections::{BTreeMap, BTreeSet},
    rc::Rc,
};

use bytes::Bytes;

use super::row::Row;

/// A place in a partition of the posts topic: partition, which topic of that name, offset.
pub(crate) type Place = (i32, u32, i64);

/// See the module. Rows go by their names (`Row::uid`).
#[derive(Debug, Default)]
pub(crate) struct Truth {
    names: u64,
    /// Every row that was ever flushed, and its place in the order of commits.
    pub(crate) rows: BTreeMap<u64, Rc<Row>>,
    orders: BTreeMap<u64, u64>,
    /// Rows whose record a topic has taken, from anybody.
    pub(crate) in_topic: BTreeSet<u64>,
    /// Rows whose letter a dead-letter topic has taken.
    pub(crate) in_letters: BTreeSet<u64>,
    /// Rows whose first copy from a relay was taken, and the last of them by key.
    relayed: BTreeSet<u64>,
    /// Rows that a slot was moved past.
    pub(crate) skipped: BTreeSet<u64>,
    relayed_last: BTreeMap<Bytes, u64>,
    /// Rows of which a relay was told that they are safe.
    pub(crate) acked: BTreeSet<u64>,
    /// Rows that fan-out has finished and noted.
    pub(crate) noted: BTreeSet<u64>,
    /// Rows whose ledger entry failed, came late or was taken back, by stage.
    pub(crate) unentered: [BTreeSet<u64>; 2],
    /// Rows that a claim sent and did not commit: these may repeat.
    pub(crate) unsure: BTreeSet<u64>,
    /// Rows that an open claim has sent, and claims that were committed.
    pub(crate) in_claim: BTreeSet<u64>,
    pub(crate) claims: BTreeSet<u64>,
    /// Rows whose record some fan-out has begun to work on: for a bug.
    pub(crate) read_before: BTreeSet<u64>,
    /// Records whose post was not visible for as long as fan-out waits.
    pub(crate) ghosts: BTreeSet<Place>,
    /// Records of which fan-out's letter is stored and accounted for.
    pub(crate) buried: BTreeSet<Place>,
    /// Events that were sent again, all in all.
    pub(crate) sent_again: u64,
    /// How many standbys took over.
    pub(crate) takeovers: u64,
    /// The step at which the last one did.
    pub(crate) took_over_at: u64,
}

impl Truth {
    /// A new name.
    pub(crate) const fn name(&mut self) -> u64 {
        self.names += 1;
        self.names
    }

    /// A row is in the log of Postgres.
    pub(crate) fn flushed(&mut self, row: &Rc<Row>) {
        let order = self.orders.len() as u64;
        self.orders.insert(row.uid, order);
        self.rows.insert(row.uid, Rc::clone(row));
    }

    /// Entries of every row so far were taken back, or belong to a server that is gone.
    pub(crate) fn take_back_entries(&mut self) {
        for stage in &mut self.unentered {
            stage.extend(1..=self.names);
        }
    }

    /// Another server.
    pub(crate) fn took_over(&mut self, step: u64) {
        self.takeovers += 1;
        self.took_over_at = step;
        // Its slot is made anew: what relays still hold of the old server has no order.
        self.relayed.extend(1..=self.names);
        self.skipped.extend(1..=self.names);
        self.take_back_entries();
        // What claims of the old server did is forgotten by the new one.
        self.unsure.extend(std::mem::take(&mut self.in_claim));
        self.unsure.extend(1..=self.names);
    }

    /// A row that no relay has to produce any more.
    pub(crate) fn skip(&mut self, uid: u64) {
        self.relayed.insert(uid);
        self.skipped.insert(uid);
    }

    /// A relay's copy of a row is in a topic. Answers the row that came too early, if this is a
    /// first copy behind the first copy of a later commit.
    pub(crate) fn relayed(&mut self, uid: u64, key: &Bytes) -> Option<u64> {
        if !self.relayed.insert(uid) {
            return None;
        }
        let order = self.orders.get(&uid).copied().unwrap_or_default();
        let before = self.relayed_last.get(key).copied();
        let before_order = before.and_then(|before| self.orders.get(&before).copied());
        if before_order.is_some_and(|before| before > order) {
            return before;
        }
        self.relayed_last.insert(key.clone(), uid);
        None
    }
}
