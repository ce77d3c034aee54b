//! Transactions: ids drawn first, an xid with the first write, the commit flushed, then seen.

use std::rc::Rc;

use events::{
    Event, EventId, FollowCreated, FollowDeleted, Micros, PostCreated, PostDeleted, PostId, UserId,
};

use super::{Commit, Edge, Post};
use crate::world::{
    World,
    row::{Flaw, Row},
};

/// The delete of a post is written this far above the moment of deletion.
const DELETE_LEAD: i64 = 24 * Micros::HOUR;

/// What a transaction changes besides the outbox.
#[derive(Clone, Debug)]
pub(crate) enum Change {
    Post {
        id: i64,
        author: i64,
        post_us: Micros,
        key: String,
    },
    Delete {
        post: i64,
    },
    Follow {
        followee: i64,
        follower: i64,
        edge_us: Micros,
    },
    Unfollow {
        followee: i64,
        follower: i64,
    },
}

/// An open transaction.
#[derive(Clone, Debug)]
pub(crate) struct Txn {
    pub(crate) changes: Vec<Change>,
    pub(crate) rows: Vec<Rc<Row>>,
    pub(crate) xid: Option<u64>,
    pub(crate) began: u64,
    /// Flushed: it is in the log and in nobody's snapshot.
    pub(crate) is_flushed: bool,
}

impl Txn {
    /// Whether it holds the lock of this post.
    pub(crate) fn holds_post(&self, id: i64) -> bool {
        self.changes
            .iter()
            .any(|change| matches!(change, Change::Delete { post } if *post == id))
    }

    /// Whether it holds the lock of this pair.
    pub(crate) fn holds_pair(&self, of: (i64, i64)) -> bool {
        self.changes.iter().any(|change| match change {
            Change::Follow {
                followee, follower, ..
            }
            | Change::Unfollow { followee, follower } => (*followee, *follower) == of,
            Change::Post { .. } | Change::Delete { .. } => false,
        })
    }
}

/// The changes of a transaction that begins now, with an outbox row each; ids and times are drawn.
pub(crate) fn begin(world: &mut World, wanted: &[Change], flaw: Option<Flaw>) {
    let mut changes = Vec::new();
    let mut rows = Vec::new();
    for change in wanted {
        let now = world.clock();
        let (change, event, created_us) = draw(world, change, now);
        rows.push(row(world, event, created_us, flaw));
        // A row with a flaw was made by somebody else, and stands for nothing.
        if flaw.is_none() {
            changes.push(change);
        }
    }
    let began = world.step;
    for change in &changes {
        note_begin(world, change, began);
    }
    world.tell("writer", || {
        let ids: Vec<i64> = rows.iter().map(|row: &Rc<Row>| row.id.0).collect();
        format!("begins, draws {ids:?}: {wanted:?} {flaw:?}")
    });
    world.pg.open.push(Txn {
        changes,
        rows,
        xid: None,
        began,
        is_flushed: false,
    });
}

/// Draws an outbox id that a session keeps for later.
pub(crate) fn draw_event(world: &mut World) {
    let id = world.pg.next_event;
    world.pg.next_event += 1;
    world.pg.cached.push(id);
}

/// The transaction writes for the first time: until now it had no xid, only ids.
pub(crate) fn start_writing(world: &mut World, index: usize) {
    let xid = world.pg.next_xid;
    if let Some(txn) = world.pg.open.get_mut(index).filter(|txn| txn.xid.is_none()) {
        txn.xid = Some(xid);
        world.pg.next_xid += 1;
    }
}

/// The commit record is written: the slot has the transaction from here on.
pub(crate) fn flush(world: &mut World, index: usize) {
    start_writing(world, index);
    let time_us = world.clock().0;
    // Other tables' log stands between.
    let start = world.pg.lsn + 8 * world.rng.u64(0..3);
    let is_unpublished = !world.pg.is_published;
    let Some(txn) = world.pg.open.get_mut(index).filter(|txn| !txn.is_flushed) else {
        return;
    };
    txn.is_flushed = true;
    let commit = Rc::new(Commit {
        start,
        end: start + 8,
        xid: txn.xid.unwrap_or_default(),
        time_us,
        rows: txn.rows.clone(),
        is_unpublished,
    });
    world.pg.lsn = commit.end;
    for row in &commit.rows {
        world.truth.flushed(row);
    }
    world.tell("postgres", || {
        let ids: Vec<i64> = commit.rows.iter().map(|row| row.id.0).collect();
        format!("commit of {ids:?} flushed, ends at {}", commit.end)
    });
    world.pg.wal.push(commit);
}

/// A flushed transaction becomes visible, and the client hears of it.
pub(crate) fn show(world: &mut World, index: usize) {
    if !world.pg.open.get(index).is_some_and(|txn| txn.is_flushed) {
        return;
    }
    let txn = world.pg.open.remove(index);
    let step = world.step;
    for row in &txn.rows {
        world.pg.outbox.insert(row.id, Rc::clone(row));
    }
    for change in &txn.changes {
        apply(world, change, &txn, step);
    }
    world.tell("postgres", || {
        let ids: Vec<i64> = txn.rows.iter().map(|row| row.id.0).collect();
        format!("{ids:?} visible")
    });
}

/// A transaction that never was.
pub(crate) fn rollback(world: &mut World, index: usize) {
    let txn = world.pg.open.remove(index);
    world.tell("postgres", || {
        let ids: Vec<i64> = txn.rows.iter().map(|row| row.id.0).collect();
        format!("{ids:?} rolled back")
    });
}

