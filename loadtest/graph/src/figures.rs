//! What degrees look like in numbers, and the published numbers to hold them against.
//!
//! Owns the fit of a tail (Clauset, Shalizi and Newman, "Power-law distributions in empirical
//! data", 2009): maximum likelihood above a bound, and the bound where the fitted law is closest.

use std::collections::BTreeMap;

use crate::Graph;

/// Above fewer degrees than this no tail is fitted: chance would decide.
const FEWEST: f64 = 250.0;

/// Bounds that are tried, spread evenly over the logarithm.
const BOUNDS: usize = 60;

/// Tails are fitted from this degree on: below it the approximation for whole numbers is rough.
const FIRST_BOUND: f64 = 6.0;

/// A power law fitted to the large degrees.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tail {
    /// Of the density.
    pub exponent: f64,
    /// The law holds from this degree on.
    pub from: u64,
    /// The largest distance between the law's and the real share below a degree.
    pub distance: f64,
}

/// One side of a graph: followers, or follows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Degrees {
    /// The largest.
    pub largest: u64,
    /// The middle one.
    pub median: u64,
    /// The mean.
    pub mean: f64,
    /// 0: all have the same; 1: one has all.
    pub gini: f64,
    /// `None`: too few degrees to fit one.
    pub tail: Option<Tail>,
}

/// What a graph looks like in numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figures {
    /// Accounts.
    pub accounts: u64,
    /// Follows.
    pub edges: u64,
    /// How many followers accounts have.
    pub followers: Degrees,
    /// How many accounts somebody follows.
    pub follows: Degrees,
    /// Of followers and follows of each account taken together.
    pub gini_of_both: f64,
}

/// What is published about a real graph; `None`: not published.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Published {
    /// Which.
    pub name: &'static str,
    /// Accounts.
    pub accounts: Option<u64>,
    /// Follows.
    pub edges: Option<u64>,
    /// The largest audience.
    pub most_followers: Option<u64>,
    /// The most follows.
    pub most_follows: Option<u64>,
    /// Tail exponent of followers.
    pub followers_exponent: Option<f64>,
    /// Tail exponent of follows.
    pub follows_exponent: Option<f64>,
    /// Of degrees; of which side is not said.
    pub gini: Option<f64>,
}

/// Higgs/Twitter, 2012, as SNAP and KONECT have it.
pub const HIGGS: Published = Published {
    name: "Higgs/Twitter 2012",
    accounts: Some(456_626),
    edges: Some(14_855_842),
    most_followers: Some(51_386),
    most_follows: Some(1_259),
    followers_exponent: Some(2.05),
    follows_exponent: Some(2.67),
    gini: Some(0.72),
};

/// All of Twitter in 2009: Kwak, Lee, Park and Moon, 2010. Larger audiences than about 10^5 are
/// more than the exponent tells.
pub const TWITTER_2009: Published = Published {
    name: "Twitter 2009",
    accounts: Some(41_700_000),
    edges: Some(1_470_000_000),
    most_followers: None,
    most_follows: None,
    followers_exponent: Some(2.276),
    follows_exponent: None,
    gini: None,
};

impl Figures {
    /// Measures a graph, edge by edge. Holds eight bytes an account.
    pub fn of(graph: &Graph) -> Self {
        let mut follows: Vec<u32> = Vec::new();
        for (follower, _) in graph.edges() {
            let position = usize::try_from(follower).unwrap_or(usize::MAX);
            if follows.len() < position {
                follows.resize(position, 0);
            }
            if let Some(count) = follows.get_mut(position - 1) {
                *count += 1;
            }
        }
        follows.resize(usize::try_from(graph.accounts()).unwrap_or(usize::MAX), 0);
        let followers = (1..=graph.accounts()).map(|author| graph.follower_count(author));
        let (mut by_followers, mut by_follows, mut by_both) = (
            Histogram::default(),
            Histogram::default(),
            Histogram::default(),
        );
        for (followers, &follows) in followers.zip(&follows) {
            by_followers.add(followers);
            by_follows.add(u64::from(follows));
            by_both.add(followers + u64::from(follows));
        }
        Self {
            accounts: graph.accounts(),
            edges: by_follows.total(),
            followers: by_followers.degrees(),
            follows: by_follows.degrees(),
            gini_of_both: by_both.gini(),
        }
    }
}

/// How many accounts have which degree.
#[derive(Clone, Debug, Default)]
pub struct Histogram {
    counts: BTreeMap<u64, u64>,
}

impl Histogram {
    /// Counts one account of this degree.
    pub fn add(&mut self, degree: u64) {
        *self.counts.entry(degree).or_default() += 1;
    }

