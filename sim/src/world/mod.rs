//! The world that the cores act in, all of it in memory: Postgres, the log, the store, time.
//!
//! Owns what the servers promise and nothing more: late commits, rollbacks, acknowledgements that
//! get lost, writes with an unknown outcome, rebalances, a standby that takes over. Does not own
//! any decision of Tideline; what it remembers besides ([`truth`]) is what the invariants are judged
//! by, and no actor reads it.

pub(crate) mod log;
pub(crate) mod member;
pub(crate) mod postgres;
pub(crate) mod producer;
pub(crate) mod row;
pub(crate) mod store;
pub(crate) mod truth;

use events::Micros;
use fastrand::Rng;

use crate::{
    bugs::Bug,
    history::History,
    invariants::{Invariant, Violation},
    profile::Profile,
};

use self::{log::Log, postgres::Postgres, store::Store, truth::Truth};

/// Microseconds of a millisecond.
pub(crate) const MS: u64 = 1_000;
/// Microseconds of a second.
pub(crate) const SECOND: u64 = 1_000_000;
/// Postgres's clock when a run begins: 2026-11-30, near noon.
const BEGINS: i64 = 1_796_041_000_000_000;

/// See the module.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) rng: Rng,
    /// Time that passed, microseconds. No process sees it, each has a clock of its own.
    pub(crate) now: u64,
    /// Counts what happened.
    pub(crate) step: u64,
    pub(crate) pg: Postgres,
    /// A standby, a moment behind.
    pub(crate) standby: Option<Box<Postgres>>,
    pub(crate) log: Log,
    pub(crate) store: Store,
    pub(crate) truth: Truth,
    pub(crate) history: History,
    pub(crate) profile: Profile,
    /// Connections of processes that died, which the server has not noticed.
    pub(crate) dead_connections: Vec<u64>,
    /// Whether anything may still go wrong.
    pub(crate) has_faults: bool,
    bug: Option<Bug>,
    violation: Option<Violation>,
}

impl World {
    pub(crate) fn new(seed: u64, bug: Option<Bug>, is_traced: bool) -> Self {
        let mut rng = Rng::with_seed(seed);
        let profile = Profile::draw(&mut rng);
        Self {
            rng,
            now: SECOND,
            step: 0,
            pg: Postgres::new(),
            standby: None,
            log: Log::new(),
            store: Store::default(),
            truth: Truth::default(),
            history: History::new(is_traced),
            profile,
            dead_connections: Vec::new(),
            has_faults: true,
            bug,
            violation: None,
        }
    }

    /// Postgres's clock.
    pub(crate) fn clock(&self) -> Micros {
        Micros(BEGINS)
            .plus(i64::try_from(self.now).unwrap_or(i64::MAX))
            .plus(self.pg.clock_step)
    }

    /// Whether something of this chance, in a thousand, happens.
    pub(crate) fn odds(&mut self, per_mille: u32) -> bool {
        self.rng.u32(..1_000) < per_mille
    }

    /// The same for what goes wrong, which nothing does once the faults are off.
    pub(crate) fn fails(&mut self, per_mille: u32) -> bool {
        self.has_faults && self.odds(per_mille * self.profile.trouble / 10)
    }

    /// A number below `length`; 0 for an empty range.
    pub(crate) fn below(&mut self, length: usize) -> usize {
        if length == 0 {
            0
        } else {
            self.rng.usize(..length)
        }
    }

    /// The server notices connections whose process is dead.
    pub(crate) fn let_go_of_the_dead(&mut self) {
        for connection in std::mem::take(&mut self.dead_connections) {
            self.pg.let_go(connection);
        }
    }

    /// Whether the deliberate bug is switched on.
    pub(crate) fn has_bug(&self, bug: Bug) -> bool {
        cfg!(feature = "bugs") && self.bug == Some(bug)
    }

    /// Tells what happened, if anybody listens.
    pub(crate) fn tell(&mut self, who: &str, text: impl FnOnce() -> String) {
        self.history.tell(self.step, self.now, who, text);
    }

    /// An invariant does not hold. The first one counts.
    pub(crate) fn violate(&mut self, invariant: Invariant, text: impl Into<String>) {
        if self.violation.is_none() {
            let text = text.into();
            self.tell("!", || format!("{}: {text}", invariant.as_str()));
            self.violation = Some(Violation {
                invariant,
                text,
                step: self.step,
            });
        }
    }

    pub(crate) fn violation(&self) -> Option<&Violation> {
        self.violation.as_ref()
    }
}
