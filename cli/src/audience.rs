//! The audience rule, by what Postgres knows of an edge.
//!
//! Owns the rule of the specification of delivery: a follow made before the post must have it; a
//! follow made after it may, by the margin of an hour or by backfill; a follow that ended after the
//! post may still have it until it is purged; everybody else must not.

use events::Micros;
use serde::Serialize;

/// What the promise says about one post in one timeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Claim {
    /// It has to be there.
    Must,
    /// Both are right.
    May,
    /// It has no business there.
    MustNot,
}

/// What Postgres knows of one pair: follower and author.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pair {
    /// When the edge was made that stands now.
    pub(crate) edge_us: Option<Micros>,
    /// When the edge before it ended.
    pub(crate) unfollow_us: Option<Micros>,
}

/// A change of an edge commits up to a statement's time limit after the moment it carries. A post
/// made meanwhile may have been delivered by the edge that was ending.
const ENDING_US: i64 = 10_000_000;

/// Applies the rule to a post that was made at `post_us`.
pub(crate) fn claim(pair: Pair, post_us: Micros) -> Claim {
    match (pair.edge_us, pair.unfollow_us) {
        (Some(edge_us), _) if edge_us <= post_us => Claim::Must,
        (Some(_), _) => Claim::May,
        (None, Some(unfollow_us)) if unfollow_us.plus(ENDING_US) > post_us => Claim::May,
        (None, _) => Claim::MustNot,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rule() {
        let at = 100_000_000;
        let post_us = Micros(at);
        let table = [
            (None, None, Claim::MustNot),
            (Some(at - 1), None, Claim::Must),
            (Some(at), None, Claim::Must),
            (Some(at + 1), None, Claim::May),
            // Followed again before the post, or after it.
            (Some(60), Some(50), Claim::Must),
            (Some(at + 2), Some(at + 1), Claim::May),
            (None, Some(at + 1), Claim::May),
            (None, Some(at - ENDING_US + 1), Claim::May),
            (None, Some(at - ENDING_US), Claim::MustNot),
        ];
        for (edge, end, expected) in table {
            let pair = Pair {
                edge_us: edge.map(Micros),
                unfollow_us: end.map(Micros),
            };
            assert_eq!(claim(pair, post_us), expected, "{pair:?}");
        }
    }
}
