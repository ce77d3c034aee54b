//! What a run comes to, in one word and in one sentence.

use serde::{Deserialize, Serialize};

use crate::{Judged, Run, Threshold, quantity};

/// What a run comes to. A broken promise stays one in a run that is invalid otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Nothing is wrong, and every threshold was met.
    Held,
    /// The promise held, and a threshold was missed.
    Missed,
    /// Something was lost, duplicated, foreign, resurrected or out of order.
    Broken,
    /// The run proves nothing.
    Invalid,
}

impl Outcome {
    /// The words at the head of everything that is written.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Held => "held",
            Self::Missed => "threshold missed",
            Self::Broken => "broken",
            Self::Invalid => "run invalid",
        }
    }
}

impl Run {
    /// What the run comes to.
    pub fn outcome(&self) -> Outcome {
        let wrong = self.judged.as_ref().is_some_and(|judged| !clean(judged));
        if wrong {
            Outcome::Broken
        } else if self.judged.is_none() || !self.invalid.is_empty() {
            Outcome::Invalid
        } else if self.thresholds.iter().all(Threshold::pass) {
            Outcome::Held
        } else {
            Outcome::Missed
        }
    }

    /// The outcome in one sentence, with what it rests on.
    pub fn sentence(&self) -> String {
        let judged = self.judged.clone().unwrap_or_default();
        let among = format!(
            "among {} and {}",
            quantity::counted(judged.posts, "post", "posts"),
            quantity::counted(judged.rows_expected, "expected row", "expected rows"),
        );
        match self.outcome() {
            Outcome::Held => format!(
                "Nothing is lost, duplicated, foreign, resurrected or out of order {among}{}.",
                match self.thresholds.len() {
                    0 => String::new(),
                    1 => ", and the threshold is met".to_owned(),
                    all => format!(", and all {all} thresholds are met"),
                }
            ),
            Outcome::Missed => {
                let missed: Vec<&str> = self
                    .thresholds
                    .iter()
                    .filter(|threshold| !threshold.pass())
                    .map(|threshold| threshold.name.as_str())
                    .collect();
                format!(
                    "The promise held {among}, but {} of {} missed: {}.",
                    missed.len(),
                    match self.thresholds.len() {
                        1 => "1 threshold was".to_owned(),
                        all => format!("{all} thresholds were"),
                    },
                    missed.join("; "),
                )
            }
            Outcome::Broken => {
                let wrong: Vec<String> = judged
                    .counts()
                    .into_iter()
                    .filter(|(_, count)| *count > 0)
                    .map(|(word, count)| format!("{} {word}", quantity::count(count)))
                    .collect();
                format!("The promise is broken: {} {among}.", wrong.join(", "))
            }
            Outcome::Invalid => {
                let mut reasons = self.invalid.clone();
                if self.judged.is_none() {
                    reasons.push("nobody judged it".to_owned());
                }
                format!("The run proves nothing: {}.", reasons.join("; "))
            }
        }
    }
}

fn clean(judged: &Judged) -> bool {
    judged.counts().iter().all(|(_, count)| *count == 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Target;

    fn good() -> Run {
        Run {
            judged: Some(Judged {
                posts: 1_200,
                rows_expected: 90_000,
                ..Judged::default()
            }),
            thresholds: vec![Threshold {
                name: "p99 to the last follower".to_owned(),
                unit: "s".to_owned(),
                target: Target::AtMost(5.0),
                measured: Some(2.0),
            }],
            ..Run::default()
        }
    }

    #[test]
    fn a_good_run_says_what_it_rests_on() {
        assert_eq!(good().outcome(), Outcome::Held);
        assert_eq!(
            good().sentence(),
            "Nothing is lost, duplicated, foreign, resurrected or out of order among 1\u{202f}200 \
             posts and 90\u{202f}000 expected rows, and the threshold is met."
        );
    }

    #[test]
    fn worse_words_come_first() {
        let mut run = good();
        run.thresholds[0].measured = Some(7.0);
        assert_eq!(run.outcome(), Outcome::Missed);
        assert!(
            run.sentence()
                .ends_with("but 1 of 1 threshold was missed: p99 to the last follower."),
            "{}",
            run.sentence()
        );
        run.invalid = vec!["the generator was 2 s late".to_owned()];
        assert_eq!(run.outcome(), Outcome::Invalid);
        assert_eq!(
            run.sentence(),
            "The run proves nothing: the generator was 2 s late."
        );
        if let Some(judged) = &mut run.judged {
            judged.lost = 3;
            judged.disorder = 1;
        }
        assert_eq!(run.outcome(), Outcome::Broken);
        assert!(
            run.sentence()
                .starts_with("The promise is broken: 3 lost, 1 out of order among"),
            "{}",
            run.sentence()
        );
    }

    #[test]
    fn a_run_that_nobody_judged_proves_nothing() {
        let run = Run::default();
        assert_eq!(run.outcome(), Outcome::Invalid);
        assert_eq!(run.sentence(), "The run proves nothing: nobody judged it.");
    }
}
