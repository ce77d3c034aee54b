//! Telling from outside that a process stands at its crash point.

use std::time::{Duration, Instant};

/// Longer than a step of any service takes here, many times.
pub(super) const STANDS: Duration = Duration::from_secs(2);
/// Time passes as well while the one who looks is stalled, so it has to be seen so often.
const SAMPLES: u32 = 15;

/// What was seen last.
#[derive(Debug, Default)]
pub(super) struct Still<T> {
    /// With the time of its first sample, and how many there are.
    seen: Option<(T, Instant, u32)>,
}

impl<T: PartialEq> Still<T> {
    /// Takes what is seen now. Whether it has been the same for long and often enough.
    pub(super) fn see(&mut self, now: T) -> bool {
        let same = self.seen.take().filter(|(before, ..)| *before == now);
        let (since, samples) = same.map_or_else(
            || (Instant::now(), 1),
            |(_, since, samples)| (since, samples + 1),
        );
        self.seen = Some((now, since, samples));
        samples >= SAMPLES && since.elapsed() >= STANDS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neither_time_nor_samples_alone_make_it_stand() {
        let long_ago = Instant::now()
            .checked_sub(STANDS)
            .expect("a clock that ran");
        let mut still = Still {
            seen: Some((7, long_ago, 1)),
        };
        for _ in 2..SAMPLES {
            assert!(!still.see(7));
        }
        assert!(still.see(7));
        assert!(!still.see(8));
    }
}
