//! From numbers of the graph to ids of accounts.

use std::ops::RangeInclusive;

use events::UserId;

use crate::plan::Account;

/// How accounts are numbered in the deployment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Accounts {
    numbering: Numbering,
    /// The account behind the graph's, which has an id of its own.
    hot_reader: Option<(Account, UserId)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Numbering {
    /// Account `n` has id `n` and this much more.
    Offset(i64),
    /// Account `n` has the id at place `n - 1`.
    Listed(Vec<UserId>),
}

impl Accounts {
    /// Accounts that were loaded in one piece behind the id `offset`.
    pub const fn behind(offset: i64) -> Self {
        Self {
            numbering: Numbering::Offset(offset),
            hot_reader: None,
        }
    }

    /// Accounts that were made one by one.
    pub const fn listed(ids: Vec<UserId>) -> Self {
        Self {
            numbering: Numbering::Listed(ids),
            hot_reader: None,
        }
    }

    /// Adds the account of the hot reader.
    #[must_use]
    pub fn with_hot_reader(mut self, account: Account, id: UserId) -> Self {
        self.hot_reader = Some((account, id));
        self
    }

    /// The id of an account of the graph.
    pub fn id(&self, account: Account) -> UserId {
        if let Some((hot, id)) = self.hot_reader
            && hot == account
        {
            return id;
        }
        match &self.numbering {
            Numbering::Offset(offset) => UserId(account.cast_signed().saturating_add(*offset)),
            // Nobody: the API refuses it, and the run fails with that answer.
            Numbering::Listed(ids) => usize::try_from(account)
                .ok()
                .and_then(|account| ids.get(account.checked_sub(1)?).copied())
                .unwrap_or(UserId(0)),
        }
    }

    /// The ids of the accounts 1 to `last`, as few ranges as they make.
    pub fn ranges(&self, last: Account) -> Vec<RangeInclusive<UserId>> {
        let mut ranges: Vec<RangeInclusive<UserId>> = Vec::new();
        match &self.numbering {
            Numbering::Offset(_) => ranges.push(self.id(1)..=self.id(last)),
            Numbering::Listed(ids) => {
                let mut ids = ids.clone();
                ids.sort_unstable();
                for id in ids {
                    match ranges.last_mut() {
                        Some(range) if range.end().0 + 1 == id.0 => *range = *range.start()..=id,
                        _ => ranges.push(id..=id),
                    }
                }
            }
        }
        ranges.extend(self.hot_reader.map(|(_, id)| id..=id));
        ranges
    }

    /// The distance between number and id, where it is the same for all.
    pub const fn offset(&self) -> Option<i64> {
        match self.numbering {
            Numbering::Offset(offset) => Some(offset),
            Numbering::Listed(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_become_ids() {
        let accounts = Accounts::behind(100).with_hot_reader(11, UserId(7));
        assert_eq!(accounts.id(1), UserId(101));
        assert_eq!(accounts.id(11), UserId(7));
        assert_eq!(
            accounts.ranges(10),
            [UserId(101)..=UserId(110), UserId(7)..=UserId(7)]
        );
        let accounts = Accounts::listed([5, 9, 6].map(UserId).to_vec());
        assert_eq!([1, 2, 3, 4].map(|n| accounts.id(n).0), [5, 9, 6, 0]);
        assert_eq!(
            accounts.ranges(3),
            [UserId(5)..=UserId(6), UserId(9)..=UserId(9)]
        );
    }
}
