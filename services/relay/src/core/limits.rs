//! What is in flight to the broker, and when to stop reading because of it (D-13).
//!
//! Owns the map from the producer's tags to what each one stands for. A tag is used once in the
//! life of the process, so a report that comes late, from an earlier connection or an earlier
//! producer, can be told from every other. Records of earlier connections count towards the
//! limits until they are reported, since they still take memory.
//!
//! Promise: with the caller reading nothing between pause and resume, at most the limit plus one
//! row is in flight.

use std::collections::HashMap;

use ack_tracker::Ticket;
use events::route::Summary;

/// Bounds of what is in flight. Reading pauses at a bound and resumes at half of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Records.
    pub rows: usize,
    /// Bytes of keys, payloads and headers.
    pub bytes: usize,
}

/// One record on its way.
#[derive(Clone, Debug)]
pub(in crate::core) struct Flight {
    /// The transaction it belongs to.
    pub(in crate::core) ticket: Ticket,
    /// The connection that brought it.
    pub(in crate::core) generation: u64,
    /// The epoch that its record names.
    pub(in crate::core) epoch: i64,
    /// When that committed, by Postgres's clock, Unix microseconds.
    pub(in crate::core) commit_time: i64,
    /// Its weight against the limit.
    pub(in crate::core) bytes: usize,
    /// What it is.
    pub(in crate::core) cargo: Cargo,
}

/// What a tag stands for.
#[derive(Clone, Debug)]
pub(in crate::core) enum Cargo {
    /// A record, by what a dead letter would have to say about it.
    Record(Summary),
    /// A dead letter.
    Letter,
}

/// Everything that was handed to the producer and not reported yet.
#[derive(Debug)]
pub struct InFlight {
    limits: Limits,
    flights: HashMap<u64, Flight>,
    bytes: usize,
    next_tag: u64,
    paused: bool,
}

impl InFlight {
    /// Nothing in flight.
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            flights: HashMap::new(),
            bytes: 0,
            next_tag: 1,
            paused: false,
        }
    }

    pub(in crate::core) fn enter(&mut self, flight: Flight) -> u64 {
        let tag = self.next_tag;
        self.next_tag += 1;
        self.bytes += flight.bytes;
        self.flights.insert(tag, flight);
        tag
    }

    pub(in crate::core) fn leave(&mut self, tag: u64) -> Option<Flight> {
        let flight = self.flights.remove(&tag)?;
        self.bytes -= flight.bytes;
        Some(flight)
    }

    /// Forgets everything: the producer that held it is gone, its reports will never come.
    pub(in crate::core) fn clear(&mut self) {
        self.flights.clear();
        self.bytes = 0;
    }

    /// Decides whether reading has to change: `Some(true)` = pause, `Some(false)` = resume.
    /// `crowded` adds a reason of the caller's own to pause, and holds a resume back.
    pub(in crate::core) fn turn(&mut self, crowded: bool) -> Option<bool> {
        let (rows, bytes) = (self.rows(), self.bytes);
        let pause = crowded || rows >= self.limits.rows || bytes >= self.limits.bytes;
        let resume = !crowded && rows <= self.limits.rows / 2 && bytes <= self.limits.bytes / 2;
        let paused = if self.paused { !resume } else { pause };
        (paused != self.paused).then(|| {
            self.paused = paused;
            paused
        })
    }

    /// Pauses for good. Returns whether that is news.
    pub(in crate::core) const fn pause(&mut self) -> bool {
        !std::mem::replace(&mut self.paused, true)
    }

    /// A new connection reads until told otherwise.
    pub(in crate::core) const fn unpause(&mut self) {
        self.paused = false;
    }

    /// Records in flight.
    pub fn rows(&self) -> usize {
        self.flights.len()
    }

    /// Their bytes.
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether reading is paused.
    pub const fn is_paused(&self) -> bool {
        self.paused
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroUsize;

    use ack_tracker::Tracker;

    use super::*;

    #[test]
    fn pauses_at_the_limit_and_resumes_at_half() {
        let mut tracker = Tracker::new(NonZeroUsize::new(1).unwrap());
        let ticket = tracker.open(1_u64, 0).unwrap();
        let mut flying = InFlight::new(Limits {
            rows: 4,
            bytes: 1_000,
        });
        let flight = || Flight {
            ticket,
            generation: 0,
            epoch: 1,
            commit_time: 0,
            bytes: 10,
            cargo: Cargo::Letter,
        };
        let tags: Vec<_> = (0..3).map(|_| flying.enter(flight())).collect();
        assert_eq!(flying.turn(false), None);
        let last = flying.enter(flight());
        assert_eq!(flying.turn(false), Some(true));
        flying.leave(last);
        assert_eq!(flying.turn(false), None, "hysteresis");
        flying.leave(tags[0]);
        assert_eq!(flying.turn(true), None, "the caller's own reason holds");
        assert_eq!(flying.turn(false), Some(false));
        let heavy = flying.enter(Flight {
            bytes: 5_000,
            ..flight()
        });
        assert_eq!(flying.turn(false), Some(true), "bytes count as well");
        assert!(flying.leave(heavy).is_some());
        assert!(
            flying.leave(heavy).is_none(),
            "a second report is no report"
        );
    }
}
