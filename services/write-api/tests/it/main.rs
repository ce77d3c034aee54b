//! write-api against a real Postgres, over HTTP.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod admin;
mod app;
mod follows;
mod outage;
mod posts;
mod refusals;
