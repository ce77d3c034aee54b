//! What the judge says about a system at rest.

use std::fmt;

/// The outcome of a run: the judge's, and the dead letters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// What is lost, foreign, resurrected, duplicated or out of order.
    pub judged: judge::Verdict,
    /// Good records never belong there (D-12).
    pub dead_letters: i64,
    /// How many rows and records were made that have to end there.
    pub dead_letters_expected: i64,
}

impl Verdict {
    /// Whether the promise held, and something was there to hold it for.
    pub fn is_clean(&self) -> bool {
        self.judged.rows_expected > 0
            && self.judged.holds()
            && self.dead_letters == self.dead_letters_expected
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (found, expected) = (self.judged.rows_found, self.judged.rows_expected);
        writeln!(
            f,
            "{found} of {expected} rows that must be there, {} walks, {} dead letters where {} belong",
            self.judged.walks, self.dead_letters, self.dead_letters_expected
        )?;
        self.judged.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_expected_and_dead_letters_are_not_clean() {
        let verdict = |rows_expected, dead_letters| Verdict {
            judged: judge::Verdict {
                rows_expected,
                ..judge::Verdict::default()
            },
            dead_letters,
            dead_letters_expected: 0,
        };
        assert!(verdict(1, 0).is_clean());
        assert!(!verdict(0, 0).is_clean());
        assert!(!verdict(1, 1).is_clean());
    }

    #[test]
    fn what_belongs_to_the_dead_letters_has_to_be_there() {
        let mut verdict = Verdict {
            dead_letters_expected: 2,
            ..Verdict::default()
        };
        verdict.judged.rows_expected = 1;
        assert!(!verdict.is_clean());
        verdict.dead_letters = 2;
        assert!(verdict.is_clean());
    }

    #[test]
    fn a_fault_of_the_judge_is_not_clean() {
        let mut verdict = Verdict::default();
        verdict.judged.rows_expected = 1;
        verdict.judged.foreign.count = 1;
        assert!(!verdict.is_clean());
    }
}
