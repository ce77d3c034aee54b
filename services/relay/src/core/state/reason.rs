//! Why something ended: a connection attempt, a connection, the process.

use std::error::Error;

use events::Class;

use super::State;

/// A connection attempt failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The state that names the failure.
    pub state: State,
    /// What kind it is.
    pub class: Class,
    /// What happened and how to mend it.
    pub text: String,
}

/// A connection ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lost {
    /// The state that names the reason.
    pub state: State,
    /// What happened and how to mend it.
    pub text: String,
}

impl Lost {
    /// The socket or the server ended it: connect again.
    pub fn connection(text: impl Into<String>) -> Self {
        Self {
            state: State::Connecting,
            text: text.into(),
        }
    }

    /// The publication was missing at this point of the log.
    pub fn publication(text: impl Into<String>) -> Self {
        Self {
            state: State::PublicationGap,
            text: text.into(),
        }
    }

    pub(in crate::core) fn protocol(error: &dyn Error) -> Self {
        Self::protocol_text(&error.to_string())
    }

    pub(in crate::core) fn protocol_text(text: &str) -> Self {
        Self::connection(format!("postgres sent what makes no sense: {text}"))
    }

    pub(in crate::core) fn schema(error: &dyn Error) -> Self {
        let cause = error
            .source()
            .map(|source| format!(": {source}"))
            .unwrap_or_default();
        let text = format!(
            "{error}{cause}; give the table its column back, or migrate this relay with it"
        );
        Self {
            state: State::SchemaError,
            text,
        }
    }
}

/// Why the process ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// It was asked to.
    Asked,
    /// The configuration is wrong: exit code 64.
    Config(String),
    /// A dependency stayed away for the whole budget: exit code 69.
    Dependency(String),
}
