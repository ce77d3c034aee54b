//! Waiting for a state, with a deadline.

use std::{future::Future, time::Duration};

use tokio::time::{Instant, sleep};

const STEP: Duration = Duration::from_millis(20);

/// Asks until the answer is `Some`, for at most 30 s.
///
/// # Panics
/// With `what` when the deadline passes.
pub async fn eventually<T, F, Fut>(what: &str, ask: F) -> T
where
    F: FnMut() -> Fut,
    Fut: Future<Output = Option<T>>,
{
    eventually_within(Duration::from_secs(30), what, ask).await
}

/// Asks until the answer is `Some`, for at most `limit`.
///
/// # Panics
/// With `what` when the deadline passes.
pub async fn eventually_within<T, F, Fut>(limit: Duration, what: &str, mut ask: F) -> T
where
    F: FnMut() -> Fut,
    Fut: Future<Output = Option<T>>,
{
    let deadline = Instant::now() + limit;
    loop {
        if let Some(answer) = ask().await {
            return answer;
        }
        assert!(Instant::now() < deadline, "not within {limit:?}: {what}");
        sleep(STEP).await;
    }
}
