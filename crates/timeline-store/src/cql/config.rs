//! The settings of the store, and which of them cannot be used.

use crate::error::StoreError;

/// The most bytes that the statements of one batch may take: below the 5 KiB at which Cassandra
/// warns (`batch_size_warn_threshold`).
const BATCH_BYTES: usize = 4 * 1024;

/// The most bytes of one statement in a batch. Rows have a fixed size: kind 1, id 2 + 16, count
/// of values 2, and five values of at most 4 + 8 (CQL protocol v4, section 4.1.7).
const STATEMENT_BYTES: usize = 81;

/// The most rows of one batch: the limit in bytes, in rows of fixed size.
const MAX_BATCH_ROWS: usize = BATCH_BYTES / STATEMENT_BYTES;

/// The most rows in flight that make sense: the stream ids of one connection.
const MAX_IN_FLIGHT: usize = 32_768;

/// How rows are sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum WriteMode {
    /// One prepared statement a row, each routed to a replica of its own owner.
    Single,
    /// Small unlogged batches of rows that share their replicas (and their shard, where there
    /// are shards), so that no coordinator has to forward a foreign row.
    #[default]
    Grouped,
}

impl WriteMode {
    /// The word used in settings and logs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Single => "single",
            Self::Grouped => "grouped",
        }
    }
}

impl std::str::FromStr for WriteMode {
    type Err = StoreError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "single" => Ok(Self::Single),
            "grouped" => Ok(Self::Grouped),
            other => Err(StoreError::Setting {
                reason: format!("write mode {other:?} is neither single nor grouped"),
            }),
        }
    }
}

/// Where the store is and how it is used. The default fits the sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CqlConfig {
    /// Contact points, `host:port`. The others are found through them.
    pub nodes: Vec<String>,
    /// The keyspace: a lower-case letter, then letters, digits and underscores, at most 48.
    pub keyspace: String,
    /// How rows are sent.
    pub write_mode: WriteMode,
    /// The most rows of one batch in the mode `grouped`.
    pub batch_rows: usize,
    /// The most rows in flight to the server. A batch takes its number of rows, a read takes one.
    /// Too many and a small server answers with write timeouts.
    pub in_flight: usize,
}

impl Default for CqlConfig {
    fn default() -> Self {
        Self {
            nodes: contact_points("127.0.0.1:17403"),
            keyspace: "tideline".to_owned(),
            write_mode: WriteMode::default(),
            batch_rows: 32,
            in_flight: 512,
        }
    }
}

/// The contact points of a comma-separated list.
pub fn contact_points(list: &str) -> Vec<String> {
    list.split(',')
        .map(|node| node.trim().to_owned())
        .filter(|node| !node.is_empty())
        .collect()
}

impl CqlConfig {
    /// The store of these [`contact_points`] and keyspace, used as by default.
    pub fn at(nodes: &str, keyspace: &str) -> Self {
        Self {
            nodes: contact_points(nodes),
            keyspace: keyspace.to_owned(),
            ..Self::default()
        }
    }

    pub(crate) fn check(&self) -> Result<(), StoreError> {
        check_keyspace(&self.keyspace)?;
        let reason = if self.nodes.is_empty() {
            "no contact point".to_owned()
        } else if !(1..=MAX_BATCH_ROWS).contains(&self.batch_rows) {
            format!(
                "{} rows a batch, must be 1 to {MAX_BATCH_ROWS}",
                self.batch_rows
            )
        } else if !(self.batch_rows..=MAX_IN_FLIGHT).contains(&self.in_flight) {
            // A batch larger than all permits would wait for ever.
            format!(
                "{} rows in flight, must be {} (one batch) to {MAX_IN_FLIGHT}",
                self.in_flight, self.batch_rows
            )
        } else {
            return Ok(());
        };
        Err(StoreError::Setting { reason })
    }
}

/// Keyspace names stand in statements as they are, so only plain ones are taken.
pub(crate) fn check_keyspace(name: &str) -> Result<(), StoreError> {
    let plain = name.len() <= 48
        && name.starts_with(|c: char| c.is_ascii_lowercase())
        && name
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    if plain {
        return Ok(());
    }
    Err(StoreError::Setting {
        reason: format!("keyspace name {name:?} is not plain"),
    })
}

#[cfg(test)]
mod tests {
    use events::Class;

    use super::*;

    #[test]
    fn the_default_can_be_used() {
        assert!(CqlConfig::default().check().is_ok());
    }

    #[test]
    fn contact_points_are_separated_by_commas() {
        let config = CqlConfig::at("127.0.0.1:1, 127.0.0.1:2,", "k");
        assert_eq!(config.nodes, ["127.0.0.1:1", "127.0.0.1:2"]);
        let nobody = CqlConfig::at(" ,", "k");
        assert!(nobody.check().is_err());
    }

    #[test]
    fn d_13_what_has_no_bound_or_no_effect_is_refused() {
        let refused = |change: fn(&mut CqlConfig)| {
            let mut config = CqlConfig::default();
            change(&mut config);
            config.check().err().map(|error| error.class())
        };
        assert_eq!(refused(|c| c.nodes.clear()), Some(Class::Config));
        assert_eq!(refused(|c| c.batch_rows = 0), Some(Class::Config));
        assert_eq!(
            refused(|c| c.batch_rows = MAX_BATCH_ROWS + 1),
            Some(Class::Config)
        );
        assert_eq!(refused(|c| c.in_flight = 0), Some(Class::Config));
        assert_eq!(
            refused(|c| c.in_flight = c.batch_rows - 1),
            Some(Class::Config)
        );
        assert_eq!(refused(|c| c.in_flight = usize::MAX), Some(Class::Config));
    }

    #[test]
    fn a_keyspace_name_that_is_not_plain_is_refused() {
        for name in [
            "",
            "1a",
            "_a",
            "A",
            "a-b",
            "a\"b",
            "a b",
            "a;drop",
            &"a".repeat(49),
        ] {
            assert!(check_keyspace(name).is_err(), "{name:?}");
        }
        assert!(check_keyspace("tideline_2").is_ok());
    }

    #[test]
    fn modes_have_words() {
        for mode in [WriteMode::Single, WriteMode::Grouped] {
            assert_eq!(mode.as_str().parse::<WriteMode>().ok(), Some(mode));
        }
        assert!("batched".parse::<WriteMode>().is_err());
    }
}
