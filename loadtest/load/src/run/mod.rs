//! The run itself: operations become due, are begun, and nobody waits for them.
//!
//! ```text
//! Plan ──due──▶ dispatch ──permit?──▶ one task each ──▶ APIs
//!                  │ none                   │
//!                  ▼                        ├──▶ journal, before the request and after the answer
//!                shed: the run is invalid   ├──▶ tally, from the intended start
//!                                           └──▶ deliveries to wait for
//! ```
//!
//! Promise: how long an answer takes never moves the start of another operation. What is under way
//! is bounded, and an operation beyond the bound is counted instead of delayed.

mod dispatch;
mod insist;
mod operations;
mod watcher;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use judge::JournalWriter;
use tokio::sync::Semaphore;

pub use dispatch::{Arrived, dispatch};

use crate::accounts::Accounts;
use crate::client::Client;
use crate::clock::{Ahead, Clock};
use crate::deliveries::Awaited;
use crate::scenario::{Limits, Scenario};
use crate::tally::{Counts, Tally};

/// What every task of a run shares.
#[derive(Debug)]
pub struct Shared {
    /// Talks to the APIs.
    pub client: Client,
    /// Every operation, on disk.
    pub journal: JournalWriter,
    /// Ids.
    pub accounts: Accounts,
    /// The run's clock.
    pub clock: Clock,
    /// Bounds.
    pub limits: Limits,
    /// The first part of every post's key: no other run has it.
    pub name: String,
    /// Posts whose delivery is waited for.
    pub awaited: Awaited,
    permits: Arc<Semaphore>,
    watchers: Arc<Semaphore>,
    tally: Mutex<Tally>,
    ahead: Mutex<Ahead>,
}

impl Shared {
    /// Nothing has happened yet, and the clock starts. `name` is part of every post's key.
    pub fn new(
        client: Client,
        journal: JournalWriter,
        accounts: Accounts,
        scenario: &Scenario,
        name: String,
    ) -> Self {
        let limits = scenario.limits.clone();
        Self {
            client,
            journal,
            accounts,
            clock: Clock::start(),
            name,
            awaited: Awaited::default(),
            permits: Arc::new(Semaphore::new(limits.in_flight)),
            watchers: Arc::new(Semaphore::new(scenario.probe.at_once)),
            limits,
            tally: Mutex::new(Tally::new(scenario.warm_up)),
            ahead: Mutex::default(),
        }
    }

    /// What was counted; not to be held over an await.
    pub fn tally(&self) -> MutexGuard<'_, Tally> {
        self.tally.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The plain counts.
    pub fn counts(&self) -> Counts {
        self.tally().counts
    }

    /// Operations under way.
    pub fn in_flight(&self) -> usize {
        self.limits
            .in_flight
            .saturating_sub(self.permits.available_permits())
    }

    /// How far Postgres's clock is ahead; not to be held over an await.
    pub fn ahead(&self) -> MutexGuard<'_, Ahead> {
        self.ahead.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
