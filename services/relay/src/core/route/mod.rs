//! Outbox row → topic, key, headers, payload; or a dead letter with its reason.
//!
//! Owns rule 8: columns are found by name in the latest description of the row's own table, a
//! missing required column is a schema error, and a row that can never be produced becomes a
//! dead letter. Keys and payloads are passed as the bytes that Postgres sent, never parsed (C47).
//!
//! The topic follows the event type by the registry of `events`. A row whose type is unknown, or
//! does not belong to its `aggregatetype`, goes to the dead letters of the topic of its
//! `aggregatetype`, and to those of the posts topic when that is unknown too.

use std::sync::Arc;

use bytes::Bytes;
use events::{EventId, EventType, Namespace, envelope, registry, topic::TopicKind};
use pgoutput::{Cell, Relation, Tuple};

use crate::core::txn::Place;

mod columns;
mod size;
mod time;

pub use columns::{Columns, MissingColumn};
pub use size::batch_bytes;
use time::rfc3339;

/// Header of a dead letter: which step gave up.
pub const DLQ_STEP: &str = "dlq-step";
/// Header of a dead letter: see [`DeadReason::as_str`].
pub const DLQ_REASON: &str = "dlq-reason";
/// Header of a dead letter: how often the record was tried.
pub const DLQ_ATTEMPTS: &str = "dlq-attempts";
/// Header of a dead letter: the topic that the record was meant for.
pub const DLQ_ORIGINAL_TOPIC: &str = "dlq-original-topic";
/// Header of a dead letter: bytes that the record would have taken in Kafka.
pub const DLQ_SIZE: &str = "dlq-original-size";

/// Headers in the order in which they are produced.
pub type Headers = Vec<(&'static str, Bytes)>;

/// A record to produce.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Topic.
    pub topic: Arc<str>,
    /// Kafka partitions by it.
    pub key: Bytes,
    /// The outbox payload, byte for byte.
    pub payload: Bytes,
    /// The envelope.
    pub headers: Headers,
    /// What is remembered of it while it is in flight.
    pub summary: Summary,
}

/// What a dead letter has to say about a record without its payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// The row.
    pub event: EventId,
    /// Its topic kind.
    pub kind: TopicKind,
    /// `ce_type`, as found in the row.
    pub event_type: Box<str>,
    /// `ce_subject`.
    pub subject: Box<str>,
    /// The key, if there is one.
    pub key: Option<Box<[u8]>>,
    /// What the record takes in Kafka, bytes.
    pub size: usize,
}

/// A record for the dead-letter topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Letter {
    /// Dead-letter topic.
    pub topic: Arc<str>,
    /// The key, if the row had one.
    pub key: Option<Bytes>,
    /// The payload; absent when it is what could not be produced, or was null.
    pub payload: Option<Bytes>,
    /// What is known of the envelope, and why this is a dead letter.
    pub headers: Headers,
    /// The row.
    pub event: EventId,
    /// Its `aggregateid`, which is the post's id on the posts topic.
    pub subject: Box<str>,
    /// The topic it was meant for.
    pub kind: TopicKind,
    /// Why.
    pub reason: DeadReason,
}

/// Why a row can never be produced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DeadReason {
    /// Over the topic's limit.
    Oversize,
    /// The key is null or empty: Kafka would spread such records over partitions (C48).
    NoKey,
    /// The payload is null (C45).
    NoPayload,
    /// The registry has no such event type.
    UnknownType,
    /// The event type does not belong to the row's `aggregatetype`.
    WrongAggregate,
    /// `created_at` has no RFC 3339 form.
    BadTime,
    /// The broker refused the record for good.
    Refused,
}

impl DeadReason {
    /// Every reason.
    pub const ALL: [Self; 7] = [
        Self::Oversize,
        Self::NoKey,
        Self::NoPayload,
        Self::UnknownType,
        Self::WrongAggregate,
        Self::BadTime,
        Self::Refused,
    ];

    /// The word in headers, rows and metric labels.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Oversize => "oversize",
            Self::NoKey => "no_key",
            Self::NoPayload => "no_payload",
            Self::UnknownType => "unknown_type",
            Self::WrongAggregate => "wrong_aggregate",
            Self::BadTime => "bad_time",
            Self::Refused => "refused",
        }
    }
}

/// What became of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Routed {
    /// To be produced.
    Record(Record),
    /// To be kept apart.
    Letter(Letter),
}

