//! The statements of the store, prepared once. The driver prepares them again by itself on a
//! node that forgot them.

use std::time::Duration;

use scylla::client::session::Session;
use scylla::statement::batch::{Batch, BatchType};
use scylla::statement::prepared::PreparedStatement;

use crate::error::{Operation, StoreError};

/// How long one page of a full scan may take. A scan is for the judge, not for a reader.
const SCAN_TIMEOUT: Duration = Duration::from_secs(30);

/// Rows the server puts into one answer to a page read.
const PAGE_ROWS: i32 = 1_000;

/// One changing statement, alone and in batches.
pub(super) struct Change {
    pub(super) single: PreparedStatement,
    /// Unlogged batches of 0, 1, 2, … of the statement. Made once because building one costs
    /// more than filling it.
    batches: Vec<Batch>,
}

pub(super) struct Statements {
    pub(super) insert: Change,
    pub(super) delete: Change,
    pub(super) page: PreparedStatement,
    pub(super) scan: PreparedStatement,
    pub(super) row: PreparedStatement,
    pub(super) probe: PreparedStatement,
}

impl Change {
    async fn prepare(
        session: &Session,
        operation: Operation,
        text: String,
        batch_rows: usize,
    ) -> Result<Self, StoreError> {
        let single = prepare(session, operation, text).await?;
        let batches = (0..=batch_rows)
            .map(|rows| {
                let statements = vec![single.clone().into(); rows];
                let mut batch = Batch::new_with_statements(BatchType::Unlogged, statements);
                batch.set_is_idempotent(true);
                batch
            })
            .collect();
        Ok(Self { single, batches })
    }

    /// Returns the batch for this number of rows, at most the configured one.
    pub(super) fn batch(&self, rows: usize) -> &Batch {
        self.batches
            .get(rows)
            .expect("requests are cut to the size of the largest batch")
    }
}

impl Statements {
    pub(super) async fn prepare(
        session: &Session,
        keyspace: &str,
        batch_rows: usize,
    ) -> Result<Self, StoreError> {
        let insert = format!(
            "INSERT INTO {keyspace}.timelines (owner_id, post_id, author_id) VALUES (?, ?, ?) \
             USING TIMESTAMP ? AND TTL ?"
        );
        let delete = format!(
            "DELETE FROM {keyspace}.timelines USING TIMESTAMP ? WHERE owner_id = ? AND post_id = ?"
        );
        let page = format!(
            "SELECT post_id, author_id FROM {keyspace}.timelines \
             WHERE owner_id = ? AND post_id < ? AND post_id > ? LIMIT ?"
        );
        let scan = format!(
            "SELECT owner_id, post_id, author_id, writetime(author_id), ttl(author_id) \
             FROM {keyspace}.timelines"
        );
        let row = format!(
            "SELECT owner_id, post_id, author_id, writetime(author_id), ttl(author_id) \
             FROM {keyspace}.timelines WHERE owner_id = ? AND post_id = ?"
        );
        let probe =
            format!("SELECT author_id FROM {keyspace}.timelines WHERE owner_id = 0 LIMIT 1");
        let mut statements = Self {
            insert: Change::prepare(session, Operation::Write, insert, batch_rows).await?,
            delete: Change::prepare(session, Operation::Delete, delete, batch_rows).await?,
            page: prepare(session, Operation::Page, page).await?,
            scan: prepare(session, Operation::Scan, scan).await?,
            row: prepare(session, Operation::Row, row).await?,
            probe: prepare(session, Operation::Probe, probe).await?,
        };
        statements.page.set_page_size(PAGE_ROWS);
        statements.scan.set_request_timeout(Some(SCAN_TIMEOUT));
        Ok(statements)
    }
}

async fn prepare(
    session: &Session,
    operation: Operation,
    text: String,
) -> Result<PreparedStatement, StoreError> {
    let mut statement = session
        .prepare(text)
        .await
        .map_err(StoreError::prepare(operation))?;
    // True for all of them: timestamps are given, nothing is counted, nothing is conditional.
    statement.set_is_idempotent(true);
    Ok(statement)
}
