//! The sweep's decisions, pure: what was seen and the time come in, what to do next goes out.
//!
//! Owns: when a look may be claimed ([`Round`]), what becomes of one missing id ([`mod@fate`]),
//! which ids are worth reading ([`voids`], [`reader`]), what is still on its way ([`flight`]), and
//! which outbox days there must be and which may go ([`days`]). Does not own sockets, clocks, SQL,
//! logs or metrics.
//!
//! Failure promise: every machine may be thrown away at any step and made anew, and nothing is
//! lost: what it remembers is patience, and which offsets are stale. While a relay is live,
//! positions are known and no ledger insert failed, nothing that is in flight and nothing that is
//! delivered is claimed (D-10).

pub mod days;
pub mod exchange;
pub mod fate;
pub mod flight;
pub mod reader;
pub mod round;
pub mod voids;

mod hop_watch;
mod slot_watch;

#[cfg(test)]
mod tests;

pub use exchange::{
    Claimed, Life, Look, Mark, Mode, Next, Seen, SlotState, SlotView, Standing, Timing, Want,
};
pub use fate::{DiscardReason, Facts, Fate, Why, fate};
pub use reader::Reader;
pub use round::Round;

/// A point in time of this process, microseconds since an arbitrary start; never falls. For
/// waiting only: what decides about data is Postgres's clock, [`events::Micros`].
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
