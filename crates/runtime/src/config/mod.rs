//! Configuration: defaults → TOML file → environment.
//!
//! Owns how values are found, merged and checked, and what a fault looks like. The one place
//! that reads the environment. Every option has a default that serialises; the tree of defaults
//! *is* the list of known keys, so a typo is told with the nearest known name.
//!
//! The environment is shared by all services (`target/sandbox/env` is a configuration), so a
//! section of another service is skipped; a section that nobody knows is a fault.

mod merge;
pub mod sections;
mod source;
pub mod value;

use std::fmt;

use serde::{Serialize, de::DeserializeOwned};

pub use source::Sources;

/// The prefix of every variable.
pub const PREFIX: &str = "TIDELINE_";

/// Every section of the one tree that all services share.
pub const SECTIONS: &[&str] = &[
    "auth",
    "cql",
    "fanout",
    "kafka",
    "log",
    "postgres",
    "read_api",
    "relay",
    "startup",
    "sweep",
    "timelines",
    "write_api",
];

/// All that is wrong with a configuration, together.
#[derive(Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// At least one fault.
    pub faults: Vec<Fault>,
}

/// One fault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Where it stands: a variable's name, or `file: key.path`.
    pub at: String,
    /// What is wrong, and the fix.
    pub text: String,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("invalid configuration")?;
        for fault in &self.faults {
            write!(f, "\n  {}: {}", fault.at, fault.text)?;
        }
        Ok(())
    }
}

impl std::error::Error for ConfigError {}

/// Reads a configuration of type `T` from the sources.
///
/// # Errors
/// [`ConfigError`] with every fault, each with its place.
pub fn load<T>(sources: &Sources) -> Result<T, ConfigError>
where
    T: Serialize + DeserializeOwned + Default,
{
    let settings = source::settings(sources)?;
    merge::merge(settings)
}
