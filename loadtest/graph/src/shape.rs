//! What a graph should look like, and which wishes cannot be had.

use serde::{Deserialize, Serialize};

/// Accounts of the graph that the defaults are scaled to: Higgs/Twitter, 2012 (SNAP).
const PUBLISHED_ACCOUNTS: u64 = 456_626;

/// Its largest audience.
const PUBLISHED_LARGEST: u64 = 51_386;

/// The most accounts: numbers stay far inside a signed 64-bit id.
const MOST_USERS: u64 = 1 << 40;

/// The shape of a graph. The same shape is the same graph, on every machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shape {
    /// Ordinary accounts, numbered from 1. Celebrities come on top.
    pub users: u64,
    /// Exponent of the density of audiences: the share with `k` followers falls as `k^-exponent`.
    pub exponent: f64,
    /// The smallest audience of an ordinary account.
    pub smallest: u64,
    /// The largest audience of an ordinary account.
    pub largest: u64,
    /// Standard deviation of the logarithm of how many accounts somebody follows. Their mean is
    /// not a wish: there are as many follows as followers.
    pub follows_sigma: f64,
    /// The most accounts that somebody follows.
    pub most_follows: u64,
    /// Audiences of extra authors, whose numbers come after the ordinary ones. They follow nobody.
    pub celebrities: Vec<u64>,
    /// Decides who follows whom.
    pub seed: u64,
}

impl Shape {
    /// The published shape, with the largest audience the same share of all accounts.
    pub fn of(users: u64, seed: u64) -> Self {
        let others = users.saturating_sub(1).max(1);
        let share =
            u128::from(users) * u128::from(PUBLISHED_LARGEST) / u128::from(PUBLISHED_ACCOUNTS);
        let smallest = others.min(4);
        Self {
            users,
            exponent: 2.05,
            smallest,
            largest: u64::try_from(share)
                .unwrap_or(u64::MAX)
                .clamp(smallest, others),
            follows_sigma: 1.55,
            most_follows: 1_259,
            celebrities: Vec::new(),
            seed,
        }
    }

    /// Says what is wrong with it.
    ///
    /// # Errors
    /// The first wish that cannot be had.
    pub(crate) fn check(&self) -> Result<(), ShapeError> {
        if !(2..=MOST_USERS).contains(&self.users) {
            return Err(ShapeError::Users { users: self.users });
        }
        if !(self.exponent > 1.0 && self.exponent <= 10.0) {
            return Err(ShapeError::Exponent {
                exponent: self.exponent,
            });
        }
        if self.smallest < 1 || self.smallest > self.largest || self.largest >= self.users {
            return Err(ShapeError::Audiences {
                smallest: self.smallest,
                largest: self.largest,
                users: self.users,
            });
        }
        if !(0.0..=5.0).contains(&self.follows_sigma) {
            return Err(ShapeError::Sigma {
                sigma: self.follows_sigma,
            });
        }
        match self
            .celebrities
            .iter()
            .find(|&&audience| audience > self.users)
        {
            Some(&audience) => Err(ShapeError::Celebrity {
                audience,
                users: self.users,
            }),
            None => Ok(()),
        }
    }
}

/// A wish that cannot be had.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ShapeError {
    /// Too few or too many accounts.
    #[error("{users} users are not 2 to 2^40")]
    Users {
        /// As wished.
        users: u64,
    },
    /// An exponent that makes no distribution.
    #[error("the exponent {exponent} is not above 1 and at most 10")]
    Exponent {
        /// As wished.
        exponent: f64,
    },
    /// Bounds of audiences that do not fit each other or the accounts.
    #[error(
        "audiences from {smallest} to {largest} do not fit: 1 <= smallest <= largest < {users} users"
    )]
    Audiences {
        /// As wished.
        smallest: u64,
        /// As wished.
        largest: u64,
        /// As wished.
        users: u64,
    },
    /// A spread of follows that makes no distribution.
    #[error("the sigma {sigma} of follows is not 0 to 5")]
    Sigma {
        /// As wished.
        sigma: f64,
    },
    /// More followers than accounts.
    #[error("a celebrity with {audience} followers needs at least as many users, not {users}")]
    Celebrity {
        /// As wished.
        audience: u64,
        /// As wished.
        users: u64,
    },
    /// The audiences together are more than all accounts may follow.
    #[error(
        "the audiences need {mean:.0} follows of each account, more than the most follows of \
         {most_follows} leave room for; raise that or make audiences smaller"
    )]
    Follows {
        /// Follows that each account has to make on average.
        mean: f64,
        /// As wished.
        most_follows: u64,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_shape_fits_every_size() {
        for users in [2, 3, 5, 10, 100, PUBLISHED_ACCOUNTS, 10_000_000] {
            let shape = Shape::of(users, 1);
            assert_eq!(shape.check(), Ok(()), "{shape:?}");
        }
        assert_eq!(Shape::of(PUBLISHED_ACCOUNTS, 1).largest, PUBLISHED_LARGEST);
    }

    #[test]
    fn what_cannot_be_had_is_said() {
        let good = Shape::of(1_000, 1);
        let cases = [
            (
                Shape {
                    users: 1,
                    ..good.clone()
                },
                "1 users",
            ),
            (
                Shape {
                    exponent: 1.0,
                    ..good.clone()
                },
                "exponent 1",
            ),
            (
                Shape {
                    exponent: f64::NAN,
                    ..good.clone()
                },
                "exponent NaN",
            ),
            (
                Shape {
                    smallest: 0,
                    ..good.clone()
                },
                "from 0",
            ),
            (
                Shape {
                    largest: 1_000,
                    ..good.clone()
                },
                "to 1000",
            ),
            (
                Shape {
                    follows_sigma: -1.0,
                    ..good.clone()
                },
                "sigma -1",
            ),
            (
                Shape {
                    celebrities: vec![1_001],
                    ..good
                },
                "1001 followers",
            ),
        ];
        for (shape, words) in cases {
            let error = shape.check().unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
    }
}
