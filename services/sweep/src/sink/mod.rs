//! Where records go, and what is written about them: claims, the producer, the dead letters' rows.
//!
//! Knows Kafka and the database; what is to be sent is for `core::fate` to say.

pub(crate) mod publish;
pub(crate) mod rate;
pub(crate) mod redeliver;
mod work;
