//! A wall clock of a service's own.

use sandbox::Clock;

use crate::{names::unique, servers::instance};

/// A clock that is right. A service that is started with its variables goes by it, and jumps when
/// it is set; the monotonic clock stays honest.
///
/// # Panics
/// When libfaketime is not installed: a test that needs it cannot pass without.
pub fn clock() -> Clock {
    let file = instance().dir().join("clocks").join(unique("clock"));
    Clock::new(&file).unwrap_or_else(|error| panic!("{error}"))
}
