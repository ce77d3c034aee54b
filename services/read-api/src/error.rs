//! What can fail while reading.

use events::Class;
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
