//! What a proxy has carried, and which of its faults were met.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

/// Counts since the proxy was started. A chunk is what one read brought, at most 16 KiB.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Connections that were accepted.
    pub accepted: u64,
    /// Connections of these that are open now.
    pub open: u64,
    /// Bytes handed to the server.
    pub bytes_to_server: u64,
    /// Bytes handed to clients.
    pub bytes_to_client: u64,
    /// Chunks that were handed on late because of [`Latency`](crate::Fault::Latency).
    pub delayed: u64,
    /// Pauses for the sake of [`Bandwidth`](crate::Fault::Bandwidth).
    pub throttled: u64,
    /// Chunks that went into a [`BlackHole`](crate::Fault::BlackHole).
    pub held: u64,
    /// Connections that were opened into a black hole.
    pub swallowed: u64,
    /// Connections that ended by [`Reset`](crate::Fault::Reset).
    pub reset: u64,
    /// Connections that ended by [`CutAfter`](crate::Fault::CutAfter).
    pub cut: u64,
    /// Connections that were turned away by [`Refuse`](crate::Fault::Refuse).
    pub refused: u64,
}

/// The counters while they count; clones share them.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally(Arc<Cells>);

#[derive(Debug, Default)]
pub(super) struct Cells {
    pub(super) accepted: AtomicU64,
    pub(super) ended: AtomicU64,
    pub(super) bytes_to_server: AtomicU64,
    pub(super) bytes_to_client: AtomicU64,
    pub(super) delayed: AtomicU64,
    pub(super) throttled: AtomicU64,
    pub(super) held: AtomicU64,
    pub(super) swallowed: AtomicU64,
    pub(super) reset: AtomicU64,
    pub(super) cut: AtomicU64,
    pub(super) refused: AtomicU64,
}

impl Tally {
    /// Counts one of what `cell` stands for.
    pub(super) fn one(&self, cell: impl Fn(&Cells) -> &AtomicU64) {
        self.add(1, cell);
    }

    /// Counts several of what `cell` stands for.
    pub(super) fn add(&self, count: usize, cell: impl Fn(&Cells) -> &AtomicU64) {
        let count = u64::try_from(count).unwrap_or(u64::MAX);
        let _before = cell(&self.0).fetch_add(count, Ordering::Relaxed);
    }

    pub(super) fn read(&self) -> Counters {
        let value = |cell: &AtomicU64| cell.load(Ordering::Relaxed);
        let cells = &self.0;
        // In this order, so that there are never more ended than accepted.
        let ended = value(&cells.ended);
        let accepted = value(&cells.accepted);
        Counters {
            accepted,
            open: accepted.saturating_sub(ended),
            bytes_to_server: value(&cells.bytes_to_server),
            bytes_to_client: value(&cells.bytes_to_client),
            delayed: value(&cells.delayed),
            throttled: value(&cells.throttled),
            held: value(&cells.held),
            swallowed: value(&cells.swallowed),
            reset: value(&cells.reset),
            cut: value(&cells.cut),
            refused: value(&cells.refused),
        }
    }
}
