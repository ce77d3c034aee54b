//! How many accounts the ordinary accounts follow: classes of equal activity, log-normal over all.
//!
//! Who follows is drawn by activity: an author takes a share of each class, and the busier the
//! class, the larger. So follows come out log-normal although nobody's list is ever made.
//!
//! Each account belongs to the class of its rank, and ranks are a keyed permutation of all.

use std::f64::consts::SQRT_2;

use crate::{
    permutation::{Permutation, key},
    shape::{Shape, ShapeError},
};

/// Tells the permutation of ranks from others of the same seed.
const RANKS: u64 = 2;

/// Classes reach so many standard deviations to both sides.
const REACH: i32 = 45;

/// Classes in one standard deviation.
const STEPS: f64 = 10.0;

/// What somebody follows scatters around their activity like a Poisson count; so many of its
/// standard deviations stay below the most follows.
const MARGIN: f64 = 5.0;

/// Accounts of equal activity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Class {
    /// Rank of its first account.
    pub(crate) start: u64,
    /// How many they are; at least one.
    pub(crate) size: u64,
    /// Follows that each of them makes on average.
    pub(crate) activity: f64,
}

#[derive(Clone, Debug)]
pub(crate) struct Activity {
    ranks: Permutation,
    classes: Vec<Class>,
    /// Follows of all together.
    total: f64,
}

impl Activity {
    /// The classes of a shape that was checked, when each account makes `mean` follows.
    ///
    /// # Errors
    /// When so many follows do not fit under the most of each account.
    pub(crate) fn new(shape: &Shape, mean: f64) -> Result<Self, ShapeError> {
        let room = shape
            .most_follows
            .saturating_sub(shape.celebrities.len() as u64);
        let most = most_on_average(room as f64);
        if mean > most {
            return Err(ShapeError::Follows {
                mean,
                most_follows: shape.most_follows,
            });
        }
        let mut classes = by_rank(shape);
        scale(&mut classes, mean * shape.users as f64, most);
        Ok(Self {
            ranks: Permutation::new(shape.users, key(shape.seed, [RANKS, 0])),
            total: classes.iter().map(Class::follows).sum(),
            classes,
        })
    }

    /// From the least active to the busiest.
    pub(crate) fn classes(&self) -> &[Class] {
        &self.classes
    }

    /// Follows of all together, when nobody's audience is so large that it runs out of accounts.
    pub(crate) const fn total(&self) -> f64 {
        self.total
    }

    /// The rank of the account at `position`, 0 for the first.
    pub(crate) fn rank(&self, position: u64) -> u64 {
        self.ranks.at(position)
    }

    /// The position of the account with this rank.
    pub(crate) fn position(&self, rank: u64) -> u64 {
        self.ranks.index_of(rank)
    }
}

impl Class {
    /// Follows of the whole class.
    fn follows(&self) -> f64 {
        self.size as f64 * self.activity
    }
}

/// The mean of a Poisson count that stays below `most` by the margin.
fn most_on_average(most: f64) -> f64 {
    let root = (-MARGIN + (MARGIN * MARGIN + 4.0 * most).sqrt()) / 2.0;
    root * root
}

/// The normal distribution in steps; activity is relative to the median.
fn by_rank(shape: &Shape) -> Vec<Class> {
    let rank = |step: i32| match step.abs() {
        REACH if step < 0 => 0,
        REACH => shape.users,
        _ => {
            let below = 0.5 * libm::erfc(-f64::from(step) / STEPS / SQRT_2);
            (below * shape.users as f64).round() as u64
        }
    };
    let class = |step: i32| {
        let start = rank(step);
        Class {
            start,
            size: rank(step + 1) - start,
            activity: libm::exp(shape.follows_sigma * (f64::from(step) + 0.5) / STEPS),
        }
    };
    let all = (-REACH..REACH).map(class);
    all.filter(|class| class.size > 0).collect()
}

/// Brings the classes to `total` follows together, none above `most` for each account.
fn scale(classes: &mut [Class], total: f64, most: f64) {
    let reached = |scale: f64| -> f64 {
        let scaled = classes
            .iter()
            .map(|class| class.size as f64 * (class.activity * scale).min(most));
        scaled.sum()
    };
    let (mut low, mut high) = (0.0, 1.0);
    while reached(high) < total && high < 1e30 {
        (low, high) = (high, high * 2.0);
    }
    // Halved so often, the interval is as small as a double can tell.
    for _ in 0..64 {
        let middle = (low + high) / 2.0;
        if reached(middle) < total {
            low = middle;
        } else {
            high = middle;
        }
    }
    for class in classes {
        class.activity = (class.activity * high).min(most);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_hold_every_account_and_every_follow() {
        for users in [2, 10, 1_000, 456_626] {
            let shape = Shape::of(users, 1);
            let activity = Activity::new(&shape, 30.0).unwrap();
            let mut next = 0;
            for class in activity.classes() {
                assert_eq!(class.start, next);
                next += class.size;
            }
            assert_eq!(next, users);
            let ratio = activity.total() / (30.0 * users as f64);
            assert!((0.999..1.001).contains(&ratio), "{ratio}");
        }
    }

    #[test]
    fn nobody_is_meant_to_follow_more_than_the_most() {
        let shape = Shape {
            follows_sigma: 3.0,
            most_follows: 100,
            ..Shape::of(1_000, 1)
        };
        let activity = Activity::new(&shape, 40.0).unwrap();
        let busiest = activity.classes().last().unwrap().activity;
        assert!((busiest + MARGIN * busiest.sqrt()) < 100.1, "{busiest}");
        let error = Activity::new(&shape, 90.0).unwrap_err();
        assert!(
            error.to_string().contains("90 follows of each account"),
            "{error}"
        );
    }
}
