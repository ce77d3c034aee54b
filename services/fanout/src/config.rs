//! What can be set, with defaults that run against the sandbox.

use std::num::NonZeroUsize;

use kafka::KafkaConfig;
use runtime::config::{
    sections::{Cql, Kafka, Log, Postgres, Startup, Timelines},
    value::Span,
};
use serde::{Deserialize, Serialize};
use timeline_store::CqlConfig;

use crate::core::state::Limits;

/// The sections that fan-out reads.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Where Postgres is.
    pub postgres: Postgres,
    /// Where Kafka is.
    pub kafka: Kafka,
    /// Where the timelines are.
    pub cql: Cql,
    /// How long they keep a post.
    pub timelines: Timelines,
    /// Logs.
    pub log: Log,
    /// Start-up.
    pub startup: Startup,
    /// Fan-out's own.
    pub fanout: Fanout,
}

/// `[fanout]`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Fanout {
    /// Address of the admin port.
    pub admin: String,
    /// Static membership in the consumer group: a restart within the session timeout moves no
    /// partition. Empty: dynamic membership. Two processes must never share one.
    pub instance_id: String,
    /// Followers per page.
    pub page_rows: usize,
    /// Rows read and not yet written, all posts together (D-13).
    pub rows_in_flight: usize,
    /// Records in work, all partitions together (D-13).
    pub records_in_flight: usize,
    /// Records of one partition behind its oldest unfinished one (D-13).
    pub partition_window: usize,
    /// For how long a post that is not in the database may still become visible there: commits
    /// reach the replication stream first, much earlier where a synchronous standby lags.
    pub visible_within: Span,
}

impl Default for Fanout {
    fn default() -> Self {
        Self {
            admin: "127.0.0.1:17412".into(),
            instance_id: String::new(),
            page_rows: 1_000,
            rows_in_flight: 16_384,
            records_in_flight: 256,
            partition_window: 10_000,
            visible_within: Span::seconds(60),
        }
    }
}

/// Values that do not fit together.
#[derive(Debug, thiserror::Error)]
#[error("invalid configuration: {}", faults.join("; "))]
pub struct Invalid {
    /// All of them, each with the key.
    pub faults: Vec<String>,
}

/// How long the records of a revoked partition may take: below the consumer's patience, so that
/// what is finished by then is still committed.
const DRAIN_US: u64 = 4_000_000;

impl Config {
    /// Checks what the types do not.
    ///
    /// # Errors
    /// Every fault, together.
    pub fn check(&self) -> Result<(), Invalid> {
        let own = &self.fanout;
        let mut faults = Vec::new();
        if let Err(invalid) = self.kafka() {
            faults.extend(invalid.faults);
        }
        if !(1..=10_000).contains(&own.page_rows) {
            faults.push("fanout.page_rows: use 1 to 10000".to_owned());
        }
        if own.rows_in_flight < own.page_rows.saturating_mul(2)
            || u32::try_from(own.rows_in_flight).is_err()
        {
            faults.push("fanout.rows_in_flight: use at least twice fanout.page_rows".to_owned());
        }
        if own.records_in_flight == 0 {
            faults.push("fanout.records_in_flight: use at least 1".to_owned());
        }
        if own.partition_window < own.records_in_flight {
            faults
                .push("fanout.partition_window: use at least fanout.records_in_flight".to_owned());
        }
        if self.postgres.pool_size < 2 {
            faults.push("postgres.pool_size: fan-out needs at least 2".to_owned());
        }
        if faults.is_empty() {
            Ok(())
        } else {
            Err(Invalid { faults })
        }
    }

    pub(crate) fn kafka(&self) -> Result<KafkaConfig, Invalid> {
        let own = &self.kafka;
        KafkaConfig::new(&own.brokers, &own.namespace, own.replication_factor).map_err(|error| {
            Invalid {
                faults: vec![format!("kafka.namespace: {error}")],
            }
        })
    }

    pub(crate) fn cql(&self) -> CqlConfig {
        CqlConfig::at(&self.cql.nodes, &self.cql.keyspace)
    }

    pub(crate) fn limits(&self) -> Limits {
        let high = self.fanout.records_in_flight;
        Limits {
            high,
            low: high / 2,
            window: NonZeroUsize::new(self.fanout.partition_window).unwrap_or(NonZeroUsize::MIN),
            drain_us: DRAIN_US,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_fit_together() {
        Config::default().check().expect("valid");
    }

    #[test]
    fn d_13_limits_that_cannot_work_are_told_together() {
        let mut config = Config::default();
        config.fanout.rows_in_flight = 1_500;
        config.fanout.records_in_flight = 0;
        config.kafka.namespace = "Upper".into();
        let faults = config.check().expect_err("invalid").faults;
        assert_eq!(faults.len(), 3, "{faults:?}");
    }
}
