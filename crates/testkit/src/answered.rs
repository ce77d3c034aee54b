//! Calls on servers by tests that are about something else than outages.

use std::{fmt::Debug, future::Future, time::Duration};

use events::Class;
use timeline_store::StoreError;
use tokio::time::{Instant, sleep};

/// How long a server may go on with time-outs before that is a fault of its own.
const PATIENCE: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(100);

/// An error that says what it means for the work that met it (D-12).
pub trait Classified: Debug {
    /// What it means.
    fn class(&self) -> Class;
}

impl Classified for StoreError {
    fn class(&self) -> Class {
        Self::class(self)
    }
}

impl Classified for database::Error {
    fn class(&self) -> Class {
        Self::class(self)
    }
}

impl Classified for kafka::Error {
    fn class(&self) -> Class {
        Self::class(self)
    }
}

/// Makes a call until its outcome is known, as a service does, and returns what it gave. A server
/// on a busy machine times out now and then (a sync of Cassandra's commit log that takes two
/// seconds is enough). Only for a call that is harmless when it is made again, as each call on the
/// timeline store is (D-7).
///
/// # Panics
/// With the error, when a repeat cannot mend it (D-12) or when a minute of repeats did not.
pub async fn answered<T, E, F, Fut>(mut call: F) -> T
where
    E: Classified,
    F: FnMut() -> Fut,
    Fut: Future<Output = Result<T, E>>,
{
    let deadline = Instant::now() + PATIENCE;
    loop {
        let error = match call().await {
            Ok(outcome) => return outcome,
            Err(error) => error,
        };
        assert!(
            error.class().is_retried() && Instant::now() < deadline,
            "no answer: {error:?}"
        );
        eprintln!("asked again: {error:?}");
        sleep(PAUSE).await;
    }
}
