//! Many changes at once, with a fixed number in flight.
//!
//! Rows are cut into units (one request each), units are dealt to lanes (one task each). A task
//! polls at most [`LANE_DEPTH`] requests, because more than about 128 futures in one task get
//! slow through tokio's cooperative budget (scylla-rust-driver issue 362). The permits of the
//! store bound all lanes of all calls together.

use std::ops::Range;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use events::UserId;
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use scylla::serialize::row::SerializeRow;
use tokio::task::JoinSet;

use super::group::units;
use super::statements::{Change, Statements};
use super::{Shared, WriteMode};
use crate::error::{Operation, StoreError};
use crate::row::{PgNow, TimelineDelete, TimelineRow};

/// The most requests that one task has in flight.
const LANE_DEPTH: usize = 64;

/// The most tasks of one call.
const MAX_LANES: usize = 8;

/// How many changes were sent, and how many need not be.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sent {
    pub(super) sent: u64,
    pub(super) skipped: u64,
}

/// A change of one row.
pub(super) trait Mutation: Copy + Send + Sync + 'static {
    /// What the values depend on besides the change itself.
    type Context: Copy + Send + Sync + 'static;
    type Values: SerializeRow + Send + Sync;

    const OPERATION: Operation;

    fn owner(&self) -> UserId;
    fn change(statements: &Statements) -> &Change;
    /// Returns the values to bind now, or `None` if the change need not be sent any more.
    fn values(&self, context: &Self::Context) -> Option<Self::Values>;
}

impl Mutation for TimelineRow {
    type Context = PgNow;
    type Values = (i64, i64, i64, i64, i32);

    const OPERATION: Operation = Operation::Write;

    fn owner(&self) -> UserId {
        self.owner
    }

    fn change(statements: &Statements) -> &Change {
        &statements.insert
    }

    fn values(&self, now: &PgNow) -> Option<Self::Values> {
        let ttl = self.ttl_seconds(now.now_us())?;
        Some((
            self.owner.0,
            self.post.0,
            self.author.0,
            self.write_us.0,
            ttl,
        ))
    }
}

impl Mutation for TimelineDelete {
    type Context = ();
    type Values = (i64, i64, i64);

    const OPERATION: Operation = Operation::Delete;

    fn owner(&self) -> UserId {
        self.owner
    }

    fn change(statements: &Statements) -> &Change {
        &statements.delete
    }

    fn values(&self, _context: &()) -> Option<Self::Values> {
        Some((self.write_us.0, self.owner.0, self.post.0))
    }
}

/// Sends every change. After the first error nothing more is started, what is in flight is
/// waited for (a dropped request keeps its stream id until the answer comes), and that error is
/// returned.
pub(super) async fn send_all<M: Mutation>(
    shared: &Arc<Shared>,
    changes: &[M],
    context: M::Context,
) -> Result<Sent, StoreError> {
    let (changes, units) = match shared.mode {
        WriteMode::Single => (changes.to_vec(), units(&[changes.len()], 1)),
        WriteMode::Grouped => shared.grouped(changes),
    };
    let lanes = units.len().div_ceil(LANE_DEPTH).clamp(1, MAX_LANES);
    let flight = Flight {
        shared: Arc::clone(shared),
        changes: changes.into(),
        context,
        stop: Arc::new(AtomicBool::new(false)),
    };
    if lanes == 1 {
        return flight.lane(units).await;
    }
    // Dropping the set aborts its tasks, so a cancelled call leaves nothing running.
    let mut tasks = JoinSet::new();
    for lane in units.chunks(units.len().div_ceil(lanes)) {
        let (flight, lane) = (flight.clone(), lane.to_vec());
        tasks.spawn(async move { flight.lane(lane).await });
    }
    let mut total = Ok(Sent::default());
    while let Some(joined) = tasks.join_next().await {
        let outcome = joined.unwrap_or_else(|error| resume_unwind(error.into_panic()));
        total = add(total, outcome);
    }
    total
}

/// The first error wins.
fn add(total: Result<Sent, StoreError>, one: Result<Sent, StoreError>) -> Result<Sent, StoreError> {
    let (total, one) = (total?, one?);
    Ok(Sent {
        sent: total.sent + one.sent,
        skipped: total.skipped + one.skipped,
    })
}

struct Flight<M: Mutation> {
    shared: Arc<Shared>,
    changes: Arc<[M]>,
    context: M::Context,
    stop: Arc<AtomicBool>,
}

impl<M: Mutation> Clone for Flight<M> {
    fn clone(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
            changes: Arc::clone(&self.changes),
            context: self.context,
            stop: Arc::clone(&self.stop),
        }
    }
}

impl<M: Mutation> Flight<M> {
    async fn lane(&self, units: Vec<Range<usize>>) -> Result<Sent, StoreError> {
        let mut waiting = units.into_iter();
        let mut requests = FuturesUnordered::new();
        let mut total = Ok(Sent::default());
        loop {
            while requests.len() < LANE_DEPTH && !self.stop.load(Ordering::Relaxed) {
                let Some(unit) = waiting.next() else { break };
                requests.push(self.request(unit));
            }
            let Some(outcome) = requests.next().await else {
                return total;
            };
            if outcome.is_err() {
                self.stop.store(true, Ordering::Relaxed);
            }
            total = add(total, outcome);
        }
    }

    async fn request(&self, unit: Range<usize>) -> Result<Sent, StoreError> {
        let shared = &self.shared;
        let _permit = shared.permit(unit.len()).await;
        if self.stop.load(Ordering::Relaxed) {
            return Ok(Sent::default());
        }
        let changes = self.changes.get(unit).unwrap_or_default();
        // Only now, with the permit: a TTL must not age in a queue (D-7).
        let values: Vec<_> = changes
            .iter()
            .filter_map(|change| change.values(&self.context))
            .collect();
        let change = M::change(&shared.statements);
        let answer = match values.as_slice() {
            [] => None,
            [only] => Some(shared.session.execute_unpaged(&change.single, only).await),
            many => Some(shared.session.batch(change.batch(many.len()), many).await),
        };
        answer
            .transpose()
            .map_err(StoreError::execute(M::OPERATION))?;
        let sent = values.len();
        Ok(Sent {
            sent: sent as u64,
            skipped: (changes.len() - sent) as u64,
        })
    }
}
