//! read-api against a real Postgres and a real timeline store, over HTTP.
//!
//! Rows are written as fan-out writes them, by the tests themselves: what fan-out does is tested
//! where it lives.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod app;
mod lists;
mod status;
mod timeline;
