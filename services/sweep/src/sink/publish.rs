//! Rows into Kafka: the record the relay would have made, or the dead letter it would have made.
//!
//! A batch is handed over as a whole and its reports are taken as they come; the client makes
//! large requests of it. Promise: returns after every record is acknowledged, or after nothing of
//! what failed is left with the client, so that a record is not written long after somebody else
//! has sent it again.

use std::time::Duration;

use bytes::Bytes;
use database::{claim::ClaimRow, dead_letters::DeadLetter};
use events::{
    Class, EventId, PostId, Stage, envelope,
    route::{Letter, OutboxRow, Routed, Router, Via},
    topic::TopicKind,
};
use kafka::{
    EnqueueError, KafkaConfig, Producer,
    producer::{Position, Reports},
};
use tokio::time::{Instant, timeout_at};

use crate::error::SweepError;

/// How long a claim waits for acknowledgements. Well below the 60 s after which Postgres ends an
/// idle transaction, and the claim with it.
const ACKNOWLEDGED_WITHIN: Duration = Duration::from_secs(20);
/// How long a probe may take.
const PROBED_WITHIN: Duration = Duration::from_secs(5);
const CLIENT_ID: &str = "tideline-sweep";

/// What became of the rows of a claim.
#[derive(Debug, Default)]
pub(crate) struct Published {
    /// Acknowledged by the topic.
    pub(crate) sent: Vec<EventId>,
    /// In the dead-letter topic; the rows that account for them are to be written.
    pub(crate) letters: Vec<DeadLetter>,
}

/// The producer of one claim at a time.
#[derive(Debug)]
pub(crate) struct Publisher {
    kafka: KafkaConfig,
    producer: Producer,
    reports: Reports,
    router: Router,
    database: String,
    epoch: i64,
    next_tag: u64,
}

/// A row with the attempt that this is.
pub(crate) type Outgoing = (ClaimRow, u32);

impl Publisher {
    /// A producer; `database` is the name that `ce_source` carries.
    pub(crate) fn new(
        kafka: KafkaConfig,
        max_bytes: impl Fn(TopicKind) -> usize,
        database: String,
    ) -> Result<Self, SweepError> {
        let router = Router::new(&kafka.namespace, "", max_bytes);
        Self::with(kafka, router, database)
    }

    /// One more of the same.
    pub(crate) fn another(&self) -> Result<Self, SweepError> {
        Self::with(
            self.kafka.clone(),
            self.router.clone(),
            self.database.clone(),
        )
    }

    fn with(kafka: KafkaConfig, router: Router, database: String) -> Result<Self, SweepError> {
        let (producer, reports) = Producer::new(&kafka, CLIENT_ID)?;
        Ok(Self {
            kafka,
            producer,
            reports,
            router,
            database,
            // No epoch has this number: the first batch sets the source.
            epoch: i64::MIN,
            next_tag: 0,
        })
    }

    /// Sends rows with the attempt of each.
    pub(crate) async fn publish(
        &mut self,
        stage: Stage,
        epoch: i64,
        rows: &[Outgoing],
    ) -> Result<Published, SweepError> {
        if self.epoch != epoch {
            let source = envelope::source(&self.database, epoch);
            self.router.set_source(&source);
            self.epoch = epoch;
        }
        let outcome = self.try_publish(stage, rows).await;
        if outcome.is_err() {
            self.renew().await?;
        }
        outcome
    }

    /// Whether the broker takes a record now.
    pub(crate) async fn probe(&mut self) -> Result<(), SweepError> {
        let record = kafka::Record {
            topic: self.kafka.namespace.probe(),
            key: None,
            payload: Some(Bytes::from_static(b"probe")),
            headers: Vec::new(),
        };
        let outcome = self.producer.send(record, PROBED_WITHIN).await;
        if outcome.is_err() {
            self.renew().await?;
        }
        outcome.map(drop).map_err(|source| SweepError::Produce {
            event: EventId(0),
            source,
        })
    }

    async fn try_publish(
        &mut self,
        stage: Stage,
        rows: &[Outgoing],
    ) -> Result<Published, SweepError> {
        let mut batch = Batch::new(rows, self.next_tag);
        self.next_tag = batch.end();
        let mut letters = Vec::new();
        for (index, send) in rows.iter().enumerate() {
            match self.route(send) {
                Routed::Record(record) => self.enqueue(index, record.into(), &mut batch).await?,
                Routed::Letter(letter) => letters.push(letter),
            }
        }
        while batch.waiting > 0 {
            self.take_report(&mut batch).await?;
        }
        for send in batch.refused {
            if let Routed::Record(record) = self.route(send) {
                letters.push(self.router.refused(&record.summary));
            }
        }
        let mut published = Published {
            sent: batch.sent,
            letters: Vec::new(),
        };
        for letter in letters {
            published
                .letters
                .push(self.dead_letter(stage, letter).await?);
        }
        Ok(published)
    }