/// A row whose cells do not have the types that the outbox promises: the table has changed.
#[derive(Debug, thiserror::Error)]
#[error("reading column {column} of an outbox row")]
pub struct BadCell {
    column: &'static str,
    #[source]
    source: pgoutput::ValueError,
}

/// Turns rows into records.
#[derive(Clone, Debug)]
pub struct Router {
    source: Bytes,
    topics: [Topic; 2],
}

#[derive(Clone, Debug)]
struct Topic {
    kind: TopicKind,
    name: Arc<str>,
    dead_letters: Arc<str>,
    max_bytes: usize,
}

impl Router {
    /// A router for one deployment. `source` is `ce_source`; `max_bytes` says what the broker
    /// takes as the largest batch of a topic.
    pub fn new(
        namespace: &Namespace,
        source: &str,
        max_bytes: impl Fn(TopicKind) -> usize,
    ) -> Self {
        let topics = TopicKind::ALL.map(|kind| Topic {
            kind,
            name: namespace.topic(kind).into(),
            dead_letters: namespace.relay_dead_letters(kind).into(),
            max_bytes: max_bytes(kind),
        });
        Self {
            source: Bytes::copy_from_slice(source.as_bytes()),
            topics,
        }
    }

    /// Routes one row.
    ///
    /// # Errors
    /// [`BadCell`] when the table is not what the relay was built for.
    pub fn route(&self, columns: &Columns, row: &Tuple, place: Place) -> Result<Routed, BadCell> {
        let row = Row::read(columns, row)?;
        let event_type = EventType::from_name(row.type_name).map(EventType::entry);
        let by_aggregate = registry::entries()
            .iter()
            .find(|entry| entry.aggregate == row.aggregate);
        let known = event_type.or(by_aggregate);
        let topic = self.topic(known.map_or(TopicKind::Posts, |entry| entry.topic));
        let mut headers = row.headers(&self.source);
        let time = rfc3339(row.created_at);
        if let Some(time) = &time {
            headers.push((envelope::TIME, Bytes::copy_from_slice(time.as_bytes())));
        }
        headers.push((
            envelope::SEQUENCE,
            envelope::sequence(place.lsn.as_u64(), place.index).into(),
        ));
        headers.push((envelope::COMMIT_LSN, place.lsn.to_string().into()));

        let key = row.key.filter(|key| !key.is_empty());
        let size = batch_bytes(key, row.payload, &headers);
        let reason = match (event_type, key, row.payload) {
            (None, _, _) => Some(DeadReason::UnknownType),
            (Some(entry), _, _) if entry.aggregate != row.aggregate => {
                Some(DeadReason::WrongAggregate)
            }
            (_, None, _) => Some(DeadReason::NoKey),
            (_, _, None) => Some(DeadReason::NoPayload),
            _ if time.is_none() => Some(DeadReason::BadTime),
            _ if size > topic.max_bytes => Some(DeadReason::Oversize),
            _ => None,
        };
        let summary = row.summary(topic.kind, key, size);
        match (reason, key, row.payload) {
            (None, Some(key), Some(payload)) => Ok(Routed::Record(Record {
                topic: Arc::clone(&topic.name),
                key: key.clone(),
                payload: payload.clone(),
                headers,
                summary,
            })),
            (reason, _, payload) => {
                let reason = reason.unwrap_or(DeadReason::NoPayload);
                Ok(Routed::Letter(self.letter(
                    &summary,
                    headers,
                    payload.cloned(),
                    reason,
                )))
            }
        }
    }

    /// The dead letter of a record that the broker refused for good; its payload stays in the
    /// outbox.
    pub fn refused(&self, summary: &Summary) -> Letter {
        let text = |text: &str| Bytes::copy_from_slice(text.as_bytes());
        let headers = vec![
            (
                envelope::SPEC_VERSION,
                Bytes::from_static(envelope::SPEC_VERSION_1_0.as_bytes()),
            ),
            (envelope::ID, summary.event.to_string().into()),
            (envelope::SOURCE, self.source.clone()),
            (envelope::TYPE, text(&summary.event_type)),
            (envelope::SUBJECT, text(&summary.subject)),
        ];
        self.letter(summary, headers, None, DeadReason::Refused)
    }

