//! Gaps: ids that no row was seen for.
//!
//! Owns when a gap is settled and how the notes follow what was read. A gap is an id that was
//! rolled back, or one whose transaction is still open: an id is drawn before the transaction has
//! an xid, with a cached sequence long before. So a note is a note that no row was seen, and
//! nothing more: it saves reading, and is never subtracted from what a claim or a drop reads.

use std::collections::BTreeMap;

use events::{IdRanges, Micros};

/// How long after it was noted a gap may be settled, microseconds.
pub const SETTLED_AFTER_US: i64 = Micros::HOUR;
/// How many settled notes of one size are joined into one.
pub const MERGE_AT: usize = 64;

/// A note that no row was seen for these ids: a row of `outbox_void`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Void {
    /// The note's key.
    pub entry: i64,
    /// The ids.
    pub ids: IdRanges,
    /// An xid above every one given out when it was noted. `pg_snapshot_xmax` is not: a running
    /// transaction may lie above it.
    pub xmax_seen: u64,
    /// When it was noted.
    pub seen_us: Micros,
}

/// Which transactions can still commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// Every transaction below has ended. Prepared ones hold it back.
    pub xmin: u64,
    /// Postgres's clock.
    pub now_us: Micros,
}

impl Void {
    /// Whether every transaction of the time of the note has ended, and an hour has passed for
    /// those that had no xid yet.
    pub fn is_settled(&self, snapshot: &Snapshot) -> bool {
        snapshot.xmin >= self.xmax_seen && self.seen_us.plus(SETTLED_AFTER_US) <= snapshot.now_us
    }
}

/// The ids of settled notes.
pub fn settled(noted: &[Void], snapshot: &Snapshot) -> IdRanges {
    union(noted.iter().filter(|void| void.is_settled(snapshot)))
}

/// How the notes change after a reading.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Revision {
    /// Notes to make, none of them empty, with a snapshot taken after the reading.
    pub note: Vec<IdRanges>,
    /// Notes to forget. Their ids that are still gaps are in `note`.
    pub forget: Vec<i64>,
}

/// Brings the notes up to date. `candidates` are the existing span's ids that the stage did not
/// have when the `read` ones among them were read, and `found` those that had a row.
pub fn revise(
    noted: &[Void],
    candidates: &IdRanges,
    read: &IdRanges,
    found: &IdRanges,
) -> Revision {
    let open = candidates.subtract(found);
    let mut known = IdRanges::new();
    let mut forget = Vec::new();
    for void in noted {
        if void.ids.subtract(&open).is_empty() {
            known = known.union(&void.ids);
        } else {
            forget.push(void.entry);
        }
    }
    // What is left of forgotten notes becomes a note of its own: beside new gaps, most of which
    // are filled by the next reading, it would be made anew each time and never settle.
    let left = union(noted.iter().filter(|void| forget.contains(&void.entry)))
        .intersect(&open)
        .subtract(&known);
    let new = read.intersect(&open).subtract(&known).subtract(&left);
    Revision {
        note: [left, new]
            .into_iter()
            .filter(|ids| !ids.is_empty())
            .collect(),
        forget,
    }
}

/// Joins settled notes of about the same size once there are [`MERGE_AT`] of them, so that there
/// are never many. A joined note settles anew; each id goes through few joins, because a joined
/// note is of a larger size.
pub fn merge(noted: &[Void], snapshot: &Snapshot) -> Revision {
    let mut by_size: BTreeMap<u32, Vec<&Void>> = BTreeMap::new();
    for void in noted.iter().filter(|void| void.is_settled(snapshot)) {
        let size = void.ids.iter().count().max(1).ilog(MERGE_AT);
        by_size.entry(size).or_default().push(void);
    }
    let mut revision = Revision::default();
    for voids in by_size
        .into_values()
        .filter(|voids| voids.len() >= MERGE_AT)
    {
        revision.note.push(union(voids.iter().copied()));
        revision.forget.extend(voids.iter().map(|void| void.entry));
    }
    revision
}

fn union<'a>(voids: impl Iterator<Item = &'a Void>) -> IdRanges {
    IdRanges::from_ranges(voids.flat_map(|void| void.ids.iter()))
}
