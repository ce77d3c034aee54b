//! The work that one look makes: its ids by block, shared out among claims side by side.
//!
//! Promise: each block is handed out once, and none after the look's share of time, a failure, or
//! a stop.

use std::{
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
    vec::IntoIter,
};

use events::EventId;
use runtime::Shutdown;

use crate::core::Look;

/// After this long a claim ends, so that the position is read again before it goes on.
const SHARE: Duration = Duration::from_secs(20);

/// The blocks of one look.
pub(super) struct Work<'a> {
    pub(super) look: &'a Look,
    pub(super) shutdown: &'a Shutdown,
    blocks: Mutex<IntoIter<(i64, Vec<EventId>)>>,
    began: Instant,
    failed: AtomicBool,
}

impl<'a> Work<'a> {
    pub(super) fn of(look: &'a Look, shutdown: &'a Shutdown) -> Self {
        Self {
            look,
            shutdown,
            blocks: Mutex::new(blocks(&look.ids).into_iter()),
            began: Instant::now(),
            failed: AtomicBool::new(false),
        }
    }

    pub(super) fn blocks_left(&self) -> usize {
        let blocks = self.blocks.lock().unwrap_or_else(PoisonError::into_inner);
        blocks.len()
    }

    pub(super) fn next_block(&self) -> Option<(i64, Vec<EventId>)> {
        let mut blocks = self.blocks.lock().unwrap_or_else(PoisonError::into_inner);
        blocks.next()
    }

    /// A claim has failed: the others begin nothing more.
    pub(super) fn give_up(&self) {
        self.failed.store(true, Ordering::Relaxed);
    }

    /// Whether no further batch is to be begun.
    pub(super) fn is_over(&self) -> bool {
        self.shutdown.is_requested()
            || self.began.elapsed() >= SHARE
            || self.failed.load(Ordering::Relaxed)
    }
}

/// The ids by block, from a block of chance on: sweepers that start at once do not queue for the
/// same locks.
pub(super) fn blocks(ids: &[EventId]) -> Vec<(i64, Vec<EventId>)> {
    let mut blocks: Vec<(i64, Vec<EventId>)> = Vec::new();
    for &id in ids {
        let block = events::id_ranges::block_of(id);
        match blocks.last_mut() {
            Some((last, ids)) if *last == block => ids.push(id),
            _ => blocks.push((block, vec![id])),
        }
    }
    if !blocks.is_empty() {
        let start = fastrand::usize(..blocks.len());
        blocks.rotate_left(start);
    }
    blocks
}

#[cfg(test)]
mod tests {
    use events::id_ranges::BLOCK;

    use super::*;

    #[test]
    fn blocks_hold_every_id_once_from_anywhere_on() {
        let ids: Vec<EventId> = [1, 2, BLOCK - 1, BLOCK, BLOCK + 5, 7 * BLOCK]
            .map(EventId)
            .to_vec();
        for _ in 0..20 {
            let found = blocks(&ids);
            assert_eq!(found.len(), 3);
            let mut all: Vec<EventId> = found.iter().flat_map(|(_, ids)| ids.clone()).collect();
            all.sort_unstable();
            assert_eq!(all, ids);
            for (block, ids) in found {
                assert!(
                    ids.iter()
                        .all(|id| events::id_ranges::block_of(*id) == block)
                );
            }
        }
        assert!(blocks(&[]).is_empty());
    }
}
