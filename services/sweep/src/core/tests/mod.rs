//! The rules one by one, and all of them together over random histories (`model`).

mod days;
mod delivered;
mod fate;
mod model;
mod published;
mod reader;
mod voids;

use events::{EventId, Micros};

use super::*;

/// Timing with round numbers, microseconds: look every 100, grace 5, patience 60, blocked after
/// 30, poll 1.
fn timing() -> Timing {
    Timing {
        interval: 100,
        grace: 5,
        relay_patience: 60,
        blocked_after: 30,
        poll: 1,
    }
}

fn life(epoch: i64) -> Life {
    Life {
        epoch,
        system_id: "7".to_owned(),
        pg_timeline: 1,
    }
}

/// A look of epoch 1 with the mark at 1000.
fn look(ids: &[i64]) -> Look {
    Look {
        life: life(1),
        ids: ids.iter().copied().map(EventId).collect(),
        taken_us: Micros(10),
        lsn: 1_000,
        truncated: false,
    }
}

fn slot(state: SlotState, confirmed: Option<u64>) -> Seen {
    Seen::Slot {
        life: life(1),
        slot: SlotView { state, confirmed },
    }
}

fn claimed(redelivered: u64) -> Seen {
    Seen::Claimed(Claimed {
        redelivered,
        ..Claimed::default()
    })
}

/// A round with its clock.
struct Play {
    round: Round,
    now: Moment,
}

impl Play {
    fn new(round: Round) -> Self {
        Self {
            round,
            now: Moment(1_000_000),
        }
    }

    /// Waits as long as the round says, and returns what it wants and how long that took.
    fn want(&mut self) -> (Want, u64) {
        let start = self.now;
        loop {
            match self.round.next(self.now) {
                Next::Do(want) => {
                    assert_eq!(self.round.next(self.now), Next::Do(want.clone()));
                    return (want, self.now.since(start));
                }
                Next::WaitUntil(then) => {
                    assert!(then > self.now, "a wait ends later");
                    self.now = then;
                }
            }
        }
    }

    /// The next want must be this one, after this many microseconds; then it is answered.
    fn answer(&mut self, want: &Want, after: u64, seen: Seen) {
        assert_eq!(self.want(), (want.clone(), after));
        self.round.see(seen, self.now);
    }

    fn claims(&mut self, look: &Look, after: u64) {
        let want = Want::Claim(std::sync::Arc::new(look.clone()));
        self.answer(&want, after, claimed(look.ids.len() as u64));
    }

    fn stands(&self, standing: Standing) {
        assert_eq!(self.round.standing(), standing);
    }
}
