//! Rows into the timeline store.

use events::{Micros, UserId};
use timeline_store::{PgNow, StoreError, TimelineDelete, TimelineRow, TimelineStore, Written};

use crate::core::{plan::Post, row::Row};

/// Writes and deletes the rows of one follower page at a time.
#[derive(Clone, Debug)]
pub(crate) struct Timelines<S> {
    store: S,
}

impl<S: TimelineStore> Timelines<S> {
    pub(crate) fn new(store: S) -> Self {
        Self { store }
    }

    /// Writes rows; `now` is Postgres's time at the read of their page, so that a late retry
    /// sends a shorter TTL (D-7).
    pub(crate) async fn write(
        &self,
        post: &Post,
        rows: &[Row],
        now: &PgNow,
    ) -> Result<Written, StoreError> {
        let rows: Vec<_> = rows
            .iter()
            .map(|row| TimelineRow {
                owner: row.owner,
                post: post.id,
                author: post.author,
                write_us: row.write_us,
                expires_us: row.expires_us,
            })
            .collect();
        self.store.write(&rows, now).await
    }

    /// Deletes the post from timelines, whether its rows are there or come later (D-8).
    pub(crate) async fn delete(
        &self,
        post: &Post,
        owners: &[UserId],
        del_us: Micros,
    ) -> Result<(), StoreError> {
        let deletes: Vec<_> = owners
            .iter()
            .map(|&owner| TimelineDelete {
                owner,
                post: post.id,
                write_us: del_us,
            })
            .collect();
        self.store.delete(&deletes).await
    }
}

#[cfg(test)]
mod tests;
