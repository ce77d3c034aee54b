//! The graph itself: any author's followers, one after the other, out of nothing but the shape.

use std::ops::Range;

use crate::{
    activity::{Activity, Class},
    audience::Audiences,
    permutation::{Permutation, key},
    shape::{Shape, ShapeError},
};

/// Tells the permutations inside classes from others of the same seed; the author is added.
const MEMBERS: u64 = 1 << 48;

/// Tells where the rounding of shares starts; the author is added.
const ROUNDING: u64 = 2 << 48;

/// Below this share of the busiest class, taking followers away from it changes nothing.
const THIN: f64 = 0.01;

/// Who follows whom. Accounts are 1 to [`Graph::accounts`]; celebrities are the last of them.
#[derive(Clone, Debug)]
pub struct Graph {
    shape: Shape,
    audiences: Audiences,
    activity: Activity,
}

impl Graph {
    /// The graph of this shape.
    ///
    /// # Errors
    /// A wish that cannot be had.
    pub fn new(shape: Shape) -> Result<Self, ShapeError> {
        shape.check()?;
        let audiences = Audiences::new(&shape);
        let activity = Activity::new(&shape, audiences.mean())?;
        Ok(Self {
            shape,
            audiences,
            activity,
        })
    }

    /// Its shape.
    pub const fn shape(&self) -> &Shape {
        &self.shape
    }

    /// How many accounts there are, celebrities included.
    pub fn accounts(&self) -> u64 {
        self.shape.users + self.shape.celebrities.len() as u64
    }

    /// The celebrities, in the order of the shape.
    pub fn celebrities(&self) -> Range<u64> {
        self.shape.users + 1..self.accounts() + 1
    }

    /// How many followers an account has; none when there is no such account.
    pub fn follower_count(&self, author: u64) -> u64 {
        match author.checked_sub(1) {
            None => 0,
            Some(position) if position < self.shape.users => self.audiences.of(position),
            Some(position) => {
                let celebrity = usize::try_from(position - self.shape.users).ok();
                celebrity
                    .and_then(|index| self.shape.celebrities.get(index).copied())
                    .unwrap_or(0)
            }
        }
    }

    /// The followers of an account, each once, never itself, in no particular order. Holds about
    /// a kilobyte, however many they are.
    pub fn followers(&self, author: u64) -> impl Iterator<Item = u64> + '_ {
        let shares = self.shares(author, self.own_rank(author));
        shares.into_iter().flat_map(move |share| {
            let members = Permutation::new(
                share.class.size - u64::from(share.own.is_some()),
                key(
                    self.shape.seed,
                    [MEMBERS.wrapping_add(author), share.class.start],
                ),
            );
            (0..share.count).map(move |index| {
                let member = members.at(index);
                // The author's own place is left out.
                let member = member + u64::from(share.own.is_some_and(|own| member >= own));
                self.activity.position(share.class.start + member) + 1
            })
        })
    }

    /// Whether `follower` follows `followee`; costs the same for any audience.
    pub fn follows(&self, follower: u64, followee: u64) -> bool {
        if follower == followee || !(1..=self.shape.users).contains(&follower) {
            return false;
        }
        let rank = self.activity.rank(follower - 1);
        let shares = self.shares(followee, self.own_rank(followee));
        let placed = shares
            .iter()
            .find_map(|share| Some((share, share.class.place_of(rank)?)));
        placed.is_some_and(|(share, place)| {
            let member = place - u64::from(share.own.is_some_and(|own| place > own));
            self.members(followee, share).index_of(member) < share.count
        })
    }

    /// Every follow, as (follower, followee): author after author, by rising number.
    pub fn edges(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        (1..=self.accounts()).flat_map(|author| {
            self.followers(author)
                .map(move |follower| (follower, author))
        })
    }

    /// The author's own rank, when it is somebody who follows.
    fn own_rank(&self, author: u64) -> Option<u64> {
        let follows = (1..=self.shape.users).contains(&author);
        follows.then(|| self.activity.rank(author - 1))
    }

    /// The members of a class in the order in which they follow this author.
    fn members(&self, author: u64, share: &Share) -> Permutation {
        let purpose = [MEMBERS.wrapping_add(author), share.class.start];
        Permutation::new(share.room(), key(self.shape.seed, purpose))
    }

    /// How many followers each class gives to an author.
    fn shares(&self, author: u64, own_rank: Option<u64>) -> Vec<Share> {
        let audience = self.follower_count(author);
        let offers = self.activity.classes().iter().map(|&class| Share {
            class,
            own: own_rank.and_then(|rank| class.place_of(rank)),
            count: 0,
        });
        let mut shares: Vec<Share> = offers.collect();
        let pull = self.pull(audience, &shares);
        // Systematic rounding: each share is its wish rounded up or down, by chance in the right
        // proportion, and all together are the audience.
        let mut start =
            key(self.shape.seed, [ROUNDING.wrapping_add(author), 0]) as f64 / 2_f64.powi(64);
        let mut left = audience;
        let mut behind: u64 = shares.iter().map(Share::room).sum();
        for share in &mut shares {
            behind -= share.room();
            let end = start + pull.wish(share);
            let rounded = end.floor() as u64 - start.floor() as u64;
            start = end;
            // What later classes have no room for stays here.
            let least = left.saturating_sub(behind);
            share.count = rounded.max(least).min(left).min(share.room());
            left -= share.count;
        }
        shares.retain(|share| share.count > 0);
        shares
    }

    /// How strongly an author pulls, so that as many follow as the audience is.
    fn pull(&self, audience: u64, shares: &[Share]) -> Pull {
        let audience = audience as f64;
        let linear = audience / self.activity.total();
        let busiest = shares.last().map_or(0.0, |share| share.class.activity);
        if linear * busiest < THIN {
            return Pull::Linear(linear);
        }
        // Somebody of activity `a` follows with the chance 1 - exp(-pull * a). The sum of these
        // is concave, so Newton's method comes from below and never overshoots.
        let mut pull = linear;
        for _ in 0..100 {
            let (mut reached, mut slope) = (0.0, 0.0);
            for share in shares {
                let missed = share.room() as f64 * libm::exp(-pull * share.class.activity);
                reached += share.room() as f64 - missed;
                slope += missed * share.class.activity;
            }
            let missing = audience - reached;
            if missing < 1e-6 || slope <= 0.0 {
                break;
            }
            pull += missing / slope;
        }
        Pull::Saturating(pull)
    }
}

