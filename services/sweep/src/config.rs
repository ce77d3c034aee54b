//! What can be set, with defaults that run against the sandbox.

use std::time::Duration;

use events::Stage;
use kafka::KafkaConfig;
use runtime::config::{
    sections::{Kafka, Log, Postgres, Startup},
    value::Span,
};
use serde::{Deserialize, Serialize};

use crate::core::{Mode, Timing};

/// The sections that the sweep reads.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Where the outbox and the account are.
    pub postgres: Postgres,
    /// Where the records go.
    pub kafka: Kafka,
    /// Logs.
    pub log: Log,
    /// Start-up.
    pub startup: Startup,
    /// The sweep's own.
    pub sweep: Section,
}

/// `[sweep]`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Section {
    /// Address of the admin port.
    pub admin: String,
    /// Whether a relay streams the outbox, or this process publishes it.
    pub mode: SweepMode,
    /// Between two looks at a stage.
    pub interval: Span,
    /// Between two looks at what is not published, in mode `dispatch`.
    pub dispatch_interval: Span,
    /// Between two questions whether slot or groups have passed a look.
    pub poll: Span,
    /// How long a ledger entry may take after slot or groups have passed.
    pub grace: Span,
    /// For how long an inactive slot may still be a relay that restarts.
    pub relay_patience: Span,
    /// For how long slot or groups may take to pass a look before that is an alarm.
    pub blocked_after: Span,
    /// Age of an event past which it is discarded instead of sent again.
    pub horizon: Span,
    /// How many outbox days are kept, whole days; a day that is not finished is kept longer.
    pub retention: Span,
    /// Ids that one look holds at most (D-13).
    pub look_ids: usize,
    /// Rows sent again per second at most, both stages together.
    pub rate: u32,
    /// Rows of one claim at most: what is sent under one lock.
    pub claim_batch: usize,
    /// Between two rounds of housekeeping.
    pub housekeeping: Span,
}

/// `sweep.mode`
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SweepMode {
    /// A relay publishes; what it has passed and not published is sent.
    Sweep,
    /// There is no relay: whatever is not published is sent at once.
    Dispatch,
}

impl Default for Section {
    fn default() -> Self {
        Self {
            admin: "127.0.0.1:17414".into(),
            mode: SweepMode::Sweep,
            interval: Span::seconds(10),
            dispatch_interval: Span::millis(200),
            poll: Span::millis(500),
            grace: Span::seconds(5),
            relay_patience: Span::seconds(600),
            blocked_after: Span::seconds(60),
            horizon: Span::days(7),
            retention: Span::days(7),
            look_ids: 100_000,
            rate: 5_000,
            claim_batch: 2_000,
            housekeeping: Span::seconds(30),
        }
    }
}

/// Values that the sweep cannot work with.
#[derive(Debug, thiserror::Error)]
#[error("invalid configuration: {}", faults.join("; "))]
pub struct Invalid {
    /// All of them, each with the key.
    pub faults: Vec<String>,
}

const DAY: Duration = Duration::from_secs(86_400);

