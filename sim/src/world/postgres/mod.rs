//! Postgres: tables, ids, the log of commits, the slot. One value, so that a standby is a copy.
//!
//! A commit is three moments: ids are drawn, the commit record is flushed (from here on the slot
//! has it), and the rows become visible to others. What the judge wants to know of posts and edges
//! is kept beside them, so that it is undone with them when a standby takes over.

mod account;
mod lives;
mod writes;

use std::{
    collections::{BTreeMap, BTreeSet},
    rc::Rc,
};

use events::{EventId, Micros};
use sweep::core::{Life, voids::Void};

use super::row::Row;

pub(crate) use account::{Account, Claimable, index};
pub(crate) use lives::{Epoch, Server, here, promote, restart};
pub(crate) use writes::{
    Change, Txn, begin, draw_event, end, flush, rollback, show, start_writing,
};

/// A post, and what the judge wants to know of it.
#[derive(Clone, Debug)]
pub(crate) struct Post {
    pub(crate) author: i64,
    pub(crate) post_us: Micros,
    pub(crate) key: String,
    /// The step at which its transaction began: the client had sent it by then.
    pub(crate) began: u64,
    /// The step at which a delete began, also of one that was rolled back.
    pub(crate) delete_began: Option<u64>,
    /// Deleted, for everybody to see.
    pub(crate) is_deleted: bool,
}

/// An edge, from its begin to its end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Edge {
    pub(crate) followee: i64,
    pub(crate) follower: i64,
    pub(crate) edge_us: Micros,
    /// The step from which on it is seen.
    pub(crate) visible: u64,
    /// The steps at which an unfollow began, and at which it was seen; the first one also when it
    /// was rolled back.
    pub(crate) end_began: Option<u64>,
    pub(crate) ended: Option<u64>,
}

/// A transaction in the log.
#[derive(Clone, Debug)]
pub(crate) struct Commit {
    /// Where the commit record begins, and where it ends.
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) xid: u64,
    pub(crate) time_us: i64,
    pub(crate) rows: Vec<Rc<Row>>,
    /// The publication was missing when it was written.
    pub(crate) is_unpublished: bool,
}

/// A replication slot.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slot {
    /// None while it is being made.
    pub(crate) confirmed: Option<u64>,
    pub(crate) is_lost: bool,
    /// The connection that holds it.
    pub(crate) holder: Option<u64>,
}

/// `relay_position`.
#[derive(Clone, Debug)]
pub(crate) struct Position {
    pub(crate) server: Server,
    pub(crate) confirmed: u64,
    pub(crate) updated_us: Micros,
}

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Postgres {
    pub(crate) is_up: bool,
    /// How far its clock was set, microseconds.
    pub(crate) clock_step: i64,
    pub(crate) server: Server,
    pub(crate) epochs: Vec<Epoch>,
    /// The end of the log.
    pub(crate) lsn: u64,
    pub(crate) next_event: i64,
    pub(crate) next_xid: u64,
    next_post: i64,
    pub(crate) open: Vec<Txn>,
    /// Ids that sessions have drawn ahead.
    pub(crate) cached: Vec<i64>,
    pub(crate) wal: Vec<Rc<Commit>>,
    pub(crate) outbox: BTreeMap<EventId, Rc<Row>>,
    pub(crate) posts: BTreeMap<i64, Post>,
    pub(crate) edges: Vec<Edge>,
    /// `follow_end`: when the last edge of a pair ended.
    pub(crate) follow_ends: BTreeMap<(i64, i64), Micros>,
    pub(crate) account: Account,
    pub(crate) voids: Vec<Void>,
    pub(crate) next_void: i64,
    pub(crate) slot: Option<Slot>,
    pub(crate) position: Option<Position>,
    pub(crate) is_published: bool,
    /// How many requests to the sweep there were.
    pub(crate) requests: u64,
    /// Blocks that a claim holds.
    pub(crate) locks: BTreeSet<i64>,
    /// How often all connections were cut.
    pub(crate) cuts: u64,
}

impl Postgres {
    pub(crate) fn new() -> Self {
        let server = Server {
            system: "7".to_owned(),
            timeline: 1,
        };
        Self {
            is_up: true,
            clock_step: 0,
            epochs: vec![Epoch {
                number: 1,
                server: server.clone(),
                started_us: Micros(0),
            }],
            server,
            lsn: 1_000,
            next_event: 1,
            next_xid: 100,
            next_post: 0,
            open: Vec::new(),
            cached: Vec::new(),
            wal: Vec::new(),
            outbox: BTreeMap::new(),
            posts: BTreeMap::new(),
            edges: Vec::new(),
            follow_ends: BTreeMap::new(),
            account: Account::default(),
            voids: Vec::new(),
            next_void: 1,
            slot: None,
            position: None,
            is_published: true,
            requests: 0,
            locks: BTreeSet::new(),
            cuts: 0,
        }
    }

    /// The newest epoch.
    pub(crate) fn epoch(&self) -> &Epoch {
        self.epochs
            .last()
            .expect("the first epoch is made with the database")
    }

    /// The newest epoch as the sweep names it.
    pub(crate) fn life(&self) -> Life {
        let epoch = self.epoch();
        Life {
            epoch: epoch.number,
            system_id: epoch.server.system.clone(),
            pg_timeline: epoch.server.timeline,
        }
    }

    /// An edge that is seen now.
    pub(crate) fn edge(&self, followee: i64, follower: i64) -> Option<&Edge> {
        self.edges.iter().find(|edge| {
            (edge.followee, edge.follower) == (followee, follower) && edge.ended.is_none()
        })
    }

    /// Every transaction below has ended.
    pub(crate) fn xmin(&self) -> u64 {
        let oldest = self.open.iter().filter_map(|txn| txn.xid).min();
        oldest.unwrap_or(self.next_xid)
    }

    /// The connection that held the slot is gone.
    pub(crate) fn let_go(&mut self, connection: u64) {
        if let Some(slot) = self
            .slot
            .as_mut()
            .filter(|slot| slot.holder == Some(connection))
        {
            slot.holder = None;
            if slot.confirmed.is_none() {
                // It was still being made.
                self.slot = None;
            }
        }
    }
}
