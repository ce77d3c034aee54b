//! How long to wait before the next attempt: doubling, with jitter, bounded.
//!
//! Pure: the jitter comes from a small generator that is seeded once, so a test repeats a run.

use crate::core::Moment;

/// Shortest wait of a doubling backoff, microseconds.
const FIRST_US: u64 = 200_000;
/// Bounds of a stand-by's wait, microseconds: under a second, so that a take-over stays below
/// five seconds (C28).
const STANDBY_US: (u64, u64) = (300_000, 900_000);

/// Counts attempts and draws waits.
#[derive(Clone, Debug)]
pub struct Backoff {
    attempt: u32,
    random: u64,
}

impl Backoff {
    /// No attempt yet. `seed` should differ between processes.
    pub const fn new(seed: u64) -> Self {
        // Zero is the one seed for which the generator stands still.
        Self {
            attempt: 0,
            random: seed | 1,
        }
    }

    /// When to try again: 200 ms doubling up to `most_us`, each between half of it and all of it.
    pub fn next(&mut self, now: Moment, most_us: u64) -> Moment {
        let whole = FIRST_US
            .saturating_mul(1 << self.attempt.min(20))
            .min(most_us);
        self.attempt = self.attempt.saturating_add(1);
        now.plus(self.between(whole / 2, whole))
    }

    /// When a stand-by tries again: always soon, with jitter so that several do not collide.
    pub fn standby(&mut self, now: Moment) -> Moment {
        now.plus(self.between(STANDBY_US.0, STANDBY_US.1))
    }

    /// Starts over after success.
    pub const fn reset(&mut self) {
        self.attempt = 0;
    }

    fn between(&mut self, low: u64, high: u64) -> u64 {
        // xorshift64: spread is all that is asked of it.
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        low + self.random % (high - low + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_and_stay_bounded() {
        let mut backoff = Backoff::new(7);
        for (attempt, whole) in [200_000, 400_000, 800_000, 1_000_000, 1_000_000]
            .into_iter()
            .enumerate()
        {
            let wait = backoff.next(Moment(0), 1_000_000).0;
            assert!(
                (whole / 2..=whole).contains(&wait),
                "attempt {attempt}: {wait}"
            );
        }
        backoff.reset();
        assert!(backoff.next(Moment(0), 1_000_000).0 <= 200_000);
    }

    #[test]
    fn a_standby_never_waits_a_second() {
        let mut backoff = Backoff::new(1);
        for _ in 0..1_000 {
            let wait = backoff.standby(Moment(0)).0;
            assert!((300_000..1_000_000).contains(&wait), "{wait}");
        }
    }
}
