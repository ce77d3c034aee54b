//! A look: which existing rows a stage has no entry for, and nothing else finishes.
//!
//! Promise: ranges are subtracted first and rows read in what remains, so the cost follows what is
//! missing; a look holds a bounded number of ids and the next one goes on behind it (D-13). For
//! `delivered`, `published` is read first and only its ids are asked about: what was published
//! then, and is not delivered now, was on its way before any position that is read later.

use std::time::Instant;

use database::{
    Client, Pool, clock, delivery_ledger,
    finished::{self, Finished},
    outbox, slots,
};
use events::{
    EventId, EventType, Micros, Stage,
    id_ranges::{IdRange, IdRanges},
};

use crate::{
    core::{
        Life, Look, Mode, Moment, Reader,
        voids::{self, Snapshot},
    },
    error::SweepError,
    metrics::{SweepMetrics, gauge},
    requests::Asked,
    source::{
        entries::Entries,
        life,
        notes::{self, Notes},
    },
};

/// What a look is about.
#[derive(Clone, Copy, Debug)]
pub struct Scope {
    /// Only these ids.
    pub within: Option<IdRange>,
    /// Only rows made at or after the first moment and before the second.
    pub made: Option<(Micros, Micros)>,
    /// Ids that one look holds at most.
    pub limit: usize,
    /// Nothing is written, not even what a look may write.
    pub dry: bool,
}

impl Scope {
    /// Whether a look is about the whole outbox.
    const fn is_all(&self) -> bool {
        self.within.is_none() && self.made.is_none()
    }
}

/// Takes the looks of one stage.
#[derive(Debug)]
pub struct Looks {
    stage: Stage,
    pool: Pool,
    mode: Mode,
    scope: Scope,
    reader: Reader,
    began: Instant,
    entries: Entries,
    notes: Option<Notes>,
    pass: Pass,
    version: u64,
    metrics: SweepMetrics,
}

/// What one pass over all candidates has found so far.
#[derive(Clone, Copy, Debug, Default)]
struct Pass {
    missing: u64,
    oldest: Option<Micros>,
}

/// What is asked about, and what is known of the rest.
struct Candidates {
    asked: IdRanges,
    entered: IdRanges,
    finished: Finished,
}

impl Looks {
    /// The looks of a stage; none is taken yet.
    pub fn new(stage: Stage, pool: Pool, mode: Mode, scope: Scope, metrics: SweepMetrics) -> Self {
        Self {
            stage,
            pool,
            mode,
            scope,
            reader: Reader::default(),
            began: Instant::now(),
            entries: Entries::default(),
            notes: None,
            pass: Pass::default(),
            version: 0,
            metrics,
        }
    }

    /// Looks at the same for the gauges alone: nothing is marked, noted or entered.
    pub(crate) fn for_gauges(&self) -> Self {
        let scope = Scope {
            dry: true,
            ..self.scope
        };
        let (pool, metrics) = (self.pool.clone(), self.metrics.clone());
        Self::new(self.stage, pool, self.mode, scope, metrics)
    }

    /// The stage.
    pub(crate) const fn stage(&self) -> Stage {
        self.stage
    }