    /// What the degrees look like.
    pub fn degrees(&self) -> Degrees {
        let accounts = self.accounts();
        let mut below = 0;
        let median = self.counts.iter().find(|(_, count)| {
            below += *count;
            below * 2 >= accounts
        });
        Degrees {
            largest: self
                .counts
                .last_key_value()
                .map_or(0, |(&degree, _)| degree),
            median: median.map_or(0, |(&degree, _)| degree),
            mean: self.total() as f64 / accounts.max(1) as f64,
            gini: self.gini(),
            tail: self.tail(),
        }
    }

    /// The sum of all degrees.
    pub fn total(&self) -> u64 {
        self.counts
            .iter()
            .map(|(degree, count)| degree * count)
            .sum()
    }

    fn accounts(&self) -> u64 {
        self.counts.values().sum()
    }

    fn gini(&self) -> f64 {
        let (accounts, total) = (self.accounts() as f64, self.total() as f64);
        if total == 0.0 {
            return 0.0;
        }
        // Twice the area under the Lorenz curve, trapezoid by trapezoid.
        let (mut area, mut reached) = (0.0, 0.0);
        for (&degree, &count) in &self.counts {
            let share = degree as f64 * count as f64 / total;
            area += count as f64 / accounts * (2.0 * reached + share);
            reached += share;
        }
        1.0 - area
    }

    /// The law that is closest to the degrees above its bound, over all bounds.
    fn tail(&self) -> Option<Tail> {
        let degrees: Vec<(f64, f64)> = (self.counts.iter())
            .map(|(&degree, &count)| (degree as f64, count as f64))
            .collect();
        let largest = degrees.last()?.0.max(FIRST_BOUND);
        let ratio = libm::pow(largest / FIRST_BOUND, 1.0 / BOUNDS as f64);
        let mut bounds: Vec<u64> = (0..BOUNDS)
            .map(|step| (FIRST_BOUND * libm::pow(ratio, step as f64)).round() as u64)
            .collect();
        bounds.dedup();
        let fits = bounds.into_iter().filter_map(|from| fit(&degrees, from));
        fits.min_by(|a, b| a.distance.total_cmp(&b.distance))
    }
}

/// The likeliest power law of the degrees from `from` on, with the half that makes the continuous
/// law one of whole numbers.
fn fit(degrees: &[(f64, f64)], from: u64) -> Option<Tail> {
    let above = degrees.partition_point(|&(degree, _)| degree < from as f64);
    let above = degrees.get(above..)?;
    let low = from as f64 - 0.5;
    let accounts: f64 = above.iter().map(|(_, count)| count).sum();
    if accounts < FEWEST {
        return None;
    }
    let logs: f64 = (above.iter())
        .map(|(degree, count)| count * libm::log(degree / low))
        .sum();
    let exponent = 1.0 + accounts / logs;
    let (mut reached, mut distance) = (0.0, 0.0_f64);
    for (degree, count) in above {
        reached += count / accounts;
        let law = 1.0 - libm::pow((degree + 0.5) / low, 1.0 - exponent);
        distance = distance.max((law - reached).abs());
    }
    Some(Tail {
        exponent,
        from,
        distance,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn histogram(degrees: impl IntoIterator<Item = u64>) -> Histogram {
        let mut histogram = Histogram::default();
        degrees.into_iter().for_each(|degree| histogram.add(degree));
        histogram
    }

    #[test]
    fn gini_of_known_spreads() {
        let rows = [
            (vec![5, 5, 5, 5], 0.0),
            (vec![0, 0, 0, 4], 0.75),
            (vec![1, 2, 3, 4], 0.25),
            (vec![0, 0], 0.0),
        ];
        for (degrees, expected) in rows {
            let gini = histogram(degrees.clone()).gini();
            assert!((gini - expected).abs() < 1e-12, "{degrees:?}: {gini}");
        }
    }

    #[test]
    fn mean_median_and_largest() {
        let degrees = histogram([1, 1, 2, 3, 10]).degrees();
        assert_eq!(
            (degrees.largest, degrees.median, degrees.mean),
            (10, 2, 3.4)
        );
        assert_eq!(degrees.tail, None, "five are too few");
    }

    /// A body that is no power law, and above 50 one whose exponent is known.
    #[test]
    fn the_exponent_of_a_known_tail_is_found() {
        for exponent in [2.05, 2.276, 2.67, 3.2] {
            let tail = (0..20_000_u32).map(|index| {
                let above = (f64::from(index) + 0.5) / 20_000.0;
                (49.5 * libm::pow(above, -1.0 / (exponent - 1.0))).round() as u64
            });
            let body = (0..40_000).map(|index| index % 50);
            let found = histogram(tail.chain(body)).tail().unwrap();
            assert!(
                (found.exponent - exponent).abs() < 0.05,
                "{exponent}: {found:?}"
            );
            assert!((40..=120).contains(&found.from), "{exponent}: {found:?}");
        }
    }
}
