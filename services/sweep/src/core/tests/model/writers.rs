//! The model's writers: sessions that draw ids long before they commit, and transactions that
//! outlive their session.

use super::{world::Row, *};
use crate::core::{days::Day, voids::Snapshot};

/// A transaction that has drawn ids and has not ended.
#[derive(Clone, Debug)]
pub(super) struct Txn {
    pub(super) ids: Vec<i64>,
    pub(super) xid: Option<u64>,
    pub(super) day: Day,
    kind: Kind,
}

/// What a transaction's life depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Its session: rolled back when that ends.
    Session,
    /// Nobody: it keeps xmin down and its day locked, over restarts, until somebody ends it.
    Prepared,
}

impl Txn {
    fn draw_xid(&mut self, next: &mut u64) {
        if self.xid.is_none() {
            self.xid = Some(*next);
            *next += 1;
        }
    }
}

impl World {
    pub(super) fn snapshot(&self) -> Snapshot {
        let oldest = self.open.iter().filter_map(|txn| txn.xid).min();
        Snapshot {
            xmin: oldest.unwrap_or(self.next_xid),
            now_us: self.clock(),
        }
    }

    /// A session draws an id and keeps it, as with a cached sequence.
    pub(super) fn cache(&mut self) {
        self.cached.push(self.next_id);
        self.next_id += 1;
    }

    /// A transaction begins with one fresh id, and one from the cache if there is one.
    pub(super) fn begin(&mut self) {
        let mut ids = vec![self.next_id];
        self.next_id += 1;
        ids.extend(self.cached.pop());
        let day = self.day;
        self.open.push(Txn {
            ids,
            xid: None,
            day,
            kind: Kind::Session,
        });
    }

    /// A transaction writes for the first time: until now it had no xid, only ids.
    pub(super) fn write(&mut self, index: usize) {
        if let Some(txn) = pick(&mut self.open, index) {
            txn.draw_xid(&mut self.next_xid);
        }
    }

    /// `PREPARE TRANSACTION`: its end is up to somebody else, and no restart is.
    pub(super) fn prepare(&mut self, index: usize) {
        if let Some(txn) = pick(&mut self.open, index) {
            txn.draw_xid(&mut self.next_xid);
            txn.kind = Kind::Prepared;
        }
    }

    /// A transaction ends, a prepared one with `COMMIT PREPARED` or `ROLLBACK PREPARED`.
    pub(super) fn end(&mut self, index: usize, commits: bool) {
        if self.open.is_empty() {
            return;
        }
        let mut txn = self.open.remove(index % self.open.len());
        if !commits {
            return;
        }
        txn.draw_xid(&mut self.next_xid);
        self.lsn += 10;
        for id in &txn.ids {
            let row = Row {
                lsn: self.lsn,
                created_us: self.clock(),
                day: txn.day,
            };
            self.rows.insert(*id, row);
            self.committed.insert(*id);
        }
        self.log.push((self.lsn, txn.ids));
    }

    /// Every session ends: what it had open is rolled back, what it had cached is never used.
    pub(super) fn end_sessions(&mut self) {
        self.open.retain(|txn| txn.kind == Kind::Prepared);
        self.cached.clear();
    }
}

fn pick<T>(list: &mut [T], index: usize) -> Option<&mut T> {
    let len = list.len();
    list.get_mut(index.checked_rem(len)?)
}
