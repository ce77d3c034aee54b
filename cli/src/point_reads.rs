//! Many single rows of the timeline store at once, with a bound on how many.

use events::{PostId, UserId};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use timeline_store::{CqlTimelines, ScannedRow, StoreError};

/// Reads that wait for the store at the same time.
const AT_ONCE: usize = 64;

/// The rows of these timelines and posts, in their order; `None` where there is none.
///
/// # Errors
/// Of the first read that failed.
pub(crate) async fn rows(
    store: &CqlTimelines,
    keys: Vec<(UserId, PostId)>,
) -> Result<Vec<Option<ScannedRow>>, StoreError> {
    stream::iter(keys)
        .map(|(owner, post)| store.row(owner, post))
        .buffered(AT_ONCE)
        .try_collect()
        .await
}
