//! The old end of every timeline: all sources are cut at the same place, `pg_now - retention`.
//!
//! Rows of the store end by themselves a little later or earlier than a day of the clock; cutting
//! here makes the end of a walk the same whichever source a post came from.

use std::time::Duration;

use events::{Micros, PostId};

/// 2025-01-01 00:00 UTC in milliseconds: where the time in a post id begins.
const ID_EPOCH_MS: i64 = 1_735_689_600_000;
/// Bits of a post id below its milliseconds.
const SEQUENCE_BITS: u32 = 22;

/// The oldest moment of which posts are shown.
#[must_use]
pub fn cut(pg_now: Micros, retention: Duration) -> Micros {
    let retention = i64::try_from(retention.as_micros()).unwrap_or(i64::MAX);
    pg_now.plus(retention.saturating_neg())
}

/// An id below every post that was made at `cut` or later.
///
/// The time in an id never lags the post's own time (it may run ahead after a clock stepped back),
/// so no post inside the retention is lost; the few too old that pass fall to the exact check.
#[must_use]
pub const fn floor(cut: Micros) -> PostId {
    let ms = cut.0.div_euclid(1_000).saturating_sub(ID_EPOCH_MS);
    if ms <= 0 {
        PostId(0)
    } else {
        PostId((ms << SEQUENCE_BITS) - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_floor_is_below_the_first_id_of_its_millisecond() {
        let now = Micros(1_764_443_113_123_456);
        let cut = cut(now, Duration::from_secs(86_400));
        assert_eq!(cut, Micros(1_764_356_713_123_456));
        let first = (1_764_356_713_123 - ID_EPOCH_MS) << SEQUENCE_BITS;
        assert_eq!(floor(cut), PostId(first - 1));
    }

    #[test]
    fn a_cut_before_the_first_id_shows_everything() {
        assert_eq!(floor(cut(Micros(0), Duration::MAX)), PostId(0));
        assert_eq!(floor(Micros(ID_EPOCH_MS * 1_000)), PostId(0));
    }
}
