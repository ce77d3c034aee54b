//! The property of a whole walk over merge, fill and cursor, while the world changes under it
//! (scenarios 43 and 45).
//!
//! For any interleaving of sources, filters, page sizes and changes: a post that is stored and
//! visible during the whole walk appears exactly once, every other at most once, newest first.

use std::collections::{BTreeMap, BTreeSet};

use events::{PostId, UserId};
use proptest::prelude::*;

use crate::core::{
    cursor::{Cursors, List},
    fill::Fill,
    merge::{Entry, Window, merge},
};

const HOME: List = List::Home(UserId(0));
const AUTHORS: i64 = 4;
const IDS: i64 = 120;

/// Author 0 is the reader: own posts need no follow.
#[derive(Clone, Debug)]
struct World {
    sources: [BTreeMap<i64, i64>; 2],
    deleted: BTreeSet<i64>,
    followed: BTreeSet<i64>,
}

#[derive(Clone, Debug)]
enum Change {
    Store { source: usize, id: i64 },
    Drop { source: usize, id: i64 },
    Delete(i64),
    Follow(i64),
    Unfollow(i64),
}

impl World {
    fn visible(&self, id: i64) -> bool {
        let author = author_of(id);
        !self.deleted.contains(&id) && (author == 0 || self.followed.contains(&author))
    }

    fn shown(&self) -> BTreeSet<i64> {
        let stored = self.sources.iter().flat_map(BTreeMap::keys);
        stored.copied().filter(|&id| self.visible(id)).collect()
    }

    fn load(&self, source: usize, before: Option<PostId>, rows: usize) -> Window {
        let end = before.map_or(i64::MAX, |before| before.0);
        let entries: Vec<Entry> = self.sources[source]
            .range(..end)
            .rev()
            .take(rows)
            .map(|(&id, &author)| Entry {
                post: PostId(id),
                author: UserId(author),
            })
            .collect();
        let exhausted = entries.len() < rows;
        Window { entries, exhausted }
    }

    fn apply(&mut self, change: &Change) {
        match *change {
            Change::Store { source, id } => {
                self.sources[source].insert(id, author_of(id));
            }
            Change::Drop { source, id } => {
                self.sources[source].remove(&id);
            }
            Change::Delete(id) => {
                self.deleted.insert(id);
            }
            Change::Follow(author) => {
                self.followed.insert(author);
            }
            Change::Unfollow(author) => {
                self.followed.remove(&author);
            }
        }
    }
}

/// An author belongs to a post for ever, so it is a function of the id.
fn author_of(id: i64) -> i64 {
    id * 7 % AUTHORS
}

/// Walks all pages; one change is applied before each load of a source and before each filter.
fn walk(world: &mut World, changes: &[Change], limits: &[usize]) -> (Vec<i64>, BTreeSet<i64>) {
    let cursors = Cursors::new([3; 32]);
    let mut always = world.shown();
    let mut changes = changes.iter();
    let mut step = |world: &mut World, always: &mut BTreeSet<i64>| {
        if let Some(change) = changes.next() {
            world.apply(change);
            *always = always.intersection(&world.shown()).copied().collect();
        }
    };
    let mut seen = Vec::new();
    let mut cursor: Option<String> = None;
    for limit in limits.iter().cycle().take(1_000) {
        let position = cursor.map(|text| PostId(cursors.open(HOME, &text).unwrap()));
        let mut fill = Fill::new(position, *limit);
        while let Some(load) = fill.next_load() {
            let windows = [0, 1].map(|source| {
                step(world, &mut always);
                world.load(source, load.before, load.rows)
            });
            step(world, &mut always);
            fill.consume(&merge(&windows), |entry| world.visible(entry.post.0));
        }
        let page = fill.finish();
        assert!(page.posts.len() <= *limit);
        seen.extend(page.posts.iter().map(|post| post.0));
        cursor = page.next.map(|next| cursors.seal(HOME, next.0));
        if cursor.is_none() {
            return (seen, always);
        }
    }
    panic!("the walk did not end");
}

fn source() -> impl Strategy<Value = BTreeMap<i64, i64>> {
    prop::collection::btree_set(0..IDS, 0..100)
        .prop_map(|ids| ids.into_iter().map(|id| (id, author_of(id))).collect())
}

fn world() -> impl Strategy<Value = World> {
    let deleted = prop::collection::btree_set(0..IDS, 0..60);
    let followed = prop::collection::btree_set(1..AUTHORS, 0..4);
    ([source(), source()], deleted, followed).prop_map(|(sources, deleted, followed)| World {
        sources,
        deleted,
        followed,
    })
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        (0..2_usize, 0..IDS).prop_map(|(source, id)| Change::Store { source, id }),
        (0..2_usize, 0..IDS).prop_map(|(source, id)| Change::Drop { source, id }),
        (0..IDS).prop_map(Change::Delete),
        (1..AUTHORS).prop_map(Change::Follow),
        (1..AUTHORS).prop_map(Change::Unfollow),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn a_walk_has_no_gap_and_no_repeat(
        mut world in world(),
        changes in prop::collection::vec(change(), 0..60),
        limits in prop::collection::vec(1..12_usize, 1..6),
    ) {
        let (seen, always) = walk(&mut world, &changes, &limits);
        prop_assert!(seen.windows(2).all(|pair| pair[0] > pair[1]), "not newest first, or repeated: {seen:?}");
        let missing: Vec<_> = always.iter().filter(|id| !seen.contains(id)).collect();
        prop_assert!(missing.is_empty(), "visible all the time and not shown: {missing:?}");
    }

    #[test]
    fn a_walk_through_a_still_world_shows_exactly_what_is_visible(
        mut world in world(),
        limits in prop::collection::vec(1..12_usize, 1..6),
    ) {
        let expected: Vec<i64> = world.shown().into_iter().rev().collect();
        prop_assert_eq!(walk(&mut world, &[], &limits).0, expected);
    }
}
