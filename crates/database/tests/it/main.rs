//! The statements against a real Postgres, each test in a database of its own.

#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

mod errors;
mod follows;
mod fresh;
mod ledger;
mod migrations;
mod posts;
mod replication;
