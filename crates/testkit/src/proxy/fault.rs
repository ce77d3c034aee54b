//! The faults of a proxy, and which of them are on now.

use std::{future::pending, time::Duration};

use fastrand::Rng;
use tokio::sync::watch;

/// A way of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// What the client sends: requests.
    ToServer,
    /// What the server sends: answers.
    ToClient,
}

impl Direction {
    pub(super) const BOTH: [Self; 2] = [Self::ToServer, Self::ToClient];

    const fn index(self) -> usize {
        match self {
            Self::ToServer => 0,
            Self::ToClient => 1,
        }
    }
}

/// What happens to connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Everything arrives later, in order.
    Latency {
        /// At least so much.
        by: Duration,
        /// And at most so much more, drawn for each chunk.
        jitter: Duration,
    },
    /// No connection gets through more than this.
    Bandwidth {
        /// Bytes in a second; 0 counts as 1.
        bytes_per_s: u64,
    },
    /// Nothing arrives and nothing ends: open connections freeze, new ones are accepted and never
    /// answered. With the fault's end everything goes on, as after a broken path.
    BlackHole,
    /// Open connections are reset (RST), and new ones as soon as they are accepted.
    Reset,
    /// A connection is reset (RST) when more than so many bytes want to go in this direction,
    /// counted for each connection from the moment the fault is set, or the connection is opened.
    /// With 0 the first answer is lost, and the request has arrived.
    CutAfter {
        /// So many bytes get through.
        bytes: u64,
    },
    /// New connections are reset as soon as they are accepted; open ones go on.
    Refuse,
}

/// What is on now.
#[derive(Clone, Debug, Default)]
pub(super) struct Faults {
    /// By direction.
    on: [Option<Fault>; 2],
    /// How often each direction was changed: counting begins anew with each change.
    changes: [u64; 2],
    seed: u64,
}

impl Faults {
    pub(super) fn set(&mut self, directions: &[Direction], fault: Option<Fault>) {
        for direction in directions {
            self.on[direction.index()] = fault;
            self.changes[direction.index()] += 1;
        }
    }

    pub(super) fn reseed(&mut self, seed: u64) {
        self.seed = seed;
    }

    pub(super) fn get(&self, direction: Direction) -> Option<Fault> {
        self.on[direction.index()]
    }

    pub(super) fn changes(&self, direction: Direction) -> u64 {
        self.changes[direction.index()]
    }

    /// Chance for one direction of the connection of this number.
    pub(super) fn rng(&self, connection: u64, direction: Direction) -> Rng {
        let lane = connection * 2 + u64::from(direction == Direction::ToClient);
        // Neighbouring seeds would give neighbouring streams.
        Rng::with_seed(self.seed ^ lane.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    pub(super) fn is_black_hole(&self, direction: Direction) -> bool {
        self.get(direction) == Some(Fault::BlackHole)
    }

    pub(super) fn resets(&self) -> bool {
        self.on.contains(&Some(Fault::Reset))
    }

    pub(super) fn refuses(&self) -> bool {
        self.on.contains(&Some(Fault::Refuse))
    }
}

/// Waits until what is on fits; for ever when the proxy is being dropped, which drops the waiter.
pub(super) async fn until(faults: &watch::Receiver<Faults>, fits: impl FnMut(&Faults) -> bool) {
    let mut faults = faults.clone();
    if faults.wait_for(fits).await.is_err() {
        pending::<()>().await;
    }
}

/// How long a chunk is on its way.
pub(super) fn delay(fault: Option<Fault>, rng: &mut Rng) -> Option<Duration> {
    let Some(Fault::Latency { by, jitter }) = fault else {
        return None;
    };
    let most = u64::try_from(jitter.as_micros()).unwrap_or(u64::MAX);
    Some(by + Duration::from_micros(rng.u64(0..=most)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_direction_keeps_its_fault_when_the_other_changes() {
        let mut faults = Faults::default();
        faults.set(&[Direction::ToClient], Some(Fault::BlackHole));
        faults.set(&[Direction::ToServer], Some(Fault::Reset));
        assert!(faults.is_black_hole(Direction::ToClient) && faults.resets());
        faults.set(&Direction::BOTH, None);
        assert_eq!(faults.get(Direction::ToClient), None);
        assert_eq!(faults.changes(Direction::ToClient), 2);
    }

    #[test]
    fn jitter_is_bounded_and_follows_from_the_seed() {
        let fault = Some(Fault::Latency {
            by: Duration::from_millis(10),
            jitter: Duration::from_millis(5),
        });
        let draw = |seed, connection, direction| {
            let mut faults = Faults::default();
            faults.reseed(seed);
            let mut rng = faults.rng(connection, direction);
            let delays = (0..100).filter_map(|_| delay(fault, &mut rng));
            delays.collect::<Vec<_>>()
        };
        let one = draw(7, 1, Direction::ToServer);
        assert_eq!(one, draw(7, 1, Direction::ToServer));
        assert_ne!(one, draw(7, 1, Direction::ToClient));
        assert_ne!(one, draw(7, 2, Direction::ToServer));
        assert_ne!(one, draw(8, 1, Direction::ToServer));
        let allowed = Duration::from_millis(10)..=Duration::from_millis(15);
        assert!(one.len() == 100 && one.iter().all(|delay| allowed.contains(delay)));
    }
}
