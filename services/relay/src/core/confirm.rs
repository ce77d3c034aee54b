//! Three positions, never one: *received*, *acked*, *confirmed*; and when to say so.
//!
//! Owns the keepalive rule. A keepalive's position is safe to confirm only while nothing that was
//! received is outstanding (D-3); then it must be confirmed, or a quiet outbox pins the log and
//! keeps Postgres from shutting down (D-4). Confirmed is the end LSN of a commit exactly as it
//! was received (C13) or a keepalive's position, and never falls.

use pgoutput::Lsn;

use crate::core::Moment;

/// Least time between two statuses that report acknowledged commits, microseconds.
pub const COMMIT_STATUS_US: u64 = 100_000;
/// Most time between two statuses, microseconds, whatever the server's timeout.
pub const LONGEST_STATUS_US: u64 = 10_000_000;

/// What Postgres is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    /// Everything up to here arrived.
    pub received: Lsn,
    /// Everything up to here is safe with the broker: the field that moves the slot.
    pub confirmed: Lsn,
    /// Asks for an answer, so that a dead peer is noticed.
    pub reply_requested: bool,
}

/// Positions of one replication connection.
#[derive(Clone, Debug)]
pub struct Confirm {
    received: Lsn,
    acked: Lsn,
    confirmed: Lsn,
    keepalive: Lsn,
    sent: Lsn,
    sent_at: Moment,
    interval_us: u64,
    reply_due: bool,
}

impl Confirm {
    /// Starts a connection on a slot whose confirmed position, read on this very connection, is
    /// `confirmed`. `interval_us` is the time between two periodic statuses: a third of the
    /// server's `wal_sender_timeout` (C22).
    pub fn new(confirmed: Lsn, interval_us: u64, now: Moment) -> Self {
        Self {
            received: confirmed,
            acked: confirmed,
            confirmed,
            keepalive: Lsn::ZERO,
            sent: confirmed,
            sent_at: now,
            interval_us: interval_us.clamp(1, LONGEST_STATUS_US),
            reply_due: false,
        }
    }

    /// Something up to `lsn` arrived.
    pub fn receive(&mut self, lsn: Lsn) {
        self.received = self.received.max(lsn);
    }

    /// The server has nothing for us up to `end`. Answers at once when it asks.
    pub fn keepalive(&mut self, end: Lsn, reply_requested: bool) {
        self.receive(end);
        self.keepalive = self.keepalive.max(end);
        self.reply_due |= reply_requested;
    }

    /// Everything up to `done`, the end of a commit, is acknowledged.
    pub fn ack(&mut self, done: Lsn) {
        self.receive(done);
        self.acked = self.acked.max(done);
        self.confirmed = self.confirmed.max(done);
    }

    /// Nothing received is outstanding: the last keepalive counts. Returns whether that moved
    /// the confirmed position.
    pub fn idle(&mut self) -> bool {
        let moved = self.keepalive > self.confirmed;
        self.confirmed = self.confirmed.max(self.keepalive);
        self.acked = self.acked.max(self.confirmed);
        moved
    }

    /// The status to send now, if one is due.
    pub fn due(&mut self, now: Moment) -> Option<Status> {
        let periodic = now >= self.sent_at.plus(self.interval_us);
        let commits = self.confirmed > self.sent && now >= self.sent_at.plus(COMMIT_STATUS_US);
        (periodic || commits || self.reply_due).then(|| self.send(now, periodic))
    }

    /// The status to send now, due or not.
    pub fn send(&mut self, now: Moment, reply_requested: bool) -> Status {
        self.sent = self.confirmed;
        self.sent_at = now;
        self.reply_due = false;
        Status {
            received: self.received,
            confirmed: self.confirmed,
            reply_requested,
        }
    }

    /// When the next status is due if nothing else happens.
    pub fn wake_at(&self) -> Moment {
        let wait = if self.confirmed > self.sent {
            COMMIT_STATUS_US.min(self.interval_us)
        } else {
            self.interval_us
        };
        self.sent_at.plus(wait)
    }

    /// Microseconds between two periodic statuses.
    pub const fn interval_us(&self) -> u64 {
        self.interval_us
    }

    /// Everything up to here arrived.
    pub const fn received(&self) -> Lsn {
        self.received
    }

    /// Everything up to here is acknowledged.
    pub const fn acked(&self) -> Lsn {
        self.acked
    }

    /// Everything up to here may be forgotten by the server.
    pub const fn confirmed(&self) -> Lsn {
        self.confirmed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(position: u64) -> Lsn {
        Lsn::new(position)
    }

    #[test]
    fn statuses_follow_commits_requests_and_the_timer() {
        let mut confirm = Confirm::new(at(5), 20_000_000, Moment(0));
        assert_eq!(confirm.due(Moment(1)), None);
        confirm.ack(at(10));
        assert_eq!(confirm.due(Moment(99_999)), None, "at most every 100 ms");
        assert_eq!(confirm.wake_at(), Moment(100_000));
        let status = confirm.due(Moment(100_000)).unwrap();
        assert_eq!(
            status,
            Status {
                received: at(10),
                confirmed: at(10),
                reply_requested: false
            }
        );
        confirm.keepalive(at(20), true);
        let status = confirm.due(Moment(100_001)).unwrap();
        assert_eq!(
            (status.received, status.confirmed),
            (at(20), at(10)),
            "a request is answered at once, D-3"
        );
        assert_eq!(
            confirm.wake_at(),
            Moment(10_100_001),
            "never rarer than ten seconds"
        );
        let status = confirm.due(Moment(10_100_001)).unwrap();
        assert!(
            status.reply_requested,
            "the periodic one finds out a dead peer"
        );
    }

    /// D-4, C1: a keepalive moves the confirmed position only when nothing is outstanding.
    #[test]
    fn a_keepalive_counts_only_when_idle() {
        let mut confirm = Confirm::new(at(5), 1_000_000, Moment(0));
        confirm.keepalive(at(50), false);
        assert_eq!((confirm.received(), confirm.confirmed()), (at(50), at(5)));
        assert!(confirm.idle());
        assert_eq!(confirm.confirmed(), at(50));
        assert!(!confirm.idle());
        confirm.ack(at(40));
        assert_eq!(confirm.confirmed(), at(50), "never falls");
    }
}