impl Config {
    /// Checks what the types do not.
    ///
    /// # Errors
    /// Every fault, together.
    pub fn check(&self) -> Result<(), Invalid> {
        let own = &self.sweep;
        let mut faults = Vec::new();
        if let Err(invalid) = self.kafka() {
            faults.extend(invalid.faults);
        }
        let short = Duration::from_millis(10);
        for (key, span) in [
            ("interval", own.interval),
            ("dispatch_interval", own.dispatch_interval),
            ("poll", own.poll),
            ("housekeeping", own.housekeeping),
        ] {
            if span.0 < short {
                faults.push(format!("sweep.{key}: use at least 10ms"));
            }
        }
        if !(1..=1_000_000).contains(&own.look_ids) {
            faults.push("sweep.look_ids: use 1 to 1000000".to_owned());
        }
        if !(1..=5_000).contains(&own.claim_batch) {
            faults.push("sweep.claim_batch: use 1 to 5000".to_owned());
        }
        if own.rate == 0 {
            faults.push("sweep.rate: use at least 1 row per second".to_owned());
        }
        if own.retention.0 < DAY || !own.retention.0.as_secs().is_multiple_of(DAY.as_secs()) {
            faults.push("sweep.retention: use whole days, at least 1d".to_owned());
        }
        if own.horizon.0.is_zero() {
            faults.push("sweep.horizon: use at least 1s, 7d by default".to_owned());
        }
        if self.postgres.pool_size < MIN_POOL {
            faults.push(format!(
                "postgres.pool_size: the sweep needs at least {MIN_POOL}"
            ));
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

    /// Whole days that outbox days are kept for.
    pub(crate) fn retention_days(&self) -> u16 {
        u16::try_from(self.sweep.retention.0.as_secs() / DAY.as_secs()).unwrap_or(u16::MAX)
    }

    /// The waiting times of a stage's round.
    pub(crate) fn timing(&self, stage: Stage) -> Timing {
        let own = &self.sweep;
        let micros = |span: Span| u64::try_from(span.0.as_micros()).unwrap_or(u64::MAX);
        let interval = match (stage, own.mode) {
            (Stage::Published, SweepMode::Dispatch) => own.dispatch_interval,
            (Stage::Published | Stage::Delivered, _) => own.interval,
        };
        Timing {
            interval: micros(interval),
            grace: micros(own.grace),
            relay_patience: micros(own.relay_patience),
            blocked_after: micros(own.blocked_after),
            poll: micros(own.poll),
        }
    }

    /// Claims of one stage at the same time: as many as the pool has connections for.
    pub(crate) const fn side_by_side(&self) -> usize {
        let for_each = self.postgres.pool_size.saturating_sub(OTHERS) / Stage::ALL.len();
        if for_each < MOST_SIDE_BY_SIDE {
            for_each
        } else {
            MOST_SIDE_BY_SIDE
        }
    }

    /// How rows get to the broker.
    pub(crate) const fn mode(&self) -> Mode {
        match self.sweep.mode {
            SweepMode::Sweep => Mode::Sweep,
            SweepMode::Dispatch => Mode::Dispatch,
        }
    }
}

/// Connections for the requests and the housekeeping.
const OTHERS: usize = 2;
/// Those, and for each stage two claims side by side.
const MIN_POOL: usize = OTHERS + 4;
/// More claims than that do not make a stage faster.
const MOST_SIDE_BY_SIDE: usize = 4;

#[cfg(test)]
mod tests {
    use runtime::config::{Sources, load};

    use super::*;

    #[test]
    fn defaults_are_valid_and_the_environment_of_all_services_is_a_configuration() {
        assert!(Config::default().check().is_ok());
        let variables = [
            ("TIDELINE_SWEEP__MODE", "dispatch"),
            ("TIDELINE_SWEEP__RELAY_PATIENCE", "20m"),
            ("TIDELINE_RELAY__ADMIN", "127.0.0.1:1"),
        ];
        let variables = variables.map(|(key, value)| (key.to_owned(), value.to_owned()));
        let config: Config =
            load(&Sources::of_variables(variables.to_vec())).expect("a configuration");
        assert_eq!(config.sweep.mode, SweepMode::Dispatch);
        assert_eq!(config.sweep.relay_patience, Span::seconds(1_200));
        assert_eq!(config.retention_days(), 7);
    }

    #[test]
    fn every_fault_is_told_with_its_key() {
        let mut config = Config::default();
        config.sweep.look_ids = 0;
        config.sweep.retention = Span::seconds(90_000);
        config.sweep.rate = 0;
        config.postgres.pool_size = 1;
        let text = config.check().err().map(|error| error.to_string());
        let text = text.unwrap_or_default();
        for key in [
            "sweep.look_ids",
            "sweep.retention",
            "sweep.rate",
            "postgres.pool_size",
        ] {
            assert!(text.contains(key), "{key} in {text}");
        }
    }
}