/// Ends a transaction at once, one way or the other.
pub(crate) fn end(world: &mut World, index: usize, commits: bool) {
    if commits || world.pg.open.get(index).is_some_and(|txn| txn.is_flushed) {
        flush(world, index);
        show(world, index);
    } else {
        rollback(world, index);
    }
}

fn draw(world: &mut World, change: &Change, now: Micros) -> (Change, Event, Micros) {
    match change {
        Change::Post { author, key, .. } => {
            let id = next_post(world, now);
            let event = Event::PostCreated(PostCreated {
                post_id: PostId(id),
                author_id: UserId(*author),
                post_us: now,
            });
            let (author, key) = (*author, key.clone());
            let post = Change::Post {
                id,
                author,
                post_us: now,
                key,
            };
            (post, event, now)
        }
        Change::Delete { post } => {
            let (author, post_us) = world
                .pg
                .posts
                .get(post)
                .map_or((0, now), |post| (post.author, post.post_us));
            let deleted_us = now.max(post_us);
            let event = Event::PostDeleted(PostDeleted {
                post_id: PostId(*post),
                author_id: UserId(author),
                post_us,
                del_us: deleted_us.plus(DELETE_LEAD),
            });
            (change.clone(), event, deleted_us)
        }
        Change::Follow {
            followee, follower, ..
        } => {
            let ended = world.pg.follow_ends.get(&(*followee, *follower)).copied();
            let edge_us = ended.map_or(now, |ended| now.max(ended.plus(1)));
            let event = Event::FollowCreated(FollowCreated {
                followee_id: UserId(*followee),
                follower_id: UserId(*follower),
                edge_us,
            });
            let (followee, follower) = (*followee, *follower);
            (
                Change::Follow {
                    followee,
                    follower,
                    edge_us,
                },
                event,
                edge_us,
            )
        }
        Change::Unfollow { followee, follower } => {
            let (event, at) = draw_unfollow(world, (*followee, *follower), now);
            (change.clone(), event, at)
        }
    }
}

fn draw_unfollow(world: &mut World, pair: (i64, i64), now: Micros) -> (Event, Micros) {
    let edge = world.pg.edge(pair.0, pair.1);
    let edge_us = edge.map_or(now, |edge| edge.edge_us);
    let unfollow_us = now.max(edge_us.plus(1));
    world.pg.follow_ends.insert(pair, unfollow_us);
    let event = Event::FollowDeleted(FollowDeleted {
        followee_id: UserId(pair.0),
        follower_id: UserId(pair.1),
        edge_us,
        unfollow_us,
    });
    (event, unfollow_us)
}

/// The rule of `tideline.next_id()`; where two transactions would draw one id, the second one has
/// tried again.
fn next_post(world: &mut World, now: Micros) -> i64 {
    let millis = (now.0 - 1_735_689_600_000_000) / 1_000;
    world.pg.next_post += 1;
    let drawn = (millis << 22) | world.pg.next_post;
    let drawn_already = world
        .pg
        .open
        .iter()
        .flat_map(|txn| &txn.changes)
        .filter_map(|change| match change {
            Change::Post { id, .. } => Some(*id),
            _ => None,
        });
    let highest = drawn_already
        .chain(world.pg.posts.keys().copied())
        .max()
        .unwrap_or(0);
    if highest >= drawn { highest + 1 } else { drawn }
}

fn row(world: &mut World, event: Event, created_us: Micros, flaw: Option<Flaw>) -> Rc<Row> {
    let cached = world.below(world.pg.cached.len());
    let id = if !world.pg.cached.is_empty() && world.odds(500) {
        world.pg.cached.swap_remove(cached)
    } else {
        world.pg.next_event += 1;
        world.pg.next_event - 1
    };
    let uid = world.truth.name();
    Row::new(EventId(id), uid, created_us, event, flaw)
}

/// What the judge knows as soon as the client has sent the request.
fn note_begin(world: &mut World, change: &Change, step: u64) {
    match change {
        Change::Delete { post } => {
            if let Some(post) = world.pg.posts.get_mut(post) {
                post.deleting(step);
            }
        }
        Change::Unfollow { followee, follower } => {
            let pair = (*followee, *follower);
            let edges = world.pg.edges.iter_mut();
            for edge in edges.filter(|edge| (edge.followee, edge.follower) == pair) {
                edge.end_began = edge.end_began.or(Some(step));
            }
        }
        Change::Post { .. } | Change::Follow { .. } => {}
    }
}

fn apply(world: &mut World, change: &Change, txn: &Txn, step: u64) {
    match change {
        Change::Post {
            id,
            author,
            post_us,
            key,
        } => {
            let post = Post {
                author: *author,
                post_us: *post_us,
                key: key.clone(),
                began: txn.began,
                delete_began: None,
                is_deleted: false,
            };
            world.pg.posts.insert(*id, post);
        }
        Change::Delete { post } => {
            if let Some(post) = world.pg.posts.get_mut(post) {
                post.is_deleted = true;
            }
        }
        Change::Follow {
            followee,
            follower,
            edge_us,
        } => world.pg.edges.push(Edge {
            followee: *followee,
            follower: *follower,
            edge_us: *edge_us,
            visible: step,
            end_began: None,
            ended: None,
        }),
        Change::Unfollow { followee, follower } => {
            let pair = (*followee, *follower);
            let edges = world.pg.edges.iter_mut();
            for edge in edges.filter(|edge| (edge.followee, edge.follower) == pair) {
                edge.ended = edge.ended.or(Some(step));
            }
        }
    }
}

impl Post {
    fn deleting(&mut self, step: u64) {
        self.delete_began = self.delete_began.or(Some(step));
    }
}
