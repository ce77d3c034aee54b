//! The configuration of the relay. The defaults run on the sandbox.

use std::time::Duration;

use runtime::config::{
    sections::{Kafka, Log, Postgres, Startup},
    value::Span,
};
use serde::{Deserialize, Serialize};

use crate::core::{Limits, Timing};

/// All that the relay reads from the tree of all services.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Where the outbox is.
    pub postgres: Postgres,
    /// Where the records go.
    pub kafka: Kafka,
    /// Log level and form.
    pub log: Log,
    /// Start-up budget.
    pub startup: Startup,
    /// Its own section.
    pub relay: Section,
}

/// `[relay]`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Section {
    /// Address of the admin port.
    pub admin: String,
    /// Without an acknowledgement for this long, the replication connection is closed, so that
    /// Postgres can shut down.
    pub sink_patience: Span,
    /// Least time between two stored positions.
    pub save_position: Span,
    /// How long a shutdown waits for acknowledgements.
    pub drain: Span,
    /// What to do when a slot that was in use is missing or was given up by the server.
    pub on_slot_lost: OnSlotLost,
    /// Records in flight at which reading pauses. Kafka's client takes 20 000.
    pub max_rows_in_flight: usize,
    /// Bytes in flight at which reading pauses.
    pub max_bytes_in_flight: usize,
    /// Whether published ids are entered in the ledger. Without, nothing accounts for what was
    /// published: for an outbox that no sweep looks at, and for measuring what entering costs.
    pub ledger: bool,
}

impl Default for Section {
    fn default() -> Self {
        Self {
            admin: "127.0.0.1:17411".into(),
            sink_patience: Span::seconds(20),
            save_position: Span::seconds(10),
            drain: Span::seconds(10),
            on_slot_lost: OnSlotLost::Recreate,
            max_rows_in_flight: 10_000,
            max_bytes_in_flight: 16 * 1024 * 1024,
            ledger: true,
        }
    }
}

/// What follows a lost slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnSlotLost {
    /// Make it anew; the sweep delivers what the ledger lacks.
    Recreate,
    /// Wait in the state `slot_lost` for an operator.
    Stop,
}

/// An option with a value that the relay cannot work with.
#[derive(Debug, thiserror::Error)]
#[error("{option} must be {expected}")]
pub struct InvalidOption {
    option: &'static str,
    expected: &'static str,
}

impl Config {
    /// Checks what the types cannot.
    ///
    /// # Errors
    /// The first option that is out of range.
    pub fn check(&self) -> Result<(), InvalidOption> {
        let (section, postgres) = (&self.relay, &self.postgres);
        let name = |text: &str| {
            (1..=63).contains(&text.len())
                && text
                    .bytes()
                    .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
        };
        let fault = |option, expected| Err(InvalidOption { option, expected });
        const NAME: &str = "1 to 63 lower-case letters, digits and '_'";
        if !name(&postgres.slot) {
            return fault("postgres.slot", NAME);
        }
        if !name(&postgres.publication) {
            return fault("postgres.publication", NAME);
        }
        if !(2..=kafka::settings::MAX_UNREPORTED / 2).contains(&section.max_rows_in_flight) {
            return fault(
                "relay.max_rows_in_flight",
                "between 2 and 10000, half of what the kafka client holds",
            );
        }
        if section.max_bytes_in_flight < 64 * 1024 {
            return fault("relay.max_bytes_in_flight", "at least 65536");
        }
        if section.sink_patience.0 < Duration::from_millis(100) {
            return fault("relay.sink_patience", "at least 100ms");
        }
        Ok(())
    }

    pub(crate) fn limits(&self) -> Limits {
        Limits {
            rows: self.relay.max_rows_in_flight,
            bytes: self.relay.max_bytes_in_flight,
        }
    }

    pub(crate) fn timing(&self) -> Timing {
        let micros = |span: Span| u64::try_from(span.micros()).unwrap_or(0);
        Timing {
            sink_patience_us: micros(self.relay.sink_patience),
            save_position_us: micros(self.relay.save_position),
            drain_us: micros(self.relay.drain),
            startup_budget_us: micros(self.startup.budget),
        }
    }
}

#[cfg(test)]
mod tests {
    use runtime::config::{Sources, load};

    use super::*;

    #[test]
    fn the_environment_of_all_services_is_a_configuration() {
        let variables = [
            ("TIDELINE_RELAY__SINK_PATIENCE", "5s"),
            ("TIDELINE_RELAY__ON_SLOT_LOST", "stop"),
            ("TIDELINE_RELAY__LEDGER", "false"),
            ("TIDELINE_POSTGRES__SLOT", "another"),
            ("TIDELINE_FANOUT__ADMIN", "127.0.0.1:1"),
        ];
        let variables = variables.map(|(key, value)| (key.to_owned(), value.to_owned()));
        let config: Config = load(&Sources::of_variables(variables.to_vec())).unwrap();
        assert_eq!(config.postgres.slot, "another");
        assert_eq!(config.timing().sink_patience_us, 5_000_000);
        assert_eq!(config.relay.on_slot_lost, OnSlotLost::Stop);
        assert!(!config.relay.ledger && Config::default().relay.ledger);
        assert!(config.check().is_ok());
    }

    #[test]
    fn values_out_of_range_are_named() {
        let mut config = Config::default();
        config.postgres.slot = "it's".into();
        assert!(
            config
                .check()
                .unwrap_err()
                .to_string()
                .contains("postgres.slot")
        );
        let mut config = Config::default();
        config.relay.max_rows_in_flight = 1;
        assert!(
            config
                .check()
                .unwrap_err()
                .to_string()
                .contains("max_rows_in_flight")
        );
    }
}
