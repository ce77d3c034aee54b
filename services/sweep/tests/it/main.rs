//! The sweep against real servers, one deployment per test.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on ends with a panic"
)]

mod account;
mod days;
mod dispatch;
mod fates;
mod published;
mod rig;
mod sharing;
