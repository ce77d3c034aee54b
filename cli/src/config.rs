//! The sections of the shared configuration that the commands read.

use runtime::config::sections::{Auth, Cql, Kafka, Log, Postgres, Startup, Timelines};
use serde::{Deserialize, Serialize};

/// The configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// `[auth]`
    pub auth: Auth,
    /// `[cql]`
    pub cql: Cql,
    /// `[kafka]`
    pub kafka: Kafka,
    /// `[log]`
    pub log: Log,
    /// `[postgres]`
    pub postgres: Postgres,
    /// `[startup]`
    pub startup: Startup,
    /// `[sweep]`: to tell what the sweep would do.
    pub sweep: sweep::config::Section,
    /// `[timelines]`
    pub timelines: Timelines,
}
