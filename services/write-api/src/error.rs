//! What a failure of start-up means for the process.

use events::Class;
use runtime::{exit::Exit, startup::GivenUp};

/// The API's address could not be bound.
#[derive(Debug, thiserror::Error)]
#[error("listen on {listen}")]
pub(crate) struct Listen {
    pub(crate) listen: String,
    #[source]
    pub(crate) source: std::io::Error,
}

/// The exit for a Postgres that start-up has given up.
pub(crate) fn exit(given_up: GivenUp<database::Error>) -> Exit {
    match given_up {
        GivenUp::Final(error) if error.class() == Class::Config => Exit::config(error),
        GivenUp::Final(error) => Exit::bug(error),
        GivenUp::OutOfBudget(_) | GivenUp::Shutdown => Exit::dependency(given_up),
    }
}
