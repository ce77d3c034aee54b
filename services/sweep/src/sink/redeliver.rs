//! The claim: what is still missing of a look is sent again, under a lock (D-10).
//!
//! Owns the order of steps: lock a block of ids, read again what is missing of it in a fresh
//! snapshot, decide by [`fate`], send, wait for every acknowledgement, and only then write what
//! was sent and end the lock, in one transaction. Promise: two sweepers never send a row for the
//! same look; after a failure nothing of the batch is written. A crash after the send repeats it.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use database::{
    Pool,
    claim::{self, ClaimRow},
};
use events::{EventId, Micros, Stage};
use runtime::Shutdown;

use crate::{
    core::{Claimed, DiscardReason, Facts, Fate, Look, fate},
    error::SweepError,
    metrics::SweepMetrics,
    sink::{publish::Publisher, rate::Rate},
};

/// After this long a claim ends, so that the position is read again before it goes on.
const SHARE: Duration = Duration::from_secs(20);

/// The claims of one stage.
#[derive(Debug)]
pub(crate) struct Redeliver {
    stage: Stage,
    pool: Pool,
    publisher: Publisher,
    rate: Arc<Rate>,
    rules: Rules,
    metrics: SweepMetrics,
}

/// What can be set about claims.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    /// Age past which an event is discarded, µs.
    pub(crate) horizon_us: i64,
    /// Rows of one claim at most.
    pub(crate) batch: usize,
}

/// What would be done with one missing id.
#[derive(Clone, Debug)]
pub(crate) struct Verdict {
    pub(crate) row: ClaimRow,
    pub(crate) fate: Fate,
}

impl Redeliver {
    pub(crate) fn new(
        stage: Stage,
        pool: Pool,
        publisher: Publisher,
        rate: Arc<Rate>,
        rules: Rules,
        metrics: SweepMetrics,
    ) -> Self {
        Self {
            stage,
            pool,
            publisher,
            rate,
            rules,
            metrics,
        }
    }

    /// Whether the broker takes a record now.
    pub(crate) async fn probe(&mut self) -> Result<(), SweepError> {
        self.publisher.probe().await
    }

    /// Deals with what is still missing of the look. Ends early, between two batches, when its
    /// share of time is used up or `shutdown` is requested.
    pub(crate) async fn claim(
        &mut self,
        look: &Look,
        shutdown: &Shutdown,
    ) -> Result<Claimed, SweepError> {
        let began = Instant::now();
        let batch_ids = self.rate.batch(self.rules.batch).max(1);
        let mut claimed = Claimed::default();
        for (block, ids) in blocks(&look.ids) {
            let mut batches = ids.chunks(batch_ids);
            while let Some(batch) = batches.next() {
                tokio::select! {
                    () = self.rate.ready() => {}
                    () = shutdown.requested() => {}
                }
                if shutdown.is_requested() || began.elapsed() >= SHARE {
                    claimed.more = true;
                    return Ok(claimed);
                }
                if let Some(part) = self.batch(look, block, batch).await? {
                    claimed.redelivered += part.redelivered;
                    claimed.discarded += part.discarded;
                    claimed.left += part.left;
                } else {
                    // Another sweeper works on this block.
                    let rest: usize = batches.map(<[EventId]>::len).sum();
                    claimed.left += (batch.len() + rest) as u64;
                    break;
                }
            }
        }
        Ok(claimed)
    }

    /// What would be done with each id of the look that is still missing; sends and writes
    /// nothing. The second answer counts ids that another sweeper is working on.
    pub(crate) async fn judge(&self, look: &Look) -> Result<(Vec<Verdict>, u64), SweepError> {
        let mut verdicts = Vec::new();
        let mut busy = 0;
        for (block, ids) in blocks(&look.ids) {
            for batch in ids.chunks(self.rules.batch.max(1)) {
                let mut client = self.pool.get().await?;
                let now = database::clock::now(&client).await?;
                let Some(claim) = claim::begin(&mut client, block).await? else {
                    busy += batch.len() as u64;
                    continue;
                };
                for row in claim.rows(self.stage, batch).await? {
                    let fate = self.fate(look, &row, now);
                    verdicts.push(Verdict { row, fate });
                }
                // Dropping the claim rolls it back.
            }
        }
        Ok((verdicts, busy))
    }

