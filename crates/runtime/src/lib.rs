//! What every binary needs around its own work.
//!
//! Owns: reading the configuration, logs, metric families, the admin port, the signal to stop,
//! riding over dependencies that are still booting, and exit codes.
//!
//! Does not own: anything about posts; clients of Postgres, Kafka or the CQL store.
//!
//! Promise: a process that returns from `main` says why by its exit code ([`exit`]); the admin
//! port answers from the first moment to the last.

pub mod admin;
pub mod config;
pub mod exit;
pub mod health;
pub mod metrics;
pub mod report;
mod running;
pub mod shutdown;
pub mod startup;
pub mod telemetry;

pub use admin::Admin;
pub use health::Health;
pub use running::Running;
pub use shutdown::Shutdown;
