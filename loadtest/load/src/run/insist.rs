//! Repeats of a run: within its patience, and counted.

use std::future::Future;

use super::Shared;
use crate::client::{self, Failure};

/// Sends while the outcome is unknown.
///
/// # Errors
/// The last failure.
pub(super) async fn insist<T, F>(shared: &Shared, attempt: impl Fn() -> F) -> Result<T, Failure>
where
    F: Future<Output = Result<T, Failure>>,
{
    let repeated = || shared.tally().counts.retries += 1;
    client::insist(shared.limits.patience, repeated, attempt).await
}