    /// Takes a look. One that was asked for begins a new pass.
    ///
    /// # Errors
    /// Whatever Postgres says.
    pub async fn take(&mut self, asked: Asked) -> Result<Look, SweepError> {
        if asked.version != self.version {
            self.reader = Reader::default();
            self.entries = Entries::default();
            self.pass = Pass::default();
        }
        let mut client = self.pool.get().await?;
        let life = life::here(&mut client, &self.metrics).await?;
        // Before any row: what is sent again later than this is newer than the look.
        let taken_us = clock::now(&client).await?;
        let span = outbox::span(&client)
            .await?
            .and_then(|span| self.clip(span));
        let Some(span) = span else {
            let look = self.look(life, Vec::new(), taken_us, false);
            self.reader.looked(&look);
            self.tell(&look, None, None);
            return Ok(look);
        };
        let candidates = self.candidates(&client, span).await?;
        let fresh = self.read_notes(&client).await?;
        let ranges = self.next_ranges(&candidates.asked);
        let limit = i64::try_from(self.scope.limit).unwrap_or(i64::MAX);
        let found = outbox::existing(&client, &ranges, self.scope.made, limit).await?;
        let truncated = found.len() >= self.scope.limit;
        let oldest = found.iter().map(|row| row.created_us).min();
        let everything = IdRanges::from_ids(found.iter().map(|row| row.event));
        let ids = self.consumed(&client, &life, found).await?;
        let mut look = self.look(life, ids, taken_us, truncated);
        if fresh {
            self.revise(&client, &candidates.asked, &ranges, &everything, &look)
                .await?;
        }
        if self.is_marked() && !look.ids.is_empty() {
            // After the rows: whoever has confirmed the mark has passed all of them.
            look.lsn = slots::mark(&client).await?;
        }
        self.reader.looked(&look);
        self.version = asked.version;
        self.tell(&look, oldest, Some(&candidates));
        Ok(look)
    }

    fn look(&self, life: Life, ids: Vec<EventId>, taken_us: Micros, truncated: bool) -> Look {
        Look {
            life,
            ids,
            taken_us,
            lsn: 0,
            truncated,
        }
    }

    fn is_marked(&self) -> bool {
        self.stage == Stage::Published && self.mode == Mode::Sweep && !self.scope.dry
    }

    /// The part of the span that is asked about.
    fn clip(&self, span: IdRange) -> Option<IdRange> {
        let Some(within) = self.scope.within else {
            return Some(span);
        };
        let clipped = IdRange {
            low: span.low.max(within.low),
            high: span.high.min(within.high),
        };
        (clipped.low < clipped.high).then_some(clipped)
    }

    /// Open dead letters and discards are left out, so that a round does not ask for the same
    /// finished ids again and again; the claim reads them once more, under its lock.
    async fn candidates(
        &mut self,
        client: &Client,
        span: IdRange,
    ) -> Result<Candidates, SweepError> {
        let (all, entered) = if self.scope.within.is_none() {
            let mirror = self.entries.read(client).await?;
            let entered = mirror.passed(self.stage).within(span);
            match self.stage {
                Stage::Published => (IdRanges::from(span), entered),
                Stage::Delivered => (mirror.passed(Stage::Published).within(span), entered),
            }
        } else {
            let all = match self.stage {
                Stage::Published => IdRanges::from(span),
                Stage::Delivered => delivery_ledger::ranges(client, Stage::Published, span).await?,
            };
            (
                all,
                delivery_ledger::ranges(client, self.stage, span).await?,
            )
        };
        let finished = finished::of(client, self.stage, span).await?;
        let asked = all
            .subtract(&entered)
            .subtract(&finished.dead_lettered)
            .subtract(&finished.discarded);
        Ok(Candidates {
            asked,
            entered,
            finished,
        })
    }

    /// Reads the notes of gaps again when they are old. Whether it did.
    async fn read_notes(&mut self, client: &Client) -> Result<bool, SweepError> {
        // Everything that was published has a row, so only `published` meets gaps.
        let wanted = self.stage == Stage::Published && self.scope.is_all() && !self.scope.dry;
        let is_old = self.notes.as_ref().is_none_or(Notes::is_old);
        if !wanted || !is_old {
            return Ok(false);
        }
        let notes = Notes::read(client, self.notes.take()).await?;
        for (state, settled) in [("noted", false), ("settled", true)] {
            let ids = gauge(notes.ids(settled));
            self.metrics.gaps.with_label_values(&[state]).set(ids);
        }
        self.notes = Some(notes);
        Ok(true)
    }

