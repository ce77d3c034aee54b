//! D-6, D-7, D-8, and D-12 where fan-out buries records.

use events::Event;

use super::Invariant;
use crate::world::{
    World, log,
    postgres::{Edge, Post},
    store::Insert,
};

/// An edge newer than the post by more than this is not for fan-out.
const LATE_EDGE_US: i64 = events::Micros::HOUR;
/// How far the end of a row that is written again may be off, microseconds.
const EXPIRY_US: i64 = 5_000_000;

/// Whether the edge obliges: it was seen before the post was sent, and nobody has begun to end it.
pub(crate) fn is_owed(edge: &Edge, author: i64, post: &Post) -> bool {
    edge.followee == author
        && edge.visible < post.began
        && edge.end_began.is_none()
        && edge.edge_us <= post.post_us.plus(LATE_EDGE_US)
}

/// A follower that has not got what the event is about, if there is one.
pub(crate) fn unserved(world: &World, event: &Event) -> Option<i64> {
    let (post_id, author, post_us) = match event {
        Event::PostCreated(post) => (post.post_id.0, post.author_id.0, post.post_us),
        Event::PostDeleted(post) => (post.post_id.0, post.author_id.0, post.post_us),
        Event::FollowCreated(_) | Event::FollowDeleted(_) => return None,
    };
    // A post that is gone, or is another, is owed to nobody.
    let post = world.pg.posts.get(&post_id)?;
    if (post.author, post.post_us) != (author, post_us) {
        return None;
    }
    let mut owed = world
        .pg
        .edges
        .iter()
        .filter(|edge| is_owed(edge, author, post));
    match event {
        Event::PostCreated(_) if post.is_deleted => None,
        Event::PostCreated(_) => owed.find(|edge| {
            // A delete may reach the store before its commit is visible, or outlive a takeover
            // that has undone it.
            let pair = (edge.follower, post_id);
            !world.store.has(pair.0, pair.1) && !world.store.deleted.contains_key(&pair)
        }),
        Event::PostDeleted(_) => {
            owed.find(|edge| !world.store.deleted.contains_key(&(edge.follower, post_id)))
        }
        Event::FollowCreated(_) | Event::FollowDeleted(_) => None,
    }
    .map(|edge| edge.follower)
}

/// D-6: the group's offset of a partition moves. A move back is a replay and breaks nothing.
pub(crate) fn at_commit(world: &mut World, partition: usize, offset: i64) {
    let part = &world.log.posts[partition];
    let from = part.judged;
    if offset > part.end() {
        // Of a topic that is gone; the client has not noticed.
        return;
    }
    for (place, rec) in log::places(world, partition, from, offset) {
        // What was delivered under a server that is gone was right by what that server said.
        let is_of_before = rec.at < world.truth.took_over_at;
        if is_of_before
            || world.truth.buried.contains(&place)
            || world.truth.ghosts.contains(&place)
        {
            continue;
        }
        let Some(event) = Event::decode(&rec.type_name, &rec.payload).ok() else {
            let text = format!(
                "offset {offset} passes {}, which is no event and is not buried",
                place.2
            );
            world.violate(Invariant::D6, text);
            return;
        };
        if rec.key.as_ref() != event.partition_key().to_string().as_bytes() {
            let text = format!(
                "offset {offset} passes {}, whose key is wrong, and it is not buried",
                place.2
            );
            world.violate(Invariant::D6, text);
            return;
        }
        if let Some(owner) = unserved(world, &event) {
            let text = format!(
                "offset {offset} of partition {partition} passes {}: event {} has not reached account {owner}",
                place.2, rec.event
            );
            world.violate(Invariant::D6, text);
            return;
        }
    }
    let part = &mut world.log.posts[partition];
    part.judged = part.judged.max(offset);
}

/// D-12: fan-out gives a record up; `is_wrong`: it is no event, its key is wrong or its post is
/// past the horizon.
pub(crate) fn at_deliver_letter(world: &mut World, event: i64, is_wrong: bool) {
    if !is_wrong {
        world.violate(
            Invariant::D12,
            format!("event {event} went to fan-out's dead letters, and nothing is wrong with it"),
        );
    }
}

/// D-7 and D-8: a row was applied.
pub(crate) fn at_write(world: &mut World, insert: &Insert) {
    let row = insert.row;
    // With the end, since a takeover lets an id be drawn for another post.
    let key = (row.owner.0, row.post.0, insert.edge_us, row.expires_us);
    // By Postgres's clock as it stood when it was asked: a clock that was set since makes no row
    // longer or shorter.
    let clock = world.clock().0 - world.pg.clock_step + insert.clock_step;
    let ends = clock + i64::from(insert.ttl) * 1_000_000;
    let (write_us, first_ends) = *world.store.first.entry(key).or_insert((row.write_us, ends));
    if write_us != row.write_us {
        let text = format!(
            "post {} for account {} was written at {write_us} and again at {}",
            row.post, row.owner, row.write_us
        );
        world.violate(Invariant::D7, text);
    }
    if (first_ends - ends).abs() > EXPIRY_US {
        let text = format!(
            "post {} for account {} ends {} s later than when it was first written",
            row.post,
            row.owner,
            (ends - first_ends) / 1_000_000
        );
        world.violate(Invariant::D7, text);
    }
    let pair = (row.owner.0, row.post.0);
    let was_deleted = world.store.deleted.contains_key(&pair);
    if was_deleted && world.store.live(pair.0, pair.1, world.now).is_some() {
        let text = format!(
            "post {} was deleted for account {} and is back",
            row.post, row.owner
        );
        world.violate(Invariant::D8, text);
    }
}
