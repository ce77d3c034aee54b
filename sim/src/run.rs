//! Runs of seeds: one, many on several threads, one told in words.

use std::sync::{
    Mutex, PoisonError,
    atomic::{AtomicU64, Ordering},
};

use crate::{bugs::Bug, invariants::Violation, scheduler::Play, world::World};

/// What became of one seed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The seed.
    pub seed: u64,
    /// How much happened.
    pub steps: u64,
    /// Events that the sweep sent again.
    pub sent_again: u64,
    /// The invariant that did not hold, if any.
    pub violation: Option<Violation>,
}

/// Which seeds to run.
#[derive(Clone, Copy, Debug)]
pub struct Seeds {
    /// The first.
    pub from: u64,
    /// How many.
    pub count: u64,
    /// Threads to run them on.
    pub threads: usize,
    /// The deliberate bug.
    pub bug: Option<Bug>,
}

/// What became of many seeds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Seeds that were run.
    pub seeds: u64,
    /// Steps of all of them.
    pub steps: u64,
    /// Events that the sweep sent again.
    pub sent_again: u64,
    /// Those that broke an invariant, in order of their seeds.
    pub violations: Vec<Outcome>,
}

/// Runs one seed.
pub fn one(seed: u64, bug: Option<Bug>) -> Outcome {
    let mut play = Play::new(World::new(seed, bug, false));
    play.run();
    outcome(seed, &play)
}

/// Runs one seed and puts what happened into words.
pub fn tell(seed: u64, bug: Option<Bug>) -> (Outcome, Vec<String>) {
    let mut play = Play::new(World::new(seed, bug, true));
    play.run();
    (outcome(seed, &play), play.world.history.into_lines())
}

/// Runs many seeds; ends early once `enough` of them have broken an invariant.
pub fn many(seeds: Seeds, enough: usize) -> Summary {
    let next = AtomicU64::new(0);
    let summary = Mutex::new(Summary::default());
    let lock = || summary.lock().unwrap_or_else(PoisonError::into_inner);
    let work = || {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            if at >= seeds.count || lock().violations.len() >= enough {
                break;
            }
            let outcome = one(seeds.from.wrapping_add(at), seeds.bug);
            let mut summary = lock();
            summary.seeds += 1;
            summary.steps += outcome.steps;
            summary.sent_again += outcome.sent_again;
            if outcome.violation.is_some() {
                summary.violations.push(outcome);
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..seeds.threads.max(1) {
            scope.spawn(work);
        }
    });
    let mut summary = summary.into_inner().unwrap_or_else(PoisonError::into_inner);
    summary.violations.sort_by_key(|outcome| outcome.seed);
    summary
}

fn outcome(seed: u64, play: &Play) -> Outcome {
    Outcome {
        seed,
        steps: play.world.step,
        sent_again: play.world.truth.sent_again,
        violation: play.world.violation().cloned(),
    }
}
