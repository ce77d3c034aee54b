//! What can fail while reading, and what a failure of start-up means for the process.

use events::Class;
use runtime::{exit::Exit, startup::GivenUp};
use timeline_store::StoreError;

/// A store did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadError {
    /// See [`database::Error`].
    #[error(transparent)]
    Postgres(#[from] database::Error),
    /// See [`StoreError`].
    #[error(transparent)]
    Timelines(#[from] StoreError),
}

impl ReadError {
    pub(crate) fn class(&self) -> Class {
        match self {
            Self::Postgres(error) => error.class(),
            Self::Timelines(error) => error.class(),
        }
    }
}

/// The API's address could not be bound.
#[derive(Debug, thiserror::Error)]
#[error("listen on {listen}")]
pub(crate) struct Listen {
    pub(crate) listen: String,
    #[source]
    pub(crate) source: std::io::Error,
}

/// The exit for a store that start-up has given up.
pub(crate) fn exit(given_up: GivenUp<ReadError>) -> Exit {
    match given_up {
        GivenUp::Final(error) if error.class() == Class::Config => Exit::config(error),
        GivenUp::Final(error) => Exit::bug(error),
        GivenUp::OutOfBudget(_) | GivenUp::Shutdown => Exit::dependency(given_up),
    }
}
