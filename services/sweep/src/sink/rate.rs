//! How fast rows may be sent again: one budget for all stages of the process.
//!
//! Promise: over any time, no more than `rate` rows per second plus one batch of each stage.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use tokio::time::{Instant, sleep_until};

/// The budget.
#[derive(Debug)]
pub(crate) struct Rate {
    per_second: u32,
    /// When everything that was charged is paid for.
    paid_at: Mutex<Instant>,
}

impl Rate {
    /// At most so many rows per second; at least one.
    pub(crate) fn new(per_second: u32) -> Self {
        Self {
            per_second: per_second.max(1),
            paid_at: Mutex::new(Instant::now()),
        }
    }

    /// Waits until what was charged before is paid for. Never under a lock or in a transaction.
    pub(crate) async fn ready(&self) {
        sleep_until(self.paid_at()).await;
    }

    /// Charges rows that were sent.
    pub(crate) fn charge(&self, rows: usize) {
        let mut paid_at = self.paid_at.lock().unwrap_or_else(PoisonError::into_inner);
        *paid_at = charged(*paid_at, Instant::now(), rows, self.per_second);
    }

    /// The largest batch that keeps the pace even: what a second allows.
    pub(crate) fn batch(&self, wanted: usize) -> usize {
        wanted.min(usize::try_from(self.per_second).unwrap_or(usize::MAX))
    }

    fn paid_at(&self) -> Instant {
        *self.paid_at.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// When everything is paid for, these rows included. Time in which nothing was owed buys nothing.
fn charged(paid_at: Instant, now: Instant, rows: usize, per_second: u32) -> Instant {
    let rows = u32::try_from(rows).unwrap_or(u32::MAX);
    paid_at.max(now) + Duration::from_secs_f64(f64::from(rows) / f64::from(per_second))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_take_their_time_and_idle_time_buys_nothing() {
        let start = Instant::now();
        let after = |millis| start + Duration::from_millis(millis);
        let first = charged(start, start, 50, 100);
        assert_eq!(first, after(500));
        let second = charged(first, after(100), 100, 100);
        assert_eq!(second, after(1_500));
        let idle = charged(second, after(60_000), 100, 100);
        assert_eq!(idle, after(61_000));
    }

    #[tokio::test]
    async fn what_is_owed_is_waited_for() {
        let rate = Rate::new(1_000);
        assert_eq!((rate.batch(5_000), rate.batch(7)), (1_000, 7));
        let began = Instant::now();
        rate.ready().await;
        rate.charge(50);
        rate.ready().await;
        assert!(began.elapsed() >= Duration::from_millis(50));
    }
}
