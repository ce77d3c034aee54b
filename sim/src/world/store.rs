//! The timeline store: the larger write timestamp wins, a delete wins a tie, rows end by
//! themselves, tombstones are kept for ten days. The rules of `timeline-store`'s twin, on a clock
//! that a seed moves.
//!
//! A request may be applied and its answer lost, applied in part, or applied after the client has
//! given it up; never later than [`LATE`].

use std::collections::BTreeMap;

use events::{Class, Micros};
use timeline_store::{TimelineDelete, TimelineRow};

use super::{SECOND, World};
use crate::invariants;

/// How long after it was sent a request may still be applied.
pub(crate) const LATE: u64 = 3 * SECOND;
/// How long tombstones are kept.
pub(crate) const GC_GRACE: u64 = 10 * 24 * 3_600 * SECOND;

/// A row that is being written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Insert {
    pub(crate) row: TimelineRow,
    /// Seconds, counted by the store from the moment at which it is applied.
    pub(crate) ttl: u32,
    /// The edge that it is for.
    pub(crate) edge_us: Micros,
    /// How far Postgres's clock was set when it was asked.
    pub(crate) clock_step: i64,
}

/// What a request does.
#[derive(Clone, Debug)]
pub(crate) enum Work {
    Write(Vec<Insert>),
    Delete(Vec<TimelineDelete>),
}

#[derive(Debug)]
struct Request {
    id: u64,
    sent: u64,
    work: Work,
    is_given_up: bool,
}

/// The live part of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cell {
    pub(crate) write_us: Micros,
    /// When it ends, world time.
    pub(crate) ends: u64,
    pub(crate) author: i64,
}

/// A row.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Kept {
    tombstone: Option<(Micros, u64)>,
    cell: Option<Cell>,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Store {
    pub(crate) is_up: bool,
    requests: Vec<Request>,
    answers: BTreeMap<u64, Result<(), Class>>,
    sent: u64,
    /// By owner and post.
    rows: BTreeMap<(i64, i64), Kept>,
    /// The first write for an edge: write timestamp, and the end by Postgres's clock.
    pub(crate) first: BTreeMap<(i64, i64, Micros, Micros), (Micros, i64)>,
    /// Rows that were deleted, with the largest timestamp; outlives tombstones.
    pub(crate) deleted: BTreeMap<(i64, i64), Micros>,
}

impl Default for Store {
    fn default() -> Self {
        Self {
            is_up: true,
            requests: Vec::new(),
            answers: BTreeMap::new(),
            sent: 0,
            rows: BTreeMap::new(),
            first: BTreeMap::new(),
            deleted: BTreeMap::new(),
        }
    }
}

impl Kept {
    fn write(&mut self, cell: Cell) {
        if self.tombstone.is_some_and(|(at, _)| at >= cell.write_us) {
            return;
        }
        let rank = |cell: &Cell| (cell.write_us, cell.ends / SECOND, cell.author);
        if self.cell.is_none_or(|present| rank(&present) < rank(&cell)) {
            self.cell = Some(cell);
        }
    }

    fn delete(&mut self, write_us: Micros, now: u64) {
        self.tombstone = self.tombstone.max(Some((write_us, now)));
        self.cell = self.cell.filter(|cell| cell.write_us > write_us);
    }
}

impl Store {
    /// Sends a request. Its number is what the answer goes by.
    pub(crate) fn send(&mut self, work: Work, now: u64) -> u64 {
        self.sent += 1;
        self.requests.push(Request {
            id: self.sent,
            sent: now,
            work,
            is_given_up: false,
        });
        self.sent
    }

    /// The answer, if it is there.
    pub(crate) fn answer(&mut self, id: u64) -> Option<Result<(), Class>> {
        self.answers.remove(&id)
    }

    /// The client of these requests is gone; they go on.
    pub(crate) fn give_up(&mut self, id: u64) {
        self.answers.remove(&id);
        for request in self.requests.iter_mut().filter(|request| request.id == id) {
            request.is_given_up = true;
        }
    }

    /// A row that has not ended.
    pub(crate) fn live(&self, owner: i64, post: i64, now: u64) -> Option<Cell> {
        self.rows
            .get(&(owner, post))?
            .cell
            .filter(|cell| cell.ends > now)
    }

    /// Whether there is a row, ended or not.
    pub(crate) fn has(&self, owner: i64, post: i64) -> bool {
        self.rows
            .get(&(owner, post))
            .is_some_and(|kept| kept.cell.is_some())
    }