    /// Hands a record to the client; while that has no room, takes reports.
    async fn enqueue(
        &mut self,
        index: usize,
        mut record: kafka::Record,
        batch: &mut Batch<'_>,
    ) -> Result<(), SweepError> {
        loop {
            match self.producer.enqueue(record, batch.tag(index)) {
                Ok(()) => {
                    batch.enqueued(index);
                    return Ok(());
                }
                Err(EnqueueError::QueueFull(back)) => {
                    record = *back;
                    self.take_report(batch).await?;
                }
                // Only this record can never be taken.
                Err(error) if error.class() == Class::Record => {
                    batch.refuse(index);
                    return Ok(());
                }
                Err(source) => {
                    let event = batch.event(index);
                    return Err(SweepError::Enqueue { event, source });
                }
            }
        }
    }

    /// Takes one report, or fails when none comes in time.
    async fn take_report(&mut self, batch: &mut Batch<'_>) -> Result<(), SweepError> {
        let report = timeout_at(batch.deadline, self.reports.recv()).await;
        // The producer lives as long as this struct, so its reports do not end.
        let Ok(Some(report)) = report else {
            return Err(SweepError::Unacknowledged {
                records: batch.waiting,
                waited: ACKNOWLEDGED_WITHIN,
            });
        };
        let Some(index) = batch.take(report.tag) else {
            return Ok(());
        };
        match report.result {
            Ok(_) => batch.sent.push(batch.event(index)),
            Err(error) if error.class() == Class::Record => batch.refuse(index),
            Err(source) => {
                let event = batch.event(index);
                return Err(SweepError::Produce { event, source });
            }
        }
        Ok(())
    }

    fn route(&self, (row, attempt): &Outgoing) -> Routed {
        let bytes = |text: &str| Bytes::copy_from_slice(text.as_bytes());
        let (key, payload) = (bytes(&row.partition_key), bytes(&row.payload));
        let traceparent = row.traceparent.as_deref().map(bytes);
        let outbox = OutboxRow {
            event: row.event,
            aggregate: &row.aggregate,
            subject: &row.subject,
            type_name: &row.type_name,
            created_at: &row.created_at_text,
            key: Some(&key),
            payload: Some(&payload),
            traceparent: traceparent.as_ref(),
        };
        self.router.route(&outbox, Via::Sweep { attempt: *attempt })
    }

    /// The letter into its topic. The row that accounts for the event comes after it: an open dead
    /// letter never stands for a record that nobody has.
    async fn dead_letter(&self, stage: Stage, letter: Letter) -> Result<DeadLetter, SweepError> {
        let event = letter.event;
        tracing::warn!(
            %event,
            reason = letter.reason.as_str(),
            topic = &*letter.topic,
            "row can never be produced: dead letter"
        );
        let sent = self
            .producer
            .send(letter.clone().into(), ACKNOWLEDGED_WITHIN)
            .await;
        let position = sent.map_err(|source| SweepError::Produce { event, source })?;
        Ok(row_of(stage, &letter, position))
    }

    /// A new client in place of one that holds records of which nobody knows what became.
    async fn renew(&mut self) -> Result<(), SweepError> {
        let (producer, reports) = Producer::new(&self.kafka, CLIENT_ID)?;
        let old = std::mem::replace(&mut self.producer, producer);
        self.reports = reports;
        old.close().await;
        Ok(())
    }
}

/// A batch on its way.
struct Batch<'a> {
    rows: &'a [Outgoing],
    /// The tag of its first row; each row has the next one.
    first: u64,
    /// Which rows the client has and has not reported.
    unreported: Vec<bool>,
    /// How many those are.
    waiting: usize,
    deadline: Instant,
    sent: Vec<EventId>,
    /// Rows whose records can never be taken.
    refused: Vec<&'a Outgoing>,
}

impl<'a> Batch<'a> {
    fn new(rows: &'a [Outgoing], first: u64) -> Self {
        Self {
            rows,
            first,
            unreported: vec![false; rows.len()],
            waiting: 0,
            deadline: Instant::now() + ACKNOWLEDGED_WITHIN,
            sent: Vec::with_capacity(rows.len()),
            refused: Vec::new(),
        }
    }

    /// The tag behind its last one.
    fn end(&self) -> u64 {
        self.tag(self.rows.len())
    }

    fn tag(&self, index: usize) -> u64 {
        self.first + index as u64
    }

    fn event(&self, index: usize) -> EventId {
        self.rows
            .get(index)
            .map_or(EventId(0), |(row, _)| row.event)
    }

    fn enqueued(&mut self, index: usize) {
        if let Some(unreported) = self.unreported.get_mut(index) {
            *unreported = true;
            self.waiting += 1;
        }
    }

    /// The row that a report is about; none when it is of an earlier batch.
    fn take(&mut self, tag: u64) -> Option<usize> {
        let index = usize::try_from(tag.checked_sub(self.first)?).ok()?;
        let unreported = self.unreported.get_mut(index)?;
        if !std::mem::take(unreported) {
            return None;
        }
        self.waiting -= 1;
        Some(index)
    }

    fn refuse(&mut self, index: usize) {
        self.refused.extend(self.rows.get(index));
    }
}

fn row_of(stage: Stage, letter: &Letter, at: Position) -> DeadLetter {
    let post = match letter.kind {
        TopicKind::Posts => letter.subject.parse().ok().map(PostId),
        TopicKind::Follows => None,
    };
    DeadLetter {
        stage,
        event: Some(letter.event),
        post,
        topic: letter.topic.to_string(),
        partition: at.partition,
        offset: at.offset,
        reason: letter.reason.as_str().to_owned(),
    }
}
