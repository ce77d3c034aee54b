//! Where records go: the producer, the dead letters' rows, the ledger.
//!
//! Knows Kafka and the database, decides nothing: each record is handed over once, and each of
//! its outcomes is reported once.

mod ledger;
mod letters;
mod produce;
mod topics;

pub use ledger::Ledger;
pub use letters::Letters;
pub use produce::{Outcome, Sink};
pub use topics::verify;