    /// Every live row: owner, post, cell.
    pub(crate) fn all(&self, now: u64) -> impl Iterator<Item = (i64, i64, Cell)> + '_ {
        self.rows.iter().filter_map(move |((owner, post), kept)| {
            Some((*owner, *post, kept.cell.filter(|cell| cell.ends > now)?))
        })
    }

    /// Whether requests wait.
    pub(crate) fn is_idle(&self) -> bool {
        self.requests.is_empty()
    }

    /// Forgets tombstones that are old enough.
    pub(crate) fn collect(&mut self, now: u64) {
        for kept in self.rows.values_mut() {
            kept.tombstone = kept.tombstone.filter(|(_, at)| now < at + GC_GRACE);
            kept.cell = kept.cell.filter(|cell| cell.ends > now);
        }
    }
}

/// Something becomes of some request. Whether there was one.
pub(crate) fn serve(world: &mut World) -> bool {
    if world.store.requests.is_empty() {
        return false;
    }
    let index = world.below(world.store.requests.len());
    if !world.store.is_up {
        let request = world.store.requests.swap_remove(index);
        let class = if world.odds(500) {
            Class::Outage
        } else {
            Class::Unsure
        };
        answer(world, &request, Err(class));
    } else if world.fails(20) {
        // In part, or not at all yet; the client hears nothing and gives it up.
        if world.odds(500) {
            let work = part_of(world, index);
            apply(world, &work);
        }
        give_up(world, index);
    } else {
        let request = world.store.requests.swap_remove(index);
        apply(world, &request.work);
        answer(world, &request, Ok(()));
    }
    true
}

/// Ends what may not wait beyond `until`.
pub(crate) fn end_late(world: &mut World, until: u64) {
    while let Some(index) = world
        .store
        .requests
        .iter()
        .position(|request| request.sent + LATE < until)
    {
        let request = world.store.requests.swap_remove(index);
        if world.store.is_up && world.odds(500) {
            apply(world, &request.work);
        }
        answer(world, &request, Err(Class::Unsure));
    }
}

fn give_up(world: &mut World, index: usize) {
    let request = &mut world.store.requests[index];
    if !request.is_given_up {
        request.is_given_up = true;
        let id = request.id;
        world.store.answers.insert(id, Err(Class::Unsure));
        world.tell("store", || {
            format!("request {id}: no answer, it may still be applied")
        });
    }
}

fn answer(world: &mut World, request: &Request, result: Result<(), Class>) {
    let id = request.id;
    world.tell("store", || format!("request {id}: {result:?}"));
    if !request.is_given_up {
        world.store.answers.insert(id, result);
    }
}

fn part_of(world: &mut World, index: usize) -> Work {
    let mut work = world.store.requests[index].work.clone();
    match &mut work {
        Work::Write(rows) => {
            let keep = world.below(rows.len() + 1);
            rows.truncate(keep);
        }
        Work::Delete(rows) => {
            let keep = world.below(rows.len() + 1);
            rows.truncate(keep);
        }
    }
    work
}

fn apply(world: &mut World, work: &Work) {
    let now = world.now;
    match work {
        Work::Write(rows) => {
            for insert in rows {
                let row = insert.row;
                let key = (row.owner.0, row.post.0);
                world.store.rows.entry(key).or_default().write(Cell {
                    write_us: row.write_us,
                    ends: now + u64::from(insert.ttl) * SECOND,
                    author: row.author.0,
                });
                invariants::at_write(world, insert);
            }
        }
        Work::Delete(deletes) => {
            for delete in deletes {
                let key = (delete.owner.0, delete.post.0);
                world
                    .store
                    .rows
                    .entry(key)
                    .or_default()
                    .delete(delete.write_us, now);
                let deleted = world.store.deleted.entry(key).or_default();
                *deleted = (*deleted).max(delete.write_us);
            }
        }
    }
    world.tell("store", || match work {
        Work::Write(rows) => format!(
            "writes {:?}",
            rows.iter()
                .map(|each| (each.row.owner.0, each.row.post.0))
                .collect::<Vec<_>>()
        ),
        Work::Delete(rows) => format!(
            "deletes {:?}",
            rows.iter()
                .map(|each| (each.owner.0, each.post.0))
                .collect::<Vec<_>>()
        ),
    });
}
