//! The seam: what a store of timelines can do. Two implementations pass the same tests.

use std::future::Future;

use events::{PostId, UserId};

use crate::error::StoreError;
use crate::row::{PgNow, ScannedRow, StoredRow, TimelineDelete, TimelineRow, Written};

/// A store of timelines. The larger write timestamp wins; at the same one a delete wins.
///
/// # Cancel safety
/// Dropping a future of `write` or `delete` leaves any part of it done, as an error does. The
/// others change nothing.
pub trait TimelineStore: Send + Sync + 'static {
    /// Writes rows. The TTL of each is computed from `now` at the moment it is sent; a row whose
    /// time is over is not sent and counted as expired.
    ///
    /// # Errors
    /// Any part of the rows may be written. Writing all of them again is harmless (D-7).
    fn write(
        &self,
        rows: &[TimelineRow],
        now: &PgNow,
    ) -> impl Future<Output = Result<Written, StoreError>> + Send;

    /// Deletes rows, whether they are there or come later (D-8).
    ///
    /// # Errors
    /// Any part of the rows may be deleted. Deleting all of them again is harmless.
    fn delete(
        &self,
        deletes: &[TimelineDelete],
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Returns up to `limit` rows of one timeline, newest first, with ids below `before` and
    /// above `since` (both exclusive). Fewer than `limit` means that there are no more.
    ///
    /// # Errors
    /// Nothing is returned; the call may be repeated.
    fn page(
        &self,
        owner: UserId,
        before: Option<PostId>,
        since: Option<PostId>,
        limit: usize,
    ) -> impl Future<Output = Result<Vec<StoredRow>, StoreError>> + Send;

    /// Hands every row of every timeline to `visit`, at most `page_rows` at a time, in no
    /// particular order of owners. Returns the number of rows. While the store does not answer,
    /// the next page is asked for again, for half a minute.
    ///
    /// # Errors
    /// Part of the rows has been handed over.
    fn scan(
        &self,
        page_rows: usize,
        visit: impl FnMut(Vec<ScannedRow>) + Send,
    ) -> impl Future<Output = Result<u64, StoreError>> + Send;

    /// Asks the store for nothing, to learn whether it answers.
    ///
    /// # Errors
    /// It did not answer in time, or with an error.
    fn probe(&self) -> impl Future<Output = Result<(), StoreError>> + Send;
}
