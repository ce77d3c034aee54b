//! The claim: what is still missing of a look is sent again, under a lock (D-10).
//!
//! Owns the order of steps: lock a block of ids, read again what is missing of it in a fresh
//! snapshot, decide by [`fate`], send, wait for every acknowledgement, and only then write what
//! was sent and end the lock, in one transaction. Promise: two sweepers never send a row for the
//! same look; after a failure nothing of the batch is written. A crash after the send repeats it.

use std::sync::Arc;

use database::{
    Pool,
    claim::{self, ClaimRow, Sent},
};
use events::{EventId, Micros, Stage};
use futures::future::join_all;
use runtime::Shutdown;

use crate::{
    core::{Claimed, DiscardReason, Facts, Fate, Look, fate},
    error::SweepError,
    metrics::SweepMetrics,
    sink::{
        publish::{Outgoing, Publisher},
        rate::Rate,
        work::{Work, blocks},
    },
};

/// The claims of one stage.
#[derive(Debug)]
pub(crate) struct Redeliver {
    claims: Claims,
    /// One for each claim that has been at work beside others.
    publishers: Vec<Publisher>,
}

/// What every claim needs.
#[derive(Debug)]
struct Claims {
    stage: Stage,
    pool: Pool,
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
    /// Claims side by side at most, each of another block.
    pub(crate) side_by_side: usize,
    /// Whether what is sent is so for the first time: nothing else sends in this stage.
    pub(crate) dispatches: bool,
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
            claims: Claims {
                stage,
                pool,
                rate,
                rules,
                metrics,
            },
            publishers: vec![publisher],
        }
    }

    /// Whether the broker takes a record now.
    pub(crate) async fn probe(&mut self) -> Result<(), SweepError> {
        match self.publishers.first_mut() {
            Some(publisher) => publisher.probe().await,
            // There is always the one that this was made with.
            None => Ok(()),
        }
    }

    /// Deals with what is still missing of the look, several blocks at once. Ends early, between
    /// two batches, when its share of time is used up, `shutdown` is requested, or one has failed.
    pub(crate) async fn claim(
        &mut self,
        look: &Look,
        shutdown: &Shutdown,
    ) -> Result<Claimed, SweepError> {
        let work = Work::of(look, shutdown);
        let wanted = work.blocks_left().min(self.claims.rules.side_by_side);
        while self.publishers.len() < wanted {
            let Some(first) = self.publishers.first() else {
                break;
            };
            let another = first.another()?;
            self.publishers.push(another);
        }
        let claims = &self.claims;
        let publishers = self.publishers.iter_mut().take(wanted);
        let outcomes = join_all(publishers.map(|publisher| claims.work(&work, publisher))).await;
        let mut claimed = Claimed::default();
        for outcome in outcomes {
            add(&mut claimed, outcome?);
        }
        Ok(claimed)
    }

    /// What would be done with each id of the look that is still missing; sends and writes
    /// nothing. The second answer counts ids that another sweeper is working on.
    pub(crate) async fn judge(&self, look: &Look) -> Result<(Vec<Verdict>, u64), SweepError> {
        self.claims.judge(look).await
    }
}

impl Claims {
    /// Claims one block after the other until none is left.
    async fn work(
        &self,
        work: &Work<'_>,
        publisher: &mut Publisher,
    ) -> Result<Claimed, SweepError> {
        let batch_ids = self.rate.batch(self.rules.batch).max(1);
        let mut claimed = Claimed::default();
        while let Some((block, ids)) = work.next_block() {
            let mut batches = ids.chunks(batch_ids);
            while let Some(batch) = batches.next() {
                tokio::select! {
                    () = self.rate.take(batch.len()) => {}
                    () = work.shutdown.requested() => {
                        claimed.more = true;
                        return Ok(claimed);
                    }
                }
                if work.is_over() {
                    self.rate.give_back(batch.len());
                    claimed.more = true;
                    return Ok(claimed);
                }
                let outcome = self.batch(work.look, publisher, block, batch).await;
                match outcome {
                    Ok(Some(part)) => add(&mut claimed, part),
                    Ok(None) => {
                        // Another sweeper works on this block.
                        let rest: usize = batches.map(<[EventId]>::len).sum();
                        claimed.left += (batch.len() + rest) as u64;
                        break;
                    }
                    Err(error) => {
                        work.give_up();
                        return Err(error);
                    }
                }
            }
        }
        Ok(claimed)
    }

    async fn judge(&self, look: &Look) -> Result<(Vec<Verdict>, u64), SweepError> {
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

    /// One claim; what was charged for ids that are not sent is given back. `None`: another
    /// sweeper holds the block.
    async fn batch(
        &self,
        look: &Look,
        publisher: &mut Publisher,
        block: i64,
        ids: &[EventId],
    ) -> Result<Option<Claimed>, SweepError> {
        let mut client = self.pool.get().await?;
        let now = database::clock::now(&client).await?;
        let Some(claim) = claim::begin(&mut client, block).await? else {
            self.rate.give_back(ids.len());
            return Ok(None);
        };
        fail::fail_point!("sweep::claimed");
        let rows = claim.rows(self.stage, ids).await?;
        let judged = self.decide(look, rows, now);
        self.rate.give_back(ids.len() - judged.sends.len());
        let epoch = look.life.epoch;
        let published = publisher.publish(self.stage, epoch, &judged.sends).await?;
        fail::fail_point!("sweep::produced");
        for letter in &published.letters {
            claim.dead_letter(letter).await?;
        }
        let reasons: Vec<(EventId, &str)> = judged
            .discards
            .iter()
            .map(|(event, reason)| (*event, reason.as_str()))
            .collect();
        let sent = if self.rules.dispatches {
            Sent::First(&published.sent)
        } else {
            Sent::Again(&published.sent)
        };
        claim.commit(self.stage, sent, &reasons, epoch).await?;
        fail::fail_point!("sweep::committed");
        self.count(&published.sent, published.letters.len(), &judged.discards);
        Ok(Some(Claimed {
            redelivered: published.sent.len() as u64,
            discarded: judged.discards.len() as u64,
            left: judged.left + published.letters.len() as u64,
            more: false,
        }))
    }

    fn decide(&self, look: &Look, rows: Vec<ClaimRow>, now: Micros) -> Judged {
        let mut judged = Judged::default();
        for row in rows {
            match self.fate(look, &row, now) {
                Fate::Redeliver { attempt, alarm } => {
                    self.alarm(&row, attempt, alarm);
                    judged.sends.push((row, attempt));
                }
                Fate::Discard(reason) => judged.discards.push((row.event, reason)),
                Fate::Leave(why) => {
                    judged.left += 1;
                    tracing::trace!(event = %row.event, %why, "left alone");
                }
            }
        }
        judged
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

/// What is to be done with the rows of one claim.
#[derive(Debug, Default)]
struct Judged {
    sends: Vec<Outgoing>,
    discards: Vec<(EventId, DiscardReason)>,
    left: u64,
}

fn add(sum: &mut Claimed, part: Claimed) {
    sum.redelivered += part.redelivered;
    sum.discarded += part.discarded;
    sum.left += part.left;
    sum.more |= part.more;
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