    /// One claim. `None`: another sweeper holds the block.
    async fn batch(
        &mut self,
        look: &Look,
        block: i64,
        ids: &[EventId],
    ) -> Result<Option<Claimed>, SweepError> {
        let mut client = self.pool.get().await?;
        let now = database::clock::now(&client).await?;
        let Some(claim) = claim::begin(&mut client, block).await? else {
            return Ok(None);
        };
        fail::fail_point!("sweep::claimed");
        let rows = claim.rows(self.stage, ids).await?;
        let mut sends = Vec::new();
        let mut discards = Vec::new();
        let mut left = 0;
        for row in &rows {
            match self.fate(look, row, now) {
                Fate::Redeliver { attempt, alarm } => {
                    self.alarm(row, attempt, alarm);
                    sends.push((row, attempt));
                }
                Fate::Discard(reason) => discards.push((row.event, reason)),
                Fate::Leave(why) => {
                    left += 1;
                    tracing::trace!(event = %row.event, %why, "left alone");
                }
            }
        }
        let epoch = look.life.epoch;
        let published = self.publisher.publish(self.stage, epoch, &sends).await?;
        fail::fail_point!("sweep::produced");
        let reasons: Vec<(EventId, &str)> = discards
            .iter()
            .map(|(event, reason)| (*event, reason.as_str()))
            .collect();
        claim
            .commit(self.stage, &published.sent, &reasons, epoch)
            .await?;
        fail::fail_point!("sweep::committed");
        self.rate.charge(sends.len());
        self.count(&published.sent, published.letters.len(), &discards);
        Ok(Some(Claimed {
            redelivered: published.sent.len() as u64,
            discarded: discards.len() as u64,
            left: left + published.letters.len() as u64,
            more: false,
        }))
    }

    fn fate(&self, look: &Look, row: &ClaimRow, now: Micros) -> Fate {
        fate(&facts(row), look.taken_us, now, self.rules.horizon_us)
    }

    fn alarm(&self, row: &ClaimRow, attempt: u32, alarm: bool) {
        if alarm {
            self.metrics
                .repeated
                .with_label_values(&[self.stage.as_str()])
                .inc();
            tracing::error!(
                event = %row.event,
                attempt,
                stage = self.stage.as_str(),
                "event does not pass although it was sent again and again"
            );
        }
    }

    fn count(&self, sent: &[EventId], letters: usize, discards: &[(EventId, DiscardReason)]) {
        let stage = self.stage.as_str();
        let metrics = &self.metrics;
        metrics
            .redelivered
            .with_label_values(&[stage])
            .inc_by(sent.len() as u64);
        metrics
            .dead_letters
            .with_label_values(&[stage])
            .inc_by(letters as u64);
        for (event, reason) in discards {
            let labels = [stage, reason.as_str()];
            metrics.discarded.with_label_values(&labels).inc();
            tracing::warn!(%event, stage, reason = reason.as_str(), "event discarded");
        }
    }
}

/// What [`fate`] wants to know of a row.
fn facts(row: &ClaimRow) -> Facts {
    Facts {
        created_us: row.created_us,
        post_exists: row.post_exists,
        attempts: row.attempts,
        last_us: row.last_us,
        dead_letter_open: row.dead_letter_open,
        discarded: row.discarded.is_some(),
    }
}

/// The ids by block, from a block of chance on: sweepers that start at once do not queue for the
/// same locks.
fn blocks(ids: &[EventId]) -> Vec<(i64, Vec<EventId>)> {
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
