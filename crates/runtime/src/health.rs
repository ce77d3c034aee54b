//! What `/livez`, `/readyz` and `/startupz` answer from.
//!
//! A service reports here; nothing here asks a dependency. Liveness is the loop turning;
//! readiness is a set of named conditions, all of which must hold.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

/// A loop that has not turned for this long is stuck.
const STUCK_AFTER: Duration = Duration::from_secs(30);

/// The state of one process, shared between its parts.
#[derive(Clone, Debug)]
pub struct Health(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    started: bool,
    turned: Option<Instant>,
    conditions: BTreeMap<&'static str, Condition>,
}

/// One named condition of readiness.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// Whether it holds.
    pub holds: bool,
    /// What it is about, or the fix when it does not hold.
    pub detail: String,
}

impl Default for Health {
    fn default() -> Self {
        Self::new()
    }
}

impl Health {
    /// A process that has not started up yet.
    pub fn new() -> Self {
        Self(Arc::new(Mutex::new(State {
            started: false,
            turned: None,
            conditions: BTreeMap::new(),
        })))
    }

    /// Start-up is over.
    pub fn started(&self) {
        self.with(|state| state.started = true);
    }

    /// The main loop has turned. A service that never calls this is live as long as it answers.
    pub fn turned(&self) {
        self.with(|state| state.turned = Some(Instant::now()));
    }

    /// Sets the named condition.
    pub fn set(&self, name: &'static str, holds: bool, detail: impl Into<String>) {
        let condition = Condition {
            holds,
            detail: detail.into(),
        };
        self.with(|state| {
            let _previous = state.conditions.insert(name, condition);
        });
    }

    /// Whether start-up is over.
    pub fn is_started(&self) -> bool {
        self.with(|state| state.started)
    }

    /// Whether the main loop turns.
    pub fn is_live(&self) -> bool {
        self.with(|state| state.turned.is_none_or(|at| at.elapsed() < STUCK_AFTER))
    }

    /// Whether start-up is over and every condition holds, and the conditions.
    pub fn readiness(&self) -> (bool, BTreeMap<&'static str, Condition>) {
        self.with(|state| {
            let ready = state.started && state.conditions.values().all(|condition| condition.holds);
            (ready, state.conditions.clone())
        })
    }

    fn with<T>(&self, f: impl FnOnce(&mut State) -> T) -> T {
        // A panic while the lock was held cannot leave the state half written.
        f(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