    fn next_ranges(&mut self, asked: &IdRanges) -> IdRanges {
        let none = Snapshot {
            xmin: 0,
            now_us: Micros(0),
        };
        let now = Moment(u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX));
        let (noted, snapshot) = self.notes.as_ref().map_or((&[][..], &none), |notes| {
            (&notes.noted[..], &notes.snapshot)
        });
        self.reader.ranges(asked, noted, snapshot, now)
    }

    /// The ids whose types the stage accounts for; the others are entered as not consumed, so that
    /// the stage stays dense. `published` accounts for every row: one of an unknown type becomes a
    /// dead letter.
    async fn consumed(
        &self,
        client: &Client,
        life: &Life,
        found: Vec<outbox::Found>,
    ) -> Result<Vec<EventId>, SweepError> {
        let is_accounted = |row: &outbox::Found| {
            self.stage == Stage::Published
                || EventType::from_name(&row.type_name)
                    .is_some_and(|event_type| self.stage.accounts_for(event_type))
        };
        let (ids, others): (Vec<_>, Vec<_>) = found.into_iter().partition(is_accounted);
        if !others.is_empty() && !self.scope.dry {
            let others: Vec<EventId> = others.into_iter().map(|row| row.event).collect();
            delivery_ledger::record(client, self.stage, &others, life.epoch).await?;
            self.metrics.not_consumed.inc_by(others.len() as u64);
        }
        Ok(ids.into_iter().map(|row| row.event).collect())
    }

    /// Brings the notes of gaps up to date with what was read.
    async fn revise(
        &self,
        client: &Client,
        asked: &IdRanges,
        ranges: &IdRanges,
        found: &IdRanges,
        look: &Look,
    ) -> Result<(), SweepError> {
        let Some(notes) = &self.notes else {
            return Ok(());
        };
        let read = Reader::read(ranges, look);
        let revision = voids::revise(&notes.noted, asked, &read, found);
        notes::apply(client, &revision).await
    }

    /// Puts what the pass has found so far into the gauges.
    fn tell(&mut self, look: &Look, oldest: Option<Micros>, candidates: Option<&Candidates>) {
        self.pass.missing += look.ids.len() as u64;
        if !look.ids.is_empty() {
            self.pass.oldest = self.pass.oldest.into_iter().chain(oldest).min();
        }
        let Pass { missing, oldest } = self.pass;
        if !look.truncated {
            self.pass = Pass::default();
        }
        if !self.scope.is_all() {
            return;
        }
        let stage = self.stage.as_str();
        let metrics = &self.metrics;
        metrics
            .missing
            .with_label_values(&[stage])
            .set(gauge(missing));
        if look.lsn != 0 {
            metrics.marked.set(gauge(missing));
            metrics.mark_lsn.set(gauge(look.lsn));
        }
        let age = oldest.map_or(0, |oldest| look.taken_us.0 - oldest.0);
        #[expect(clippy::cast_precision_loss, reason = "a gauge of seconds")]
        metrics
            .oldest_missing
            .with_label_values(&[stage])
            .set(age.max(0) as f64 / 1e6);
        // What is not published is in no later stage either.
        let earlier = match self.stage {
            Stage::Published => 0,
            Stage::Delivered => metrics
                .missing
                .with_label_values(&[Stage::Published.as_str()])
                .get(),
        };
        let unaccounted = gauge(missing) + earlier;
        let [entered, dead_lettered, discarded] = candidates.map_or([0; 3], |known| {
            let Finished {
                dead_lettered,
                discarded,
            } = &known.finished;
            let dead_lettered = dead_lettered.subtract(&known.entered);
            let discarded = discarded.subtract(&known.entered).subtract(&dead_lettered);
            [&known.entered, &dead_lettered, &discarded].map(|ids| gauge(ids.ids()))
        });
        let accepted = entered + dead_lettered + discarded + unaccounted;
        for (gauges, value) in [
            (&metrics.unaccounted, unaccounted),
            (&metrics.delivered, entered),
            (&metrics.dead_lettered, dead_lettered),
            (&metrics.discarded_ids, discarded),
            (&metrics.accepted, accepted),
        ] {
            gauges.with_label_values(&[stage]).set(value);
        }
    }
}
