//! Whoever writes: posts, deletes, follows, ends of follows, and rows that no program of ours would
//! write. Decides only what is asked for; how it commits is the world's.

use events::Micros;

use crate::{
    bugs::Bug,
    world::{
        World,
        postgres::{self, Change},
        row::Flaw,
    },
};

/// Accounts that write.
const AUTHORS: i64 = 5;
/// Accounts that follow.
const READERS: i64 = 6;
/// The first of them.
const FIRST_READER: i64 = 101;
/// Open transactions at most.
const OPEN: usize = 6;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Writer {
    keys: u64,
    /// Posts that were sent and not heard of again: the client repeats them.
    repeats: Vec<(i64, String)>,
}

impl Writer {
    /// Edges that are there from the beginning.
    pub(crate) fn settle(&mut self, world: &mut World) {
        for author in 1..=AUTHORS {
            let followers = world.below(usize::try_from(READERS).unwrap_or_default() + 1);
            for follower in (FIRST_READER..).take(followers) {
                let follow = follow(author, follower);
                postgres::begin(world, &[follow], None);
                let last = world.pg.open.len() - 1;
                postgres::end(world, last, true);
            }
        }
    }

    /// Something happens to a transaction, or one begins.
    pub(crate) fn step(&mut self, world: &mut World) -> bool {
        if !world.pg.is_up {
            return false;
        }
        let open = world.pg.open.len();
        if open > 0 && (open >= OPEN || world.odds(700)) {
            let index = world.below(open);
            self.go_on(index, world);
            return true;
        }
        if world.odds(60) {
            postgres::draw_event(world);
            return true;
        }
        self.begin(world)
    }

    /// A post of every author, so that something comes through every partition.
    pub(crate) fn last_posts(&mut self, world: &mut World) {
        for author in 1..=AUTHORS {
            let post = self.post(author);
            postgres::begin(world, &[post], None);
            let last = world.pg.open.len() - 1;
            postgres::end(world, last, true);
        }
    }

    fn go_on(&mut self, index: usize, world: &mut World) {
        let txn = &world.pg.open[index];
        let (is_flushed, has_xid) = (txn.is_flushed, txn.xid.is_some());
        if is_flushed {
            postgres::show(world, index);
        } else if world.odds(100) {
            postgres::rollback(world, index);
        } else if !has_xid && world.odds(500) {
            postgres::start_writing(world, index);
        } else if world.has_bug(Bug::SplitTransaction) && world.odds(300) {
            // The post goes first; what makes its event dies before it does.
            world.pg.open[index].rows.clear();
            postgres::flush(world, index);
        } else {
            postgres::flush(world, index);
        }
    }

    fn begin(&mut self, world: &mut World) -> bool {
        let changes = match world.rng.u32(..20) {
            0..=9 => self.posts(world),
            10..=12 => self.delete(world),
            13..=15 => self.follow(world),
            16..=17 => self.unfollow(world),
            18 => self.repeat(world),
            _ => return self.flawed(world),
        };
        if changes.is_empty() {
            return false;
        }
        postgres::begin(world, &changes, None);
        true
    }

    fn post(&mut self, author: i64) -> Change {
        self.keys += 1;
        Change::Post {
            id: 0,
            author,
            post_us: Micros(0),
            key: format!("key-{}", self.keys),
        }
    }

    /// Up to three posts in one transaction, as a load does.
    fn posts(&mut self, world: &mut World) -> Vec<Change> {
        let count = if world.odds(150) { 3 } else { 1 };
        (0..count)
            .map(|_| {
                let author = world.rng.i64(1..=AUTHORS);
                let post = self.post(author);
                if let Change::Post { author, key, .. } = &post
                    && self.repeats.len() < 4
                {
                    self.repeats.push((*author, key.clone()));
                }
                post
            })
            .collect()
    }

    /// The client sends a request again. The key is taken while a transaction holds it.
    fn repeat(&mut self, world: &mut World) -> Vec<Change> {
        let Some((author, key)) = self.repeats.pop() else {
            return Vec::new();
        };
        let is_taken = world.pg.posts.values().any(|post| (post.author, &post.key) == (author, &key))
            || world.pg.open.iter().any(|txn| {
                txn.changes.iter().any(|change| {
                    matches!(change, Change::Post { author: by, key: held, .. } if (*by, held) == (author, &key))
                })
            });
        if is_taken && !world.has_bug(Bug::ForgetKey) {
            return Vec::new();
        }
        vec![Change::Post {
            id: 0,
            author,
            post_us: Micros(0),
            key,
        }]
    }

    fn delete(&self, world: &mut World) -> Vec<Change> {
        let live: Vec<i64> = world
            .pg
            .posts
            .iter()
            .filter(|(id, post)| {
                !post.is_deleted && !world.pg.open.iter().any(|txn| txn.holds_post(**id))
            })
            .map(|(id, _)| *id)
            .collect();
        let at = world.below(live.len());
        live.get(at)
            .map(|post| Change::Delete { post: *post })
            .into_iter()
            .collect()
    }

    fn follow(&self, world: &mut World) -> Vec<Change> {
        let followee = world.rng.i64(1..=AUTHORS);
        let follower = world.rng.i64(FIRST_READER..FIRST_READER + READERS);
        let is_held = world
            .pg
            .open
            .iter()
            .any(|txn| txn.holds_pair((followee, follower)));
        if is_held || world.pg.edge(followee, follower).is_some() {
            return Vec::new();
        }
        vec![follow(followee, follower)]
    }

    fn unfollow(&self, world: &mut World) -> Vec<Change> {
        let edges: Vec<(i64, i64)> = world
            .pg
            .edges
            .iter()
            .filter(|edge| edge.ended.is_none())
            .map(|edge| (edge.followee, edge.follower))
            .filter(|pair| !world.pg.open.iter().any(|txn| txn.holds_pair(*pair)))
            .collect();
        let at = world.below(edges.len());
        let unfollow = edges.get(at).map(|(followee, follower)| Change::Unfollow {
            followee: *followee,
            follower: *follower,
        });
        unfollow.into_iter().collect()
    }

    /// A row that can never be delivered.
    fn flawed(&mut self, world: &mut World) -> bool {
        let flaw = Flaw::ALL[world.below(Flaw::ALL.len())];
        let post = self.post(1);
        postgres::begin(world, &[post], Some(flaw));
        true
    }
}

const fn follow(followee: i64, follower: i64) -> Change {
    Change::Follow {
        followee,
        follower,
        edge_us: Micros(0),
    }
}
