//! Outbox row → topic, key, headers, payload; or a dead letter with its reason.
//!
//! One place for the two paths that publish, so that a record of the sweep differs from the
//! relay's only in what [`Via`] says: path and attempt, and the commit's position, which the sweep
//! does not know. Keys and payloads are passed as bytes, never parsed (C47).
//!
//! The topic follows the event type by the [`registry`]. A row whose type is unknown, or does not
//! belong to its `aggregatetype`, goes to the dead letters of the topic of its `aggregatetype`,
//! and to those of the posts topic when that is unknown too.

use std::sync::Arc;

use bytes::Bytes;

use crate::{EventId, EventType, Namespace, envelope, registry, topic::TopicKind};

mod letter;
mod size;
mod time;

pub use letter::{
    DLQ_ATTEMPTS, DLQ_ORIGINAL_TOPIC, DLQ_REASON, DLQ_SIZE, DLQ_STEP, DeadReason, Letter,
};
pub use size::batch_bytes;
pub use time::rfc3339;

/// Headers in the order in which they are produced.
pub type Headers = Vec<(&'static str, Bytes)>;

/// The cells of an outbox row, read but not judged. None is a null.
#[derive(Clone, Copy, Debug)]
pub struct OutboxRow<'a> {
    /// Column `id`.
    pub event: EventId,
    /// Column `aggregatetype`.
    pub aggregate: &'a str,
    /// Column `aggregateid`.
    pub subject: &'a str,
    /// Column `type`.
    pub type_name: &'a str,
    /// Column `created_at` as Postgres prints it: `2026-11-29 18:58:55.123456+00`.
    pub created_at: &'a str,
    /// Column `partition_key`.
    pub key: Option<&'a Bytes>,
    /// Column `payload`.
    pub payload: Option<&'a Bytes>,
    /// Column `traceparent`.
    pub traceparent: Option<&'a Bytes>,
}

/// The path by which a row is published, and what that path knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Via {
    /// The relay, from the replication stream.
    Relay {
        /// Position of the commit record of its transaction.
        commit_lsn: u64,
        /// Number of the row among the outbox rows of its transaction, from 0.
        index: u32,
    },
    /// The sweep, from the table.
    Sweep {
        /// How often the sweep has published this event, this time included.
        attempt: u32,
    },
}

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
    /// How it came.
    pub via: Via,
}

/// What became of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Routed {
    /// To be produced.
    Record(Record),
    /// To be kept apart.
    Letter(Letter),
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

    /// Another epoch has begun: `source` is `ce_source` from now on.
    pub fn set_source(&mut self, source: &str) {
        self.source = Bytes::copy_from_slice(source.as_bytes());
    }

    /// Routes one row.
    pub fn route(&self, row: &OutboxRow<'_>, via: Via) -> Routed {
        let event_type = EventType::from_name(row.type_name).map(EventType::entry);
        let by_aggregate = registry::entries()
            .iter()
            .find(|entry| entry.aggregate == row.aggregate);
        let known = event_type.or(by_aggregate);
        let topic = self.topic(known.map_or(TopicKind::Posts, |entry| entry.topic));
        let mut headers = row.headers(&self.source, via);
        let time = rfc3339(row.created_at);
        if let Some(time) = &time {
            headers.push((envelope::TIME, Bytes::copy_from_slice(time.as_bytes())));
        }
        if let Via::Relay { commit_lsn, index } = via {
            headers.push((
                envelope::SEQUENCE,
                envelope::sequence(commit_lsn, index).into(),
            ));
            headers.push((envelope::COMMIT_LSN, envelope::lsn(commit_lsn).into()));
        }

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
        let summary = row.summary(topic.kind, key, size, via);
        match (reason, key, row.payload) {
            (None, Some(key), Some(payload)) => Routed::Record(Record {
                topic: Arc::clone(&topic.name),
                key: key.clone(),
                payload: payload.clone(),
                headers,
                summary,
            }),
            (reason, _, payload) => {
                let reason = reason.unwrap_or(DeadReason::NoPayload);
                Routed::Letter(self.letter(&summary, headers, payload.cloned(), reason))
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
        headers: Headers,
        payload: Option<Bytes>,
        reason: DeadReason,
    ) -> Letter {
        let topic = self.topic(of.kind);
        Letter::new(of, topic, headers, payload, reason)
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

impl Via {
    const fn path(self) -> envelope::Path {
        match self {
            Self::Relay { .. } => envelope::Path::Cdc,
            Self::Sweep { .. } => envelope::Path::Sweep,
        }
    }

    const fn attempt(self) -> u32 {
        match self {
            Self::Relay { .. } => 1,
            Self::Sweep { attempt } => attempt,
        }
    }
}

impl OutboxRow<'_> {
    fn headers(&self, source: &Bytes, via: Via) -> Headers {
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
                Bytes::from_static(via.path().as_str().as_bytes()),
            ),
            (envelope::ATTEMPT, via.attempt().to_string().into()),
        ]);
        if let Some(traceparent) = self.traceparent.filter(|bytes| !bytes.is_empty()) {
            headers.push((envelope::TRACEPARENT, traceparent.clone()));
        }
        headers
    }

    fn summary(&self, kind: TopicKind, key: Option<&Bytes>, size: usize, via: Via) -> Summary {
        Summary {
            event: self.event,
            kind,
            event_type: self.type_name.into(),
            subject: self.subject.into(),
            key: key.map(|key| key.as_ref().into()),
            size,
            via,
        }
    }
}

#[cfg(test)]
mod tests;
