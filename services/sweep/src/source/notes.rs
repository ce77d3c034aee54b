//! The notes of gaps, from and to `tideline.outbox_void`.
//!
//! Only carries: which ids are gaps, and when a note is settled, is `core::voids`.

use std::time::{Duration, Instant};

use database::{Client, outbox_voids};

use crate::{
    core::voids::{Revision, Snapshot, Void},
    error::SweepError,
};

/// How long notes are kept in memory; they are brought up to date this often.
const GOOD_FOR: Duration = Duration::from_secs(10);

/// The noted gaps as they were read last.
#[derive(Debug)]
pub(crate) struct Notes {
    at: Instant,
    mirror: outbox_voids::Mirror,
    pub(crate) noted: Vec<Void>,
    pub(crate) snapshot: Snapshot,
}

impl Notes {
    /// Reads what is new in them since `before`, and where the server's transactions are.
    pub(crate) async fn read(client: &Client, before: Option<Self>) -> Result<Self, SweepError> {
        let mut mirror = before.map(|notes| notes.mirror).unwrap_or_default();
        mirror.refresh(client).await?;
        let at = outbox_voids::snapshot(client).await?;
        let noted = mirror.voids().iter().map(|void| Void {
            entry: void.entry,
            ids: void.ids.clone(),
            xmax_seen: void.xmax_seen,
            seen_us: void.seen_us,
        });
        Ok(Self {
            at: Instant::now(),
            noted: noted.collect(),
            mirror,
            snapshot: Snapshot {
                xmin: at.xmin,
                now_us: at.now_us,
            },
        })
    }

    /// Whether they should be read again.
    pub(crate) fn is_old(&self) -> bool {
        self.at.elapsed() >= GOOD_FOR
    }

    /// Ids in settled notes, or in those that are not.
    pub(crate) fn ids(&self, settled: bool) -> u64 {
        self.noted
            .iter()
            .filter(|void| void.is_settled(&self.snapshot) == settled)
            .map(|void| void.ids.ids())
            .sum()
    }
}

/// Writes a revision: new notes first, so that nothing is unknown in between.
pub(crate) async fn apply(client: &Client, revision: &Revision) -> Result<(), SweepError> {
    for ids in &revision.note {
        outbox_voids::note(client, ids).await?;
    }
    if !revision.forget.is_empty() {
        outbox_voids::forget(client, &revision.forget).await?;
    }
    Ok(())
}
