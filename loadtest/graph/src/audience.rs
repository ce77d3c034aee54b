//! How many followers the ordinary accounts have: a bounded Pareto distribution.
//!
//! Not drawn but dealt: of `n` accounts each has another rank, and the account of rank `r` has the
//! `(r + 1/2) / n` quantile. So a small graph has the same distribution as a large one, and its
//! largest audience does not hang on luck.

use crate::{
    permutation::{Permutation, key},
    shape::Shape,
};

/// Tells the permutation of ranks from others of the same seed.
const RANKS: u64 = 1;

#[derive(Clone, Debug)]
pub(crate) struct Audiences {
    ranks: Permutation,
    users: f64,
    smallest: u64,
    largest: u64,
    /// Exponent of the share above a size.
    tail: f64,
    /// The share above `largest` of the same distribution without that bound.
    cut: f64,
}

impl Audiences {
    /// The audiences of a shape that was checked.
    pub(crate) fn new(shape: &Shape) -> Self {
        let tail = shape.exponent - 1.0;
        let (low, high) = (shape.smallest as f64, shape.largest as f64 + 1.0);
        Self {
            ranks: Permutation::new(shape.users, key(shape.seed, [RANKS, 0])),
            users: shape.users as f64,
            smallest: shape.smallest,
            largest: shape.largest,
            tail,
            cut: libm::pow(low / high, tail),
        }
    }

    /// Followers of the account at `position`, 0 for the first.
    pub(crate) fn of(&self, position: u64) -> u64 {
        let quantile = (self.ranks.at(position) as f64 + 0.5) / self.users;
        let above = 1.0 - quantile * (1.0 - self.cut);
        let size = self.smallest as f64 * libm::pow(above, -1.0 / self.tail);
        (size as u64).clamp(self.smallest, self.largest)
    }

    /// The mean, within one percent: that of the continuous distribution, less what rounding down
    /// takes away.
    pub(crate) fn mean(&self) -> f64 {
        let (low, high) = (self.smallest as f64, self.largest as f64 + 1.0);
        let span = libm::log(high / low);
        let grown = if (self.tail - 1.0).abs() < 1e-9 {
            span
        } else {
            (1.0 - libm::exp((1.0 - self.tail) * span)) / (self.tail - 1.0)
        };
        low * self.tail * grown / (1.0 - self.cut) - 0.5
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn audiences(exponent: f64) -> (Audiences, Vec<u64>) {
        let shape = Shape {
            exponent,
            ..Shape::of(20_000, 3)
        };
        let audiences = Audiences::new(&shape);
        let sizes = (0..shape.users).map(|position| audiences.of(position));
        let sizes = sizes.collect();
        (audiences, sizes)
    }

    #[test]
    fn the_bounds_are_kept_and_nearly_reached() {
        let (_, sizes) = audiences(2.05);
        assert_eq!(sizes.iter().min(), Some(&4));
        let largest = sizes.iter().max().copied().unwrap();
        assert!((2_100..=2_250).contains(&largest), "{largest}");
    }

    #[test]
    fn the_mean_is_known_before() {
        for exponent in [1.5, 2.0, 2.05, 2.276, 3.0] {
            let (audiences, sizes) = audiences(exponent);
            let mean = sizes.iter().sum::<u64>() as f64 / sizes.len() as f64;
            let ratio = audiences.mean() / mean;
            assert!(
                (0.98..1.02).contains(&ratio),
                "{exponent}: {} for {mean}",
                audiences.mean()
            );
        }
    }
}
