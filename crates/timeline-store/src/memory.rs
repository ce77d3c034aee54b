//! The twin in memory: the rules of the CQL store without a server, for tests of its users.
//!
//! It keeps what the real one keeps: the winner by write timestamp, tombstones, and an expiry
//! counted from the moment of writing by the clock of the store. It keeps tombstones for ever,
//! and it never fails.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use events::{Micros, PostId, UserId};

use crate::error::StoreError;
use crate::row::{PgNow, ScannedRow, StoredRow, TimelineDelete, TimelineRow, Written};
use crate::store::TimelineStore;

/// A store of timelines in memory. Grows with its rows: for tests.
#[derive(Debug)]
pub struct MemoryTimelines {
    started: Instant,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Descending by post inside an owner, as in the table.
    rows: BTreeMap<(UserId, Reverse<PostId>), Row>,
    /// How far the store's clock was moved on by [`MemoryTimelines::advance`].
    skipped: Duration,
}

#[derive(Debug, Default)]
struct Row {
    tombstone_us: Option<Micros>,
    cell: Option<Cell>,
}

#[derive(Debug, Clone, Copy)]
struct Cell {
    write_us: Micros,
    /// On the clock of the store, which counts from its making.
    ends: Duration,
    author: UserId,
}

impl Default for MemoryTimelines {
    fn default() -> Self {
        Self {
            started: Instant::now(),
            state: Mutex::default(),
        }
    }
}

impl MemoryTimelines {
    /// Makes an empty store.
    pub fn new() -> Self {
        Self::default()
    }

    /// Moves the clock of the store on, so that rows expire without waiting. The clock that
    /// [`PgNow`] stands for is not moved.
    pub fn advance(&self, by: Duration) {
        self.lock().skipped += by;
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Every change under the lock is a single insertion, so a panic leaves nothing half done.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn clock(&self, state: &State) -> Duration {
        self.started.elapsed() + state.skipped
    }
}

impl Row {
    fn write(&mut self, cell: Cell) {
        if self
            .tombstone_us
            .is_some_and(|tombstone| tombstone >= cell.write_us)
        {
            return;
        }
        // At the same timestamp the later expiry wins, then the larger value.
        let rank = |cell: &Cell| (cell.write_us, cell.ends.as_secs(), cell.author);
        if self.cell.is_none_or(|present| rank(&present) < rank(&cell)) {
            self.cell = Some(cell);
        }
    }

    fn delete(&mut self, write_us: Micros) {
        self.tombstone_us = self.tombstone_us.max(Some(write_us));
        self.cell = self.cell.filter(|cell| cell.write_us > write_us);
    }

    fn live(&self, clock: Duration) -> Option<Cell> {
        self.cell.filter(|cell| cell.ends > clock)
    }
}

impl TimelineStore for MemoryTimelines {
    async fn write(&self, rows: &[TimelineRow], now: &PgNow) -> Result<Written, StoreError> {
        let mut state = self.lock();
        let clock = self.clock(&state);
        let mut written = Written::default();
        for row in rows {
            let Some(ttl) = row.ttl_seconds(now.now_us()) else {
                written.expired += 1;
                continue;
            };
            let ends = clock + Duration::from_secs(ttl.unsigned_abs().into());
            state
                .rows
                .entry((row.owner, Reverse(row.post)))
                .or_default()
                .write(Cell {
                    write_us: row.write_us,
                    ends,
                    author: row.author,
                });
            written.rows += 1;
        }
        Ok(written)
    }

    async fn delete(&self, deletes: &[TimelineDelete]) -> Result<(), StoreError> {
        let mut state = self.lock();
        for delete in deletes {
            let key = (delete.owner, Reverse(delete.post));
            state.rows.entry(key).or_default().delete(delete.write_us);
        }
        Ok(())
    }

    async fn page(
        &self,
        owner: UserId,
        before: Option<PostId>,
        since: Option<PostId>,
        limit: usize,
    ) -> Result<Vec<StoredRow>, StoreError> {
        let state = self.lock();
        let clock = self.clock(&state);
        let newest = (owner, Reverse(PostId(i64::MAX)));
        let oldest = (owner, Reverse(PostId(i64::MIN)));
        let page = state
            .rows
            .range(newest..=oldest)
            .map(|((_, Reverse(post)), row)| (*post, row))
            .filter(|(post, _)| before.is_none_or(|before| *post < before))
            .take_while(|(post, _)| since.is_none_or(|since| *post > since))
            .filter_map(|(post, row)| {
                Some(StoredRow {
                    post,
                    author: row.live(clock)?.author,
                })
            })
            .take(limit)
            .collect();
        Ok(page)
    }

    async fn scan(
        &self,
        page_rows: usize,
        mut visit: impl FnMut(Vec<ScannedRow>) + Send,
    ) -> Result<u64, StoreError> {
        let rows: Vec<ScannedRow> = {
            let state = self.lock();
            let clock = self.clock(&state);
            let scanned = state
                .rows
                .iter()
                .filter_map(|((owner, Reverse(post)), row)| {
                    let cell = row.live(clock)?;
                    let left = (cell.ends - clock).as_secs();
                    Some(ScannedRow {
                        owner: *owner,
                        post: *post,
                        author: cell.author,
                        write_us: cell.write_us,
                        ttl_seconds: Some(i32::try_from(left).unwrap_or(i32::MAX)),
                    })
                });
            scanned.collect()
        };
        for page in rows.chunks(page_rows.max(1)) {
            visit(page.to_vec());
        }
        Ok(rows.len() as u64)
    }

    async fn probe(&self) -> Result<(), StoreError> {
        Ok(())
    }
}
