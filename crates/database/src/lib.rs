//! Migrations and every typed query on Postgres.
//!
//! Owns: the schema (`schemas/postgres`, where the data model is explained), and one module per
//! noun with all the statements that touch it, so that writers, relay, fan-out, sweep and readers
//! share one definition.
//!
//! Does not own: the replication connection (crate `replication`), any retry beyond a clash of
//! drawn ids, any decision about delivery.
//!
//! Promise: a function that changes more than one row does so in one transaction. Every wait on
//! the server is bounded, by the server and by this side. Each error has one [`events::Class`].
//!
//! Cancel safety: dropping a future rolls its transaction back, unless the commit was already on
//! its way; then the outcome is unknown, as after a lost connection.

pub mod account;
pub mod claim;
pub mod clock;
pub mod dead_letters;
pub mod delivery_ledger;
pub mod discarded;
pub mod epoch;
pub mod error;
pub mod finished;
pub mod follows;
pub mod migrations;
pub mod outbox;
pub mod outbox_voids;
pub mod pool;
pub mod post_delivery;
pub mod posts;
pub mod redelivery;
pub mod relay_position;
pub mod slots;
mod stages;
mod statement;
pub mod sweep_requests;
pub mod users;

pub use error::Error;
pub use pool::{Client, Pool};
