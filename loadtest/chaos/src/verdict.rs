//! What was expected against what was found.

use std::collections::BTreeSet;

use events::{PostId, UserId};

/// The outcome of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Rows that have to be there.
    pub expected: usize,
    /// Rows that are there.
    pub found: usize,
    /// Expected and absent.
    pub lost: usize,
    /// Present and not expected: foreign, or resurrected.
    pub foreign: usize,
    /// Good records never belong there (D-12).
    pub dead_letters: i64,
}

impl Verdict {
    pub(crate) fn of(
        expected: &BTreeSet<(UserId, PostId)>,
        found: &BTreeSet<(UserId, PostId)>,
        dead_letters: i64,
    ) -> Self {
        Self {
            expected: expected.len(),
            found: found.len(),
            lost: expected.difference(found).count(),
            foreign: found.difference(expected).count(),
            dead_letters,
        }
    }

    /// Whether the promise held, and something was there to hold it for.
    pub const fn is_clean(&self) -> bool {
        self.expected > 0 && self.lost == 0 && self.foreign == 0 && self.dead_letters == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(pairs: &[(i64, i64)]) -> BTreeSet<(UserId, PostId)> {
        pairs
            .iter()
            .map(|(owner, post)| (UserId(*owner), PostId(*post)))
            .collect()
    }

    #[test]
    fn a_lost_and_a_foreign_row_are_counted() {
        let verdict = Verdict::of(&rows(&[(1, 1), (2, 1)]), &rows(&[(1, 1), (3, 1)]), 0);
        assert_eq!(
            (verdict.lost, verdict.foreign, verdict.is_clean()),
            (1, 1, false)
        );
    }

    #[test]
    fn nothing_expected_is_not_clean() {
        assert!(!Verdict::of(&rows(&[]), &rows(&[]), 0).is_clean());
        assert!(Verdict::of(&rows(&[(1, 1)]), &rows(&[(1, 1)]), 0).is_clean());
        assert!(!Verdict::of(&rows(&[(1, 1)]), &rows(&[(1, 1)]), 1).is_clean());
    }
}
