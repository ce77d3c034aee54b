//! The real store: one session, prepared statements, a fixed number of permits.
//!
//! Everything is sent with `LOCAL_QUORUM`, never retried by the driver and never twice at once:
//! who repeats, and when, is decided by the class of the error.

mod config;
mod flight;
mod group;
mod read;
mod session;
mod statements;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use events::{PostId, UserId};
use futures::FutureExt;
use futures::future::BoxFuture;
use scylla::client::session::Session;
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::error::StoreError;
use crate::row::{PgNow, ScannedRow, StoredRow, TimelineDelete, TimelineRow, Written};
use crate::schema;
use crate::store::TimelineStore;

pub(crate) use config::check_keyspace;
pub use config::{CqlConfig, WriteMode, contact_points};
pub use read::{ScanPosition, ScannedPage};
pub(crate) use session::open;

use flight::Sent;
use statements::Statements;

/// How long one request may take. Below the 5 s of D-7: a TTL is computed when a request is
/// sent, and the row may land until the request is given up.
pub(crate) const REQUEST_TIMEOUT: Duration = Duration::from_secs(4);

/// Timelines in a CQL store (ScyllaDB or Apache Cassandra). Cheap to clone; clones share the
/// session and the permits.
#[derive(Clone)]
pub struct CqlTimelines {
    shared: Arc<Shared>,
}

/// What the tasks of one store share.
struct Shared {
    session: Session,
    keyspace: String,
    statements: Statements,
    mode: WriteMode,
    batch_rows: usize,
    /// One permit for each row in flight to the server, and for each read.
    permits: Semaphore,
    gc_grace: Duration,
}

impl fmt::Debug for CqlTimelines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CqlTimelines")
            .field("keyspace", &self.shared.keyspace)
            .field("mode", &self.shared.mode)
            .field("free_permits", &self.free_permits())
            .finish_non_exhaustive()
    }
}

impl Shared {
    /// Waits until `rows` more may be in flight.
    async fn permit(&self, rows: usize) -> SemaphorePermit<'_> {
        let rows = u32::try_from(rows).expect("a request has no more rows than one batch");
        self.permits
            .acquire_many(rows)
            .await
            .expect("the permits of a store are never closed")
    }
}

impl CqlTimelines {
    /// Connects, verifies that the schema is there and prepares the statements.
    ///
    /// It does not wait for servers that boot or for a schema that is still to come: it answers
    /// within seconds with an error of class `Outage`, and the caller tries again.
    ///
    /// # Errors
    /// A bad setting, no server, no schema, or no rights.
    pub fn connect(config: &CqlConfig) -> BoxFuture<'_, Result<Self, StoreError>> {
        Self::open(config).boxed()
    }

    async fn open(config: &CqlConfig) -> Result<Self, StoreError> {
        config.check()?;
        let session = open(&config.nodes, REQUEST_TIMEOUT).await?;
        let found = schema::verify(&session, &config.keyspace).await?;
        let statements = Statements::prepare(&session, &config.keyspace, config.batch_rows).await?;
        tracing::info!(
            keyspace = %config.keyspace,
            schema_version = found.version,
            mode = config.write_mode.as_str(),
            "timeline store connected"
        );
        Ok(Self {
            shared: Arc::new(Shared {
                session,
                keyspace: config.keyspace.clone(),
                statements,
                mode: config.write_mode,
                batch_rows: config.batch_rows,
                permits: Semaphore::new(config.in_flight),
                gc_grace: found.gc_grace,
            }),
        })
    }

    /// Returns how long the table keeps tombstones. A replay of a post older than this could
    /// bring back a deleted row (D-8), so the horizon of every writer must stay below it.
    pub fn gc_grace(&self) -> Duration {
        self.shared.gc_grace
    }

    /// Returns one row of one timeline, with its write timestamp and what is left of its time.
    ///
    /// # Errors
    /// Nothing is returned; the call may be repeated.
    pub fn row(
        &self,
        owner: UserId,
        post: PostId,
    ) -> BoxFuture<'_, Result<Option<ScannedRow>, StoreError>> {
        self.shared.row(owner, post).boxed()
    }

    /// Returns up to about `page_rows` rows of all timelines from `position` on, and where to go
    /// on; `None` at the end. A page may be empty with more behind it. For callers that have
    /// something to wait for between two pages; [`TimelineStore::scan`] for all others.
    ///
    /// # Errors
    /// Nothing is returned; the call may be repeated with a clone of the position.
    pub fn scan_page(
        &self,
        page_rows: usize,
        position: ScanPosition,
    ) -> BoxFuture<'_, Result<ScannedPage, StoreError>> {
        self.shared.scan_page(page_rows, position).boxed()
    }

    /// Returns how many rows could be sent now without waiting for those in flight.
    pub fn free_permits(&self) -> usize {
        self.shared.permits.available_permits()
    }
}

/// What the trait awaits, boxed: the body of an async function is compiled in each crate that
/// awaits it, and those of the driver are the largest there are.
impl CqlTimelines {
    fn send_rows<'a>(
        &'a self,
        rows: &'a [TimelineRow],
        now: PgNow,
    ) -> BoxFuture<'a, Result<Sent, StoreError>> {
        flight::send_all(&self.shared, rows, now).boxed()
    }

    fn send_deletes<'a>(
        &'a self,
        deletes: &'a [TimelineDelete],
    ) -> BoxFuture<'a, Result<Sent, StoreError>> {
        flight::send_all(&self.shared, deletes, ()).boxed()
    }

    fn read_page(
        &self,
        owner: UserId,
        before: Option<PostId>,
        since: Option<PostId>,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<StoredRow>, StoreError>> {
        self.shared.page(owner, before, since, limit).boxed()
    }

    fn ask_nothing(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        self.shared.probe().boxed()
    }
}

impl TimelineStore for CqlTimelines {
    async fn write(&self, rows: &[TimelineRow], now: &PgNow) -> Result<Written, StoreError> {
        let sent = self.send_rows(rows, *now).await?;
        Ok(Written {
            rows: sent.sent,
            expired: sent.skipped,
        })
    }

    async fn delete(&self, deletes: &[TimelineDelete]) -> Result<(), StoreError> {
        self.send_deletes(deletes).await?;
        Ok(())
    }

    async fn page(
        &self,
        owner: UserId,
        before: Option<PostId>,
        since: Option<PostId>,
        limit: usize,
    ) -> Result<Vec<StoredRow>, StoreError> {
        self.read_page(owner, before, since, limit).await
    }

    async fn scan(
        &self,
        page_rows: usize,
        visit: impl FnMut(Vec<ScannedRow>) + Send,
    ) -> Result<u64, StoreError> {
        self.shared.scan(page_rows, visit).await
    }

    async fn probe(&self) -> Result<(), StoreError> {
        self.ask_nothing().await
    }
}
