//! What can go wrong in a command, and the exit code that follows.

use events::Class;
use runtime::exit::Exit;

/// A command that could not be carried out.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Postgres.
    #[error(transparent)]
    Database(#[from] database::Error),
    /// The timeline store.
    #[error(transparent)]
    Store(#[from] timeline_store::StoreError),
    /// Kafka.
    #[error(transparent)]
    Kafka(#[from] kafka::Error),
    /// A range that ends before it begins.
    #[error("the range ends before it begins: {since} to {until}")]
    Range {
        /// Its begin.
        since: String,
        /// Its end.
        until: String,
    },
}

impl Error {
    /// What the failure means for the command.
    pub fn class(&self) -> Class {
        match self {
            Self::Database(error) => error.class(),
            Self::Store(error) => error.class(),
            Self::Kafka(error) => error.class(),
            Self::Range { .. } => Class::Config,
        }
    }

    /// The way out of the process. An operator's command is not repeated by itself, so a server
    /// that does not answer ends it.
    pub fn into_exit(self) -> Exit {
        match self.class() {
            Class::Config => Exit::config(self),
            Class::Outage | Class::Unsure => Exit::dependency(self),
            Class::Record | Class::Bug => Exit::bug(self),
        }
    }
}
