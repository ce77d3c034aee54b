//! Two clocks: the run's own, and Postgres's seen from here.
//!
//! Deliveries are dated by Postgres's clock, intended starts by the run's. Each answer to a post
//! tells Postgres's time at some moment between sending and receiving, so the distance of the
//! clocks lies in an interval, and many answers leave a small one.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use events::Micros;

/// The run's clock: a monotonic time since the start, and the wall clock at the start.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    begun: tokio::time::Instant,
    wall_us: i64,
}

impl Clock {
    /// Starts now.
    pub fn start() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        Self {
            begun: tokio::time::Instant::from_std(Instant::now()),
            wall_us: since.map_or(0, |since| {
                i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
            }),
        }
    }

    /// Time since the start.
    pub fn now(&self) -> Duration {
        self.begun.elapsed()
    }

    /// The moment of a time since the start.
    pub fn moment(&self, at: Duration) -> tokio::time::Instant {
        self.begun + at
    }

    /// The wall clock at a time since the start, as it was at the start.
    pub fn wall(&self, at: Duration) -> Micros {
        Micros(self.wall_us).plus(micros(at))
    }

    /// The time since the start at which the wall clock showed this; zero when before the start.
    pub fn since_start(&self, wall: Micros) -> Duration {
        Duration::from_micros(u64::try_from(wall.0.saturating_sub(self.wall_us)).unwrap_or(0))
    }
}

/// How far Postgres's clock is ahead of the run's: an interval, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ahead {
    bounds: Option<(i64, i64)>,
}

impl Ahead {
    /// Learns that Postgres's clock showed `seen` between `sent` and `received`.
    pub fn observe(&mut self, sent: Micros, received: Micros, seen: Micros) {
        let (low, high) = (seen.0 - received.0, seen.0 - sent.0);
        self.bounds = match self.bounds {
            // An interval that misses the others: a clock was set, and what was known is void.
            Some((least, most)) if high >= least && low <= most => {
                Some((low.max(least), high.min(most)))
            }
            _ => Some((low, high)),
        };
    }

    /// The middle of the interval; zero while nothing is known.
    pub fn micros(&self) -> i64 {
        self.bounds.map_or(0, |(low, high)| low + (high - low) / 2)
    }

    /// Half of the interval: how wrong [`Ahead::micros`] may be.
    pub fn uncertainty(&self) -> Option<Duration> {
        let (low, high) = self.bounds?;
        Some(Duration::from_micros(
            u64::try_from((high - low) / 2).unwrap_or(0),
        ))
    }

    /// A time of Postgres by the run's clock.
    pub fn here(&self, there: Micros) -> Micros {
        there.plus(-self.micros())
    }
}

/// Whole microseconds.
pub fn micros(span: Duration) -> i64 {
    i64::try_from(span.as_micros()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_narrow_the_distance_of_the_clocks() {
        let mut ahead = Ahead::default();
        assert_eq!((ahead.micros(), ahead.uncertainty()), (0, None));
        // Postgres is 1000 ahead; two answers, one slow on the way there, one on the way back.
        ahead.observe(Micros(0), Micros(400), Micros(1_390));
        ahead.observe(Micros(10_000), Micros(10_300), Micros(11_010));
        assert_eq!(ahead.uncertainty(), Some(Duration::from_micros(10)));
        assert_eq!(ahead.micros(), 1_000);
        assert_eq!(ahead.here(Micros(51_000)), Micros(50_000));
    }

    #[test]
    fn a_clock_that_was_set_starts_anew() {
        let mut ahead = Ahead::default();
        ahead.observe(Micros(0), Micros(10), Micros(5));
        ahead.observe(Micros(100), Micros(110), Micros(9_105));
        assert_eq!(ahead.micros(), 9_000);
    }
}
