//! What fan-out decides, without IO: no tokio, no clock, no sockets, no environment.
//!
//! Time comes in as an argument; sleeping goes out as an action.

pub mod delivery;
pub mod membership;
pub mod plan;
pub mod retry;
pub mod row;
pub mod state;
