//! The rows that go in and come out, and the one computation of a TTL.
//!
//! Every time here was made by Postgres and carried along. The worker's monotonic clock only
//! bridges the moments between reading Postgres's time and sending a row.

use std::time::Instant;

use events::{Micros, PostId, UserId};

/// The longest TTL that is sent, in seconds: five years. No retention should be longer.
///
/// CQL itself takes twenty years, but Apache Cassandra up to 5.0 refuses, in its default storage
/// compatibility mode, rows that end after 2038-01-19 (CASSANDRA-14092), as an invalid request.
pub const MAX_TTL_SECONDS: i32 = 5 * 365 * 24 * 60 * 60;

/// One post for one timeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimelineRow {
    /// Whose timeline.
    pub owner: UserId,
    /// Which post.
    pub post: PostId,
    /// Who wrote the post.
    pub author: UserId,
    /// The write timestamp of the cells. A function of the event and the edge alone, never of
    /// the moment of writing (D-7).
    pub write_us: Micros,
    /// When the row leaves the timeline.
    pub expires_us: Micros,
}

/// Takes one post out of one timeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimelineDelete {
    /// Whose timeline.
    pub owner: UserId,
    /// Which post.
    pub post: PostId,
    /// The write timestamp of the tombstone. Every row written with this timestamp or a smaller
    /// one stays deleted, whether it comes before or after (D-8).
    pub write_us: Micros,
}

/// What a write did with its rows. Both kinds count as delivered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Written {
    /// Rows sent and acknowledged.
    pub rows: u64,
    /// Rows not sent because their time was over already.
    pub expired: u64,
}

/// One row of a timeline page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoredRow {
    /// Which post.
    pub post: PostId,
    /// Who wrote it.
    pub author: UserId,
}

/// One row of a full scan, with what the judge compares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScannedRow {
    /// Whose timeline.
    pub owner: UserId,
    /// Which post.
    pub post: PostId,
    /// Who wrote it.
    pub author: UserId,
    /// The write timestamp of the row.
    pub write_us: Micros,
    /// Seconds until the row leaves the timeline; `None` for a row without an end.
    pub ttl_seconds: Option<i32>,
}

/// Postgres's time now: the time read with a follower page plus the monotonic time since.
///
/// A jump of the worker's wall clock does not touch it, and a retry a minute later sends a TTL
/// that is a minute shorter (D-7).
#[derive(Debug, Clone, Copy)]
pub struct PgNow {
    read_us: Micros,
    read_at: Instant,
}

impl PgNow {
    /// Takes the time that Postgres returned and the instant at which the answer was there.
    pub fn new(read_us: Micros, read_at: Instant) -> Self {
        Self { read_us, read_at }
    }

    /// Returns Postgres's time now, microseconds since 1970.
    pub fn now_us(&self) -> Micros {
        let elapsed = self.read_at.elapsed().as_micros();
        self.read_us
            .plus(i64::try_from(elapsed).unwrap_or(i64::MAX))
    }
}

impl TimelineRow {
    /// Returns the seconds the row has left at `now_us`, rounded down and at most
    /// [`MAX_TTL_SECONDS`], or `None` if nothing is left of them.
    pub(crate) fn ttl_seconds(&self, now_us: Micros) -> Option<i32> {
        // A TTL of zero means "for ever" in CQL, so a row in its last second is not sent.
        let left = self
            .expires_us
            .0
            .saturating_sub(now_us.0)
            .div_euclid(1_000_000);
        (left > 0).then(|| {
            i32::try_from(left)
                .unwrap_or(MAX_TTL_SECONDS)
                .min(MAX_TTL_SECONDS)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn row(expires_us: i64) -> TimelineRow {
        TimelineRow {
            owner: UserId(1),
            post: PostId(2),
            author: UserId(3),
            write_us: Micros(4),
            expires_us: Micros(expires_us),
        }
    }

    #[test]
    fn d_7_ttl_is_what_is_left_rounded_down() {
        assert_eq!(row(10_999_999).ttl_seconds(Micros(0)), Some(10));
        assert_eq!(row(10_999_999).ttl_seconds(Micros(3_000_000)), Some(7));
        assert_eq!(row(1_000_000).ttl_seconds(Micros(0)), Some(1));
    }

    #[test]
    fn a_row_in_its_last_second_or_past_its_end_has_no_ttl() {
        assert_eq!(row(999_999).ttl_seconds(Micros(0)), None);
        assert_eq!(row(0).ttl_seconds(Micros(0)), None);
        assert_eq!(row(0).ttl_seconds(Micros(1)), None);
        assert_eq!(row(i64::MIN).ttl_seconds(Micros(i64::MAX)), None);
    }

    #[test]
    fn ttl_is_held_at_what_every_server_takes() {
        assert_eq!(row(i64::MAX).ttl_seconds(Micros(0)), Some(MAX_TTL_SECONDS));
        assert_eq!(
            row(i64::MAX).ttl_seconds(Micros(i64::MIN)),
            Some(MAX_TTL_SECONDS)
        );
    }

    #[test]
    fn d_7_postgres_time_goes_on_after_it_was_read() {
        let Some(at) = Instant::now().checked_sub(Duration::from_secs(60)) else {
            return; // The machine booted less than a minute ago.
        };
        let now = PgNow::new(Micros(1_000_000), at).now_us();
        assert!(
            now >= Micros(61_000_000) && now < Micros(66_000_000),
            "{now}"
        );
    }
}
