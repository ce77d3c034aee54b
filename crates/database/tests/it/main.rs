//! The statements against a real Postgres, each test in a database of its own.

#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

mod account;
mod claim;
mod days;
mod drop_day;
mod epoch;
mod errors;
mod follows;
mod fresh;
mod ledger;
mod ledger_blocks;
mod migrations;
mod mirror;
mod outbox;
mod posts;
mod replication;
mod requests;
mod rows;
mod writer;
