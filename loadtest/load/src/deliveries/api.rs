//! Deliveries as read-api tells them to anybody.

use anyhow::{Context, anyhow};
use events::UserId;
use futures::{StreamExt, TryStreamExt, stream};

use super::{Expected, Reported};
use crate::client::Failure;
use crate::run::Shared;

/// Requests at once.
pub(super) const AT_ONCE: usize = 8;

/// Those of the posts that are delivered. An outage is none: it is asked again later.
pub(super) async fn delivered(
    shared: &Shared,
    asked: &[Expected],
) -> anyhow::Result<Vec<Reported>> {
    let asking = shared.accounts.id(1);
    let posts = stream::iter(asked.to_vec());
    let answers = posts.map(|expected| async move { one(shared, asking, &expected).await });
    let answers = answers.buffer_unordered(AT_ONCE);
    let found: Vec<Option<Reported>> = answers
        .try_collect()
        .await
        .context("asking for deliveries")?;
    Ok(found.into_iter().flatten().collect())
}

async fn one(
    shared: &Shared,
    asking: UserId,
    expected: &Expected,
) -> anyhow::Result<Option<Reported>> {
    match shared.client.delivery(asking, expected.post).await {
        Ok(delivery) if delivery.delivered == Some(true) => Ok(Some(Reported {
            post: expected.post,
            rows: u64::try_from(delivery.rows.unwrap_or(0)).unwrap_or(0),
            first: delivery.first_row_us,
            last: delivery.last_row_us,
        })),
        Ok(_) | Err(Failure::Again(_)) => Ok(None),
        Err(failure) => Err(anyhow!("post {}: {failure}", expected.post)),
    }
}
