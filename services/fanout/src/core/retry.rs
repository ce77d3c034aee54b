//! What follows a failure: again after a while, dead letter, or stop (D-12).

use std::time::Duration;

use events::Class;

/// The first pause.
pub const FIRST: Duration = Duration::from_millis(100);
/// The longest pause.
pub const LONGEST: Duration = Duration::from_secs(5);
/// The work on one record may panic so often. Then the record is at fault, and the rest of its
/// partition should not wait for it.
pub const MOST_PANICS: u32 = 3;

/// What follows a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The same work again, after this pause.
    Again(Duration),
    /// The record is permanently wrong.
    DeadLetter,
    /// The process ends, with this class as the reason.
    Stop(Class),
}

/// Judges failure number `failures` (1 is the first) of one piece of work. `jitter` is a random
/// number from 0 to 1: many records that fail together do not come back together.
///
/// There is no limit: an outage and an unknown outcome end when the dependency is back.
pub fn verdict(class: Class, failures: u32, jitter: f64) -> Verdict {
    match class {
        Class::Outage | Class::Unsure => Verdict::Again(pause(failures, jitter)),
        Class::Record => Verdict::DeadLetter,
        Class::Config | Class::Bug => Verdict::Stop(class),
    }
}

/// Judges panic number `panics` (1 is the first) of the work on one record.
pub fn after_panic(panics: u32, jitter: f64) -> Verdict {
    if panics < MOST_PANICS {
        Verdict::Again(pause(panics, jitter))
    } else {
        Verdict::DeadLetter
    }
}

/// The pause after failure number `failures`: doubling from [`FIRST`] to [`LONGEST`], half of it
/// jitter.
pub fn pause(failures: u32, jitter: f64) -> Duration {
    let doublings = failures.saturating_sub(1).min(16);
    let whole = FIRST.saturating_mul(1 << doublings).min(LONGEST);
    whole.mul_f64(0.5 + jitter.clamp(0.0, 1.0) / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// D-12: only a record that is wrong itself becomes a dead letter, however often the rest fails.
    #[test]
    fn d_12_table_of_verdicts() {
        for failures in [1, 2, 50, u32::MAX] {
            for class in [Class::Outage, Class::Unsure] {
                assert!(
                    matches!(verdict(class, failures, 0.3), Verdict::Again(_)),
                    "{class:?} {failures}"
                );
            }
            assert_eq!(verdict(Class::Record, failures, 0.3), Verdict::DeadLetter);
            for class in [Class::Config, Class::Bug] {
                assert_eq!(verdict(class, failures, 0.3), Verdict::Stop(class));
            }
        }
    }

    #[test]
    fn a_record_that_panics_is_tried_apart_and_then_given_up() {
        for panics in 1..MOST_PANICS {
            assert!(matches!(after_panic(panics, 0.3), Verdict::Again(_)));
        }
        assert_eq!(after_panic(MOST_PANICS, 0.3), Verdict::DeadLetter);
    }

    #[test]
    fn pauses_grow_to_the_longest_and_keep_half_for_jitter() {
        assert_eq!(pause(1, 0.0), FIRST / 2);
        assert_eq!(pause(1, 1.0), FIRST);
        assert_eq!(pause(3, 1.0), FIRST * 4);
        assert_eq!(pause(40, 1.0), LONGEST);
        assert_eq!(pause(u32::MAX, 0.0), LONGEST / 2);
    }
}
