//! Rows that fan-out has written into the reader's timeline.

use events::{PostId, UserId};
use timeline_store::{StoreError, TimelineStore};

use crate::core::{
    fill::Load,
    merge::{Entry, Window},
};

/// One load of the reader's rows above `floor`.
pub(crate) async fn window(
    timelines: &impl TimelineStore,
    reader: UserId,
    load: Load,
    floor: PostId,
) -> Result<Window, StoreError> {
    let rows = timelines
        .page(reader, load.before, Some(floor), load.rows)
        .await?;
    let exhausted = rows.len() < load.rows;
    let entries = rows
        .into_iter()
        .map(|row| Entry {
            post: row.post,
            author: row.author,
        })
        .collect();
    Ok(Window { entries, exhausted })
}