/// A class, and how many of it follow an author.
#[derive(Clone, Copy, Debug)]
struct Share {
    class: Class,
    /// The author's own place in the class.
    own: Option<u64>,
    count: u64,
}

impl Share {
    /// How many could follow.
    fn room(&self) -> u64 {
        self.class.size - u64::from(self.own.is_some())
    }
}

/// How the chance to follow grows with activity.
#[derive(Clone, Copy, Debug)]
enum Pull {
    /// In proportion: as good as exact while all chances are small.
    Linear(f64),
    /// The busiest follow almost surely.
    Saturating(f64),
}

impl Pull {
    /// Followers that the class should give.
    fn wish(self, share: &Share) -> f64 {
        let chance = match self {
            Self::Linear(pull) => pull * share.class.activity,
            Self::Saturating(pull) => 1.0 - libm::exp(-pull * share.class.activity),
        };
        share.room() as f64 * chance
    }
}

impl Class {
    /// The place of this rank in the class.
    fn place_of(&self, rank: u64) -> Option<u64> {
        let place = rank.checked_sub(self.start)?;
        (place < self.size).then_some(place)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn followers_are_as_many_as_counted_each_once_and_never_the_author(
            users in 2..80_u64,
            seed: u64,
            celebrity in 0.0..=1.0_f64,
            sigma in 0.0..3.0_f64,
        ) {
            let audience = (celebrity * users as f64) as u64;
            let shape = Shape {
                follows_sigma: sigma,
                most_follows: 100_000,
                celebrities: vec![audience, users],
                ..Shape::of(users, seed)
            };
            let graph = Graph::new(shape).unwrap();
            prop_assert_eq!(graph.follower_count(users + 1), audience);
            for author in 1..=graph.accounts() {
                let followers: Vec<u64> = graph.followers(author).collect();
                let distinct: BTreeSet<u64> = followers.iter().copied().collect();
                prop_assert_eq!(followers.len() as u64, graph.follower_count(author));
                prop_assert_eq!(distinct.len(), followers.len());
                prop_assert!(!distinct.contains(&author));
                prop_assert!(distinct.iter().all(|follower| (1..=users).contains(follower)));
                for follower in 0..=graph.accounts() + 1 {
                    prop_assert_eq!(graph.follows(follower, author), distinct.contains(&follower));
                }
            }
        }
    }

    #[test]
    fn the_seed_decides() {
        let edges = |seed| {
            let graph = Graph::new(Shape::of(300, seed)).unwrap();
            graph.edges().collect::<Vec<_>>()
        };
        assert_eq!(edges(1), edges(1));
        assert_ne!(edges(1), edges(2));
    }

    /// Changing this changes every graph that somebody has loaded, and every journal that names
    /// one by its shape.
    #[test]
    fn the_graph_of_a_seed_stays_what_it_is() {
        let graph = Graph::new(Shape::of(1_000, 7)).unwrap();
        let first: Vec<u64> = graph.followers(1).collect();
        let sum = graph.edges().fold(0_u64, |sum, (follower, followee)| {
            sum.wrapping_mul(31)
                .wrapping_add(follower * 1_009 + followee)
        });
        assert_eq!(
            (first, sum),
            (vec![300, 738, 847, 51], 7_081_690_049_584_125_786)
        );
    }

    #[test]
    fn there_is_nobody_beyond_the_last() {
        let graph = Graph::new(Shape {
            celebrities: vec![5],
            ..Shape::of(10, 1)
        })
        .unwrap();
        assert_eq!(graph.celebrities(), 11..12);
        for nobody in [0, 12, u64::MAX] {
            assert_eq!(graph.followers(nobody).count(), 0);
        }
    }
}
