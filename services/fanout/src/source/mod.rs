//! What comes in: records and rebalances from Kafka, followers from Postgres.

pub(crate) mod consume;
pub(crate) mod followers;
