//! The relay against real servers, one deployment per test.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on ends with a panic"
)]

mod delivery;
mod failover;
mod life;
mod odd_rows;
mod process;
mod recovery;
mod rig;
