//! Timelines: which posts stand in whose timeline.
//!
//! Owns the table `timelines`, its schema runner, the only driver of the CQL store, and the rules
//! that make a repeated write harmless. Does not own what is written (fan-out decides), bodies
//! (Postgres has them) or retries (the caller has them; an [`StoreError::class`] says which).
//!
//! ```text
//! fan-out  --write, delete-->  TimelineStore  <--page--  read-api
//!                              |          |   <--scan--  judge
//!                       CqlTimelines   MemoryTimelines
//! ```
//!
//! Failure promise: after an error any part of the rows may be written, and doing the same call
//! again is harmless: the same rows leave the same cells, the same write timestamp and an expiry
//! equal within 5 s (D-7), and never bring back a deleted row (D-8). Nothing is unbounded: the
//! rows in flight have a fixed number of permits, and every wait on the server has a limit.

mod cql;
mod error;
mod memory;
mod row;
pub mod schema;
mod store;

pub use cql::{CqlConfig, CqlTimelines, ScanPosition, ScannedPage, WriteMode, contact_points};
pub use error::{Operation, StoreError};
pub use memory::MemoryTimelines;
pub use row::{
    MAX_TTL_SECONDS, PgNow, ScannedRow, StoredRow, TimelineDelete, TimelineRow, Written,
};
pub use store::TimelineStore;
