//! The sections that several services share. A service's own section stands in its `config.rs`.
//!
//! The defaults run against the sandbox's first port block with no file at all.

use serde::{Deserialize, Serialize};

use super::value::{Secret, Span};

/// `[postgres]`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Postgres {
    /// `postgresql://user[:password]@host:port/database`
    pub url: Secret,
    /// Connections this process may hold, the replication connection apart.
    pub pool_size: usize,
    /// The replication slot of the outbox: the relay streams from it, the sweep looks at it.
    pub slot: String,
    /// The publication of the outbox.
    pub publication: String,
}

impl Default for Postgres {
    fn default() -> Self {
        Self {
            url: Secret::new("postgresql://postgres@127.0.0.1:17400/tideline"),
            pool_size: 8,
            slot: "tideline_relay".into(),
            publication: "tideline_outbox".into(),
        }
    }
}

/// `[kafka]`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Kafka {
    /// Bootstrap servers, comma separated.
    pub brokers: String,
    /// First part of every topic and group name.
    pub namespace: String,
    /// Of the topics that `tideline migrate` creates.
    pub replication_factor: i32,
}

impl Default for Kafka {
    fn default() -> Self {
        Self {
            brokers: "127.0.0.1:17401".into(),
            namespace: "tideline".into(),
            replication_factor: 1,
        }
    }
}

/// `[cql]`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Cql {
    /// Contact points, comma separated.
    pub nodes: String,
    /// Keyspace of the timelines.
    pub keyspace: String,
    /// Of the keyspace that `tideline migrate` creates.
    pub replication_factor: u32,
}

impl Default for Cql {
    fn default() -> Self {
        Self {
            nodes: "127.0.0.1:17403".into(),
            keyspace: "tideline".into(),
            replication_factor: 1,
        }
    }
}

/// `[timelines]`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Timelines {
    /// How long a post stays in timelines, from its own time.
    pub retention: Span,
}

impl Default for Timelines {
    fn default() -> Self {
        Self {
            retention: Span::days(30),
        }
    }
}

/// `[auth]`
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Auth {
    /// File with the HS256 secret; wins over `secret`.
    pub secret_file: String,
    /// The HS256 secret itself, at least 32 bytes.
    pub secret: Secret,
}

impl Auth {
    /// The HS256 secret: the file's content without its last line break, else the option.
    ///
    /// # Errors
    /// A text that names the option to set.
    pub fn read_secret(&self) -> Result<Secret, String> {
        let secret = if self.secret_file.is_empty() {
            self.secret.clone()
        } else {
            let text = std::fs::read_to_string(&self.secret_file).map_err(|error| {
                format!(
                    "auth.secret_file {:?} cannot be read: {error}",
                    self.secret_file
                )
            })?;
            Secret::new(text.trim_end_matches(['\r', '\n']))
        };
        match secret.expose().len() {
            0 => Err("no HS256 secret: set auth.secret_file or auth.secret".to_owned()),
            1..32 => Err("the HS256 secret is shorter than 32 bytes".to_owned()),
            _ => Ok(secret),
        }
    }
}

/// `[log]`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Log {
    /// A level, or a filter such as `info,relay=debug`.
    pub level: String,
    /// `text` or `json`.
    pub format: LogFormat,
}

impl Default for Log {
    fn default() -> Self {
        Self {
            level: "info,scylla=off".into(),
            format: LogFormat::Text,
        }
    }
}

/// The form of log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

/// `[startup]`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Startup {
    /// How long start-up rides over dependencies that do not answer, before exit code 69.
    pub budget: Span,
}

impl Default for Startup {
    fn default() -> Self {
        Self {
            budget: Span::seconds(300),
        }
    }
}
