//! Client settings, topics, producer, dead letters, and the consumer loop that every consumer
//! shares.
//!
//! Owns: everything that knows `rdkafka`. The settings that guard correctness are constants in
//! [`settings`], each with its reason; topics are declared in `schemas/topics.toml` and compared
//! with the live broker; the producer reports each record once; the consumer keeps its group
//! membership alive on a thread of its own, whatever the work does.
//!
//! Does not own: what a record means (`events`), when an offset may be committed (the service,
//! with `ack-tracker`), rows that account for dead letters (the service, with `database`).
//!
//! Promise: nothing here skips, drops or reorders a record, and nothing commits an offset that it
//! was not told to commit. Every queue is bounded and every wait on a broker is timed out.

pub mod admin;
pub mod consumer;
pub mod dead_letters;
mod error;
mod log;
pub mod lookup;
pub mod producer;
pub mod record;
pub mod settings;
pub mod snapshot;
pub mod surgery;
pub mod topics;

pub use admin::Admin;
pub use consumer::{Consumer, ConsumerEvent, ConsumerHandle};
pub use error::{Error, class_of};
pub use producer::{DeliveryReport, EnqueueError, ProduceError, Producer};
pub use record::{Consumed, Envelope, Header, Record};
pub use settings::KafkaConfig;
