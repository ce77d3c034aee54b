//! The relay's decisions, pure: inputs and the time come in, actions go out.
//!
//! Owns: which LSN may be confirmed and when ([`confirm`]), how a row is read ([`columns`];
//! how it becomes a record is in `events::route`), how much may be in flight ([`limits`]), and the life cycle around them
//! ([`state`]). Does not own sockets, clocks, logs or metrics.
//!
//! Failure promise: whatever the order of messages, acknowledgements, failures and lost
//! connections, the confirmed position never passes a transaction with a row that neither the
//! broker nor the dead-letter topic has acknowledged (D-3).

pub mod backoff;
pub mod columns;
pub mod confirm;
pub mod limits;
pub mod state;
pub mod txn;

mod session;

#[cfg(test)]
mod model;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;

pub use confirm::Status;
pub use events::route::{DeadReason, Letter, Record, Router};
pub use limits::{InFlight, Limits};
pub use state::Ignored;
pub use state::{
    Action, Actions, Attempt, Epoch, Failure, Gauges, Input, Lost, Relay, State, StopReason, Timing,
};

/// A point in time, microseconds since an arbitrary start; never falls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(pub u64);

impl Moment {
    /// The moment `micros` later.
    #[must_use]
    pub const fn plus(self, micros: u64) -> Self {
        Self(self.0.saturating_add(micros))
    }

    /// Microseconds since `earlier`; 0 when it is not earlier.
    pub const fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}
