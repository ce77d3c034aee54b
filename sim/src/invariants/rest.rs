//! What holds once the faults are over and nothing moves any more: the account, the promise.

use std::collections::BTreeMap;

use events::{Event, EventType, Stage};

use super::{Invariant, delivery::is_owed, delivery::unserved};
use crate::world::{World, log::PARTITIONS};

/// What is not yet done, if anything; the invariant that asks for it.
pub(crate) fn unsettled(world: &World) -> Option<(Invariant, String)> {
    for stage in Stage::ALL {
        let account = &world.pg.account;
        let done = account.passed(stage).union(&account.finished(stage));
        let missing = world.pg.outbox.values().find(|row| {
            let known = EventType::from_name(row.type_name());
            let is_accounted = match stage {
                Stage::Published => true,
                Stage::Delivered => known.is_some_and(|known| stage.accounts_for(known)),
            };
            is_accounted && !done.contains(row.id)
        });
        if let Some(row) = missing {
            let text = format!("event {} is unaccounted for in {}", row.id, stage.as_str());
            return Some((Invariant::D9, text));
        }
    }
    let confirmed = world.pg.slot.and_then(|slot| slot.confirmed);
    if confirmed.is_none_or(|confirmed| confirmed < world.pg.lsn) {
        let end = world.pg.lsn;
        let text = format!("confirmed {confirmed:?} stays below the log's end {end}");
        return Some((Invariant::D4, text));
    }
    for (partition, part) in world.log.posts.iter().enumerate().take(PARTITIONS) {
        if part.end() > part.low && part.committed != Some(part.end()) {
            let (committed, end) = (part.committed, part.end());
            let text =
                format!("the group stays at {committed:?} of {end} in partition {partition}");
            return Some((Invariant::D6, text));
        }
    }
    None
}

/// Judges the end: everything is at rest.
pub(crate) fn at_rest(world: &mut World) {
    one_transaction(world);
    one_post_for_a_key(world);
    account_is_true(world);
    nothing_lost(world);
    nothing_foreign(world);
}

/// D-1: every post has its event, and the other way round, dropped days apart.
fn one_transaction(world: &mut World) {
    let created = |event: &Event| match event {
        Event::PostCreated(post) => Some(post.post_id.0),
        _ => None,
    };
    let known: Vec<i64> = world
        .truth
        .rows
        .values()
        .filter_map(|row| created(&row.event))
        .collect();
    let without = world
        .pg
        .posts
        .keys()
        .find(|post| !known.contains(post))
        .copied();
    if let Some(post) = without {
        world.violate(Invariant::D1, format!("post {post} has no event"));
    }
}

/// D-2.
fn one_post_for_a_key(world: &mut World) {
    let mut seen: BTreeMap<(i64, &str), i64> = BTreeMap::new();
    let mut twice = None;
    for (id, post) in &world.pg.posts {
        twice = twice.or(seen
            .insert((post.author, &post.key), *id)
            .map(|other| (other, *id)));
    }
    if let Some((first, second)) = twice {
        world.violate(
            Invariant::D2,
            format!("posts {first} and {second} have one key"),
        );
    }
}

/// D-9: what the ledger says is what happened.
fn account_is_true(world: &mut World) {
    let delivered = world.pg.account.passed(Stage::Delivered);
    let rows: Vec<_> = world
        .pg
        .outbox
        .values()
        .filter(|row| delivered.contains(row.id))
        .cloned()
        .collect();
    for row in rows {
        if let Some(owner) = unserved(world, &row.event) {
            let text = format!(
                "event {} is in the ledger and has not reached account {owner}",
                row.id
            );
            world.violate(Invariant::D9, text);
        }
    }
}

/// Every live post is in the timeline of everybody it is owed to.
fn nothing_lost(world: &mut World) {
    let mut lost = None;
    for (id, post) in world.pg.posts.iter().filter(|(_, post)| !post.is_deleted) {
        let owed = world
            .pg
            .edges
            .iter()
            .filter(|edge| is_owed(edge, post.author, post));
        for edge in owed {
            let is_there = world.store.live(edge.follower, *id, world.now).is_some();
            // A takeover that has undone a delete does not undo what the delete did to the store.
            let was_undone = world.truth.takeovers > 0
                && world.store.deleted.contains_key(&(edge.follower, *id));
            if !is_there && !was_undone && !was_given_up(world, *id) {
                lost = Some((*id, edge.follower));
            }
        }
    }
    if let Some((post, owner)) = lost {
        world.violate(
            Invariant::Promise,
            format!("post {post} is lost for account {owner}"),
        );
    }
}

/// Discarded as too old, or buried as past the horizon: told, counted, not delivered.
fn was_given_up(world: &World, post: i64) -> bool {
    let account = &world.pg.account;
    let given_up = world.pg.outbox.values().filter(|row| {
        account.is_discarded(Stage::Delivered, row.id)
            || account.has_letter(Stage::Delivered, row.id)
    });
    given_up.into_iter().any(|row| match &row.event {
        Event::PostCreated(created) => created.post_id.0 == post,
        Event::PostDeleted(deleted) => deleted.post_id.0 == post,
        Event::FollowCreated(_) | Event::FollowDeleted(_) => false,
    })
}

/// Nobody has a post who never followed in time, or a post that is deleted.
fn nothing_foreign(world: &mut World) {
    let mut found = Vec::new();
    for (owner, id, cell) in world.store.all(world.now) {
        let Some(post) = world.pg.posts.get(&id) else {
            // The reader finds no body: a post that a takeover undid, or an operator removed.
            continue;
        };
        // After a takeover an edge may be undone that was there when the row was written, and an id
        // may be drawn for a second post.
        let may = world.pg.edges.iter().any(|edge| {
            let is_pair = (edge.followee, edge.follower) == (post.author, owner);
            is_pair && edge.ended.is_none_or(|ended| ended > post.began)
        });
        if (!may || cell.author != post.author) && world.truth.takeovers == 0 {
            found.push((
                Invariant::Promise,
                format!("post {id} is in the timeline of account {owner}, who did not follow"),
            ));
        }
        // The delete was for everybody who followed when it was made and has gone on since.
        let was_followed = world.pg.edges.iter().any(|edge| {
            let is_pair = (edge.followee, edge.follower) == (post.author, owner);
            is_pair
                && edge.end_began.is_none()
                && post.delete_began.is_some_and(|at| edge.visible < at)
        });
        if post.is_deleted && was_followed && !was_given_up(world, id) {
            found.push((
                Invariant::D8,
                format!("post {id} is deleted and in the timeline of account {owner}"),
            ));
        }
    }
    for (invariant, text) in found {
        world.violate(invariant, text);
    }
}
