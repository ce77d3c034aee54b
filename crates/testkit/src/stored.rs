//! Calls on the timeline store by tests that are about something else than its outages.

use std::{future::Future, time::Duration};

use timeline_store::StoreError;
use tokio::time::{Instant, sleep};

/// How long a server may go on with time-outs before that is a fault of its own.
const PATIENCE: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(100);

/// Makes a call until its outcome is known, as a service does, and returns what it gave. A server
/// on a busy machine times out now and then (a sync of its commit log that takes two seconds is
/// enough), and the same call again is harmless (D-7).
///
/// # Panics
/// With the error, when a repeat cannot mend it (D-12) or when a minute of repeats did not.
pub async fn stored<T, F, Fut>(mut call: F) -> T
where
    F: FnMut() -> Fut,
    Fut: Future<Output = Result<T, StoreError>>,
{
    let deadline = Instant::now() + PATIENCE;
    loop {
        let error = match call().await {
            Ok(outcome) => return outcome,
            Err(error) => error,
        };
        assert!(
            error.class().is_retried() && Instant::now() < deadline,
            "the timeline store: {error:?}"
        );
        eprintln!("the timeline store is asked again: {error}");
        sleep(PAUSE).await;
    }
}
