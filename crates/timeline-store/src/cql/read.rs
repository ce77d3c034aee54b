//! Timeline pages, single rows and the full scan.

use std::ops::ControlFlow;
use std::time::Duration;

use events::{Micros, PostId, UserId};
use futures::FutureExt;
use futures::future::BoxFuture;
use scylla::response::PagingState;
use tokio::time::Instant;

use super::Shared;
use crate::error::{Operation, StoreError};
use crate::row::{ScannedRow, StoredRow};

/// Where a scan goes on. It stays usable for as long as the table is there.
#[derive(Clone, Debug)]
pub struct ScanPosition(PagingState);

impl ScanPosition {
    /// Before the first row.
    pub fn start() -> Self {
        Self(PagingState::start())
    }
}

/// Rows of any timelines, and where to go on if that was not the end.
pub type ScannedPage = (Vec<ScannedRow>, Option<ScanPosition>);

/// How long a full scan waits for a page. The driver takes some ten seconds to find a node again
/// that was away, and a scan of hours should not start over for that.
const SCAN_PATIENCE: Duration = Duration::from_secs(30);
/// Between two attempts at a page.
const SCAN_PAUSE: Duration = Duration::from_millis(500);

impl Shared {
    pub(super) async fn page(
        &self,
        owner: UserId,
        before: Option<PostId>,
        since: Option<PostId>,
        limit: usize,
    ) -> Result<Vec<StoredRow>, StoreError> {
        let limit = i32::try_from(limit).unwrap_or(i32::MAX);
        if limit == 0 {
            return Ok(Vec::new());
        }
        // The ends of the range stand for "no bound": Postgres never gives these ids away.
        let before = before.map_or(i64::MAX, |post| post.0);
        let since = since.map_or(i64::MIN, |post| post.0);
        let values = (owner.0, before, since, limit);
        let mut rows = Vec::new();
        let mut position = PagingState::start();
        // An answer may be short or empty with more behind it: Scylla cuts it after 10 000
        // tombstones. Only the end of the paging is the end.
        loop {
            let permit = self.permit(1).await;
            let (answer, next) = self
                .session
                .execute_single_page(&self.statements.page, values, position)
                .await
                .map_err(StoreError::execute(Operation::Page))?;
            drop(permit);
            let answer = answer
                .into_rows_result()
                .map_err(StoreError::answer(Operation::Page))?;
            let typed = answer
                .rows::<(i64, i64)>()
                .map_err(StoreError::answer(Operation::Page))?;
            for row in typed {
                let (post, author) = row.map_err(StoreError::answer(Operation::Page))?;
                rows.push(StoredRow {
                    post: PostId(post),
                    author: UserId(author),
                });
            }
            match next.into_paging_control_flow() {
                ControlFlow::Break(()) => return Ok(rows),
                ControlFlow::Continue(next) => position = next,
            }
        }
    }

    pub(super) async fn scan(
        &self,
        page_rows: usize,
        mut visit: impl FnMut(Vec<ScannedRow>) + Send,
    ) -> Result<u64, StoreError> {
        let mut total = 0;
        let mut position = ScanPosition::start();
        loop {
            let (rows, next) = self.awaited_page(page_rows, position).await?;
            total += rows.len() as u64;
            if !rows.is_empty() {
                visit(rows);
            }
            match next {
                None => return Ok(total),
                Some(next) => position = next,
            }
        }
    }

    /// A page, as soon as the store answers. Boxed, as what the trait awaits is.
    fn awaited_page(
        &self,
        page_rows: usize,
        position: ScanPosition,
    ) -> BoxFuture<'_, Result<ScannedPage, StoreError>> {
        self.repeated_page(page_rows, position).boxed()
    }

    /// A page is only read, so asking again is harmless.
    async fn repeated_page(
        &self,
        page_rows: usize,
        position: ScanPosition,
    ) -> Result<ScannedPage, StoreError> {
        let deadline = Instant::now() + SCAN_PATIENCE;
        loop {
            match self.scan_page(page_rows, position.clone()).await {
                Err(error) if error.class().is_retried() && Instant::now() < deadline => {
                    tokio::time::sleep(SCAN_PAUSE).await;
                }
                page => return page,
            }
        }
    }

    pub(super) async fn scan_page(
        &self,
        page_rows: usize,
        position: ScanPosition,
    ) -> Result<ScannedPage, StoreError> {
        let mut statement = self.statements.scan.clone();
        statement.set_page_size(i32::try_from(page_rows.max(1)).unwrap_or(i32::MAX));
        let permit = self.permit(1).await;
        let (answer, next) = self
            .session
            .execute_single_page(&statement, (), position.0)
            .await
            .map_err(StoreError::execute(Operation::Scan))?;
        drop(permit);
        let answer = answer
            .into_rows_result()
            .map_err(StoreError::answer(Operation::Scan))?;
        let rows = answer
            .rows::<(i64, i64, i64, i64, Option<i32>)>()
            .map_err(StoreError::answer(Operation::Scan))?
            .map(|row| row.map(scanned))
            .collect::<Result<Vec<_>, _>>()
            .map_err(StoreError::answer(Operation::Scan))?;
        let next = match next.into_paging_control_flow() {
            ControlFlow::Break(()) => None,
            ControlFlow::Continue(next) => Some(ScanPosition(next)),
        };
        Ok((rows, next))
    }

    pub(super) async fn probe(&self) -> Result<(), StoreError> {
        self.session
            .execute_unpaged(&self.statements.probe, ())
            .await
            .map_err(StoreError::execute(Operation::Probe))?;
        Ok(())
    }

    pub(super) async fn row(
        &self,
        owner: UserId,
        post: PostId,
    ) -> Result<Option<ScannedRow>, StoreError> {
        let permit = self.permit(1).await;
        let answer = self
            .session
            .execute_unpaged(&self.statements.row, (owner.0, post.0))
            .await
            .map_err(StoreError::execute(Operation::Row))?;
        drop(permit);
        let row = answer
            .into_rows_result()
            .map_err(StoreError::answer(Operation::Row))?
            .maybe_first_row::<(i64, i64, i64, i64, Option<i32>)>()
            .map_err(StoreError::answer(Operation::Row))?;
        Ok(row.map(scanned))
    }
}

fn scanned(row: (i64, i64, i64, i64, Option<i32>)) -> ScannedRow {
    let (owner, post, author, write_us, ttl_seconds) = row;
    ScannedRow {
        owner: UserId(owner),
        post: PostId(post),
        author: UserId(author),
        write_us: Micros(write_us),
        ttl_seconds,
    }
}