    fn letter(
        &self,
        of: &Summary,
        mut headers: Headers,
        payload: Option<Bytes>,
        reason: DeadReason,
    ) -> Letter {
        let topic = self.topic(of.kind);
        headers.extend([
            (DLQ_STEP, Bytes::from_static(b"relay")),
            (DLQ_REASON, Bytes::from_static(reason.as_str().as_bytes())),
            (DLQ_ATTEMPTS, Bytes::from_static(b"1")),
            (
                DLQ_ORIGINAL_TOPIC,
                Bytes::copy_from_slice(topic.name.as_bytes()),
            ),
            (DLQ_SIZE, of.size.to_string().into()),
        ]);
        let key = of.key.as_deref().map(Bytes::copy_from_slice);
        let fits =
            |payload: &Bytes| batch_bytes(key.as_ref(), Some(payload), &headers) <= topic.max_bytes;
        Letter {
            topic: Arc::clone(&topic.dead_letters),
            payload: payload.filter(fits),
            key,
            headers,
            event: of.event,
            subject: of.subject.clone(),
            kind: of.kind,
            reason,
        }
    }

    fn topic(&self, kind: TopicKind) -> &Topic {
        let [first, second] = &self.topics;
        if first.kind == kind { first } else { second }
    }
}

impl Record {
    /// Its weight against the limit of bytes in flight.
    pub fn bytes(&self) -> usize {
        self.summary.size
    }
}

impl Letter {
    /// Its weight against the limit of bytes in flight.
    pub fn bytes(&self) -> usize {
        batch_bytes(self.key.as_ref(), self.payload.as_ref(), &self.headers)
    }
}

/// The cells of a row, read but not judged.
struct Row<'a> {
    event: EventId,
    aggregate: &'a str,
    subject: &'a str,
    type_name: &'a str,
    created_at: &'a str,
    key: Option<&'a Bytes>,
    payload: Option<&'a Bytes>,
    traceparent: Option<&'a Bytes>,
}

impl<'a> Row<'a> {
    fn read(columns: &Columns, row: &'a Tuple) -> Result<Self, BadCell> {
        let cell = |position: usize| row.get(position).unwrap_or(&Cell::Null);
        let text = |position, column| {
            cell(position)
                .as_str()
                .map_err(|source| BadCell { column, source })
        };
        let id = cell(columns.id).as_i64().map_err(|source| BadCell {
            column: "id",
            source,
        })?;
        Ok(Self {
            event: EventId(id),
            aggregate: text(columns.aggregate, "aggregatetype")?,
            subject: text(columns.subject, "aggregateid")?,
            type_name: text(columns.type_name, "type")?,
            created_at: text(columns.created_at, "created_at")?,
            key: cell(columns.key).bytes(),
            payload: cell(columns.payload).bytes(),
            traceparent: columns
                .traceparent
                .and_then(|position| cell(position).bytes()),
        })
    }

    fn headers(&self, source: &Bytes) -> Headers {
        let text = |text: &str| Bytes::copy_from_slice(text.as_bytes());
        let mut headers = Vec::with_capacity(16);
        headers.extend([
            (
                envelope::SPEC_VERSION,
                Bytes::from_static(envelope::SPEC_VERSION_1_0.as_bytes()),
            ),
            (envelope::ID, self.event.to_string().into()),
            (envelope::SOURCE, source.clone()),
            (envelope::TYPE, text(self.type_name)),
            (envelope::SUBJECT, text(self.subject)),
            (
                envelope::CONTENT_TYPE,
                Bytes::from_static(envelope::JSON.as_bytes()),
            ),
            (
                envelope::PATH,
                Bytes::from_static(envelope::Path::Cdc.as_str().as_bytes()),
            ),
            (envelope::ATTEMPT, Bytes::from_static(b"1")),
        ]);
        if let Some(traceparent) = self.traceparent.filter(|bytes| !bytes.is_empty()) {
            headers.push((envelope::TRACEPARENT, traceparent.clone()));
        }
        headers
    }

    fn summary(&self, kind: TopicKind, key: Option<&Bytes>, size: usize) -> Summary {
        Summary {
            event: self.event,
            kind,
            event_type: self.type_name.into(),
            subject: self.subject.into(),
            key: key.map(|key| key.as_ref().into()),
            size,
        }
    }
}

/// Whether a described table is the outbox.
pub fn is_outbox(relation: &Relation) -> bool {
    relation.schema == "tideline" && relation.name == "outbox"
}

#[cfg(test)]
mod tests;
