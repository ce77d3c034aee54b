//! How fast rows may be sent again: one budget for all stages and all claims of the process.
//!
//! Promise: over any time, no more than `rate` rows per second plus one batch.

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

    /// Waits until what was charged before is paid for, and charges so many rows: of several
    /// claims side by side one goes on. Never under a lock or in a transaction.
    ///
    /// # Cancel safety
    /// Safe: nothing is charged by a call that is dropped.
    pub(crate) async fn take(&self, rows: usize) {
        while let Err(paid_at) = self.try_take(rows) {
            sleep_until(paid_at).await;
        }
    }

    /// Gives back what was charged for rows that were not sent.
    pub(crate) fn give_back(&self, rows: usize) {
        let mut paid_at = self.lock();
        // Less than was charged, so this is a moment that has been; if not, nothing is given back.
        if let Some(earlier) = paid_at.checked_sub(price(rows, self.per_second)) {
            *paid_at = earlier;
        }
    }

    /// The largest batch that keeps the pace even: what a second allows.
    pub(crate) fn batch(&self, wanted: usize) -> usize {
        wanted.min(usize::try_from(self.per_second).unwrap_or(usize::MAX))
    }

    /// Charges rows, or answers when that is to be tried again.
    fn try_take(&self, rows: usize) -> Result<(), Instant> {
        let mut paid_at = self.lock();
        *paid_at = charged(*paid_at, Instant::now(), price(rows, self.per_second))?;
        Ok(())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Instant> {
        self.paid_at.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The time that rows take.
fn price(rows: usize, per_second: u32) -> Duration {
    let rows = u32::try_from(rows).unwrap_or(u32::MAX);
    Duration::from_secs_f64(f64::from(rows) / f64::from(per_second))
}

/// When everything is paid for, something of this price included; an error while something is
/// owed. Time in which nothing was owed buys nothing.
fn charged(paid_at: Instant, now: Instant, price: Duration) -> Result<Instant, Instant> {
    if now < paid_at {
        return Err(paid_at);
    }
    Ok(now + price)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_take_their_time_and_idle_time_buys_nothing() {
        let start = Instant::now();
        let after = |millis| start + Duration::from_millis(millis);
        let first = charged(start, start, price(50, 100));
        assert_eq!(first, Ok(after(500)));
        let too_early = charged(after(500), after(499), price(100, 100));
        assert_eq!(too_early, Err(after(500)));
        let idle = charged(after(500), after(60_000), price(100, 100));
        assert_eq!(idle, Ok(after(61_000)));
    }

    #[tokio::test]
    async fn what_is_owed_is_waited_for_by_everybody() {
        let rate = Rate::new(1_000);
        assert_eq!((rate.batch(5_000), rate.batch(7)), (1_000, 7));
        let began = Instant::now();
        let takes = [rate.take(40), rate.take(40), rate.take(40)];
        futures::future::join_all(takes).await;
        assert!(began.elapsed() >= Duration::from_millis(80));
    }

    #[tokio::test]
    async fn what_was_not_sent_is_not_paid_for() {
        let rate = Rate::new(1);
        rate.take(1_000_000).await;
        assert!(rate.try_take(1).is_err());
        rate.give_back(1_000_000);
        assert!(rate.try_take(1).is_ok());
    }
}
