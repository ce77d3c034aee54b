//! Fan-out against real servers: Postgres, Kafka and the CQL store.

mod bad_records;
mod delivery;
mod fenced;
mod lost_records;
mod members;
mod stage;
