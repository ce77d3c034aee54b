//! Logs: fields, not sentences, on standard error, as text or JSON.

use tracing_subscriber::EnvFilter;

use crate::config::sections::{Log, LogFormat};

/// The log level is not one that the filter understands.
#[derive(Debug, thiserror::Error)]
#[error("log.level {level:?} is not a level or a filter such as \"info,relay=debug\"")]
pub struct InvalidLevel {
    /// As configured.
    pub level: String,
    /// What the filter said.
    #[source]
    pub source: tracing_subscriber::filter::ParseError,
}

/// Installs the log output of this process. A second call changes nothing.
///
/// # Errors
/// When the level cannot be read.
pub fn init(log: &Log) -> Result<(), InvalidLevel> {
    let filter = EnvFilter::try_new(&log.level).map_err(|source| InvalidLevel {
        level: log.level.clone(),
        source,
    })?;
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr);
    // An error here means that a subscriber is installed already, as in tests.
    let _installed = match log.format {
        LogFormat::Text => builder.with_ansi(false).try_init(),
        LogFormat::Json => builder.json().flatten_event(true).try_init(),
    };
    Ok(())
}
