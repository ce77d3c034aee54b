//! Rows into Kafka: the record the relay would have made, or the dead letter it would have made.
//!
//! Promise: returns after every record is acknowledged, or after nothing of what failed is left
//! with the client, so that a record is not written long after somebody else has sent it again.

use std::time::Duration;

use bytes::Bytes;
use database::{Pool, claim::ClaimRow, dead_letters::DeadLetter};
use events::{
    Class, EventId, PostId, Stage, envelope,
    route::{Letter, OutboxRow, Routed, Router, Via},
    topic::TopicKind,
};
use futures::future::join_all;
use kafka::{KafkaConfig, Producer, producer::Position};

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
    /// In the dead-letter topic, with a row each.
    pub(crate) letters: Vec<EventId>,
}

/// The producer of one stage.
#[derive(Debug)]
pub(crate) struct Publisher {
    kafka: KafkaConfig,
    producer: Producer,
    router: Router,
    database: String,
    epoch: i64,
    pool: Pool,
}

impl Publisher {
    /// A producer; `database` is the name that `ce_source` carries.
    pub(crate) fn new(
        kafka: KafkaConfig,
        max_bytes: impl Fn(TopicKind) -> usize,
        database: String,
        pool: Pool,
    ) -> Result<Self, SweepError> {
        let (producer, _no_tags) = Producer::new(&kafka, CLIENT_ID)?;
        let router = Router::new(&kafka.namespace, "", max_bytes);
        Ok(Self {
            kafka,
            producer,
            router,
            database,
            epoch: 0,
            pool,
        })
    }

    /// Sends rows with the attempt of each.
    pub(crate) async fn publish(
        &mut self,
        stage: Stage,
        epoch: i64,
        rows: &[(&ClaimRow, u32)],
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
        &self,
        stage: Stage,
        rows: &[(&ClaimRow, u32)],
    ) -> Result<Published, SweepError> {
        let mut records = Vec::new();
        let mut letters = Vec::new();
        for (row, attempt) in rows {
            match self.route(row, *attempt) {
                Routed::Record(record) => records.push(record),
                Routed::Letter(letter) => letters.push(letter),
            }
        }
        let sends = records.iter().map(|record| {
            self.producer
                .send(record.clone().into(), ACKNOWLEDGED_WITHIN)
        });
        let mut published = Published::default();
        let mut failed = None;
        for (record, outcome) in records.iter().zip(join_all(sends).await) {
            let event = record.summary.event;
            match outcome {
                Ok(_) => published.sent.push(event),
                // Only this record can never be taken.
                Err(error) if error.class() == Class::Record => {
                    letters.push(self.router.refused(&record.summary));
                }
                Err(source) => failed = Some(SweepError::Produce { event, source }),
            }
        }
        if let Some(error) = failed {
            return Err(error);
        }
        for letter in letters {
            let event = letter.event;
            self.dead_letter(stage, letter).await?;
            published.letters.push(event);
        }
        Ok(published)
    }

    fn route(&self, row: &ClaimRow, attempt: u32) -> Routed {
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
        self.router.route(&outbox, Via::Sweep { attempt })
    }

    /// The letter into its topic, then the row that accounts for the event: the order that keeps
    /// an open dead letter from standing for a record that nobody has.
    async fn dead_letter(&self, stage: Stage, letter: Letter) -> Result<(), SweepError> {
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
        let row = row_of(stage, &letter, position);
        let client = self.pool.get().await?;
        database::dead_letters::record(&client, &row).await?;
        Ok(())
    }

    /// A new client in place of one that holds records of which nobody knows what became.
    async fn renew(&mut self) -> Result<(), SweepError> {
        let (producer, _no_tags) = Producer::new(&self.kafka, CLIENT_ID)?;
        let old = std::mem::replace(&mut self.producer, producer);
        old.close().await;
        Ok(())
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
