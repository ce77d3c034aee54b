//! Rows that can never be produced: the letter that is kept instead, and its reason.

use std::sync::Arc;

use bytes::Bytes;

use super::{Headers, Summary, Topic, Via, batch_bytes};
use crate::{EventId, topic::TopicKind};

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

impl Letter {
    pub(super) fn new(
        of: &Summary,
        topic: &Topic,
        mut headers: Headers,
        payload: Option<Bytes>,
        reason: DeadReason,
    ) -> Self {
        let step: &[u8] = match of.via {
            Via::Relay { .. } => b"relay",
            Via::Sweep { .. } => b"sweep",
        };
        headers.extend([
            (DLQ_STEP, Bytes::from_static(step)),
            (DLQ_REASON, Bytes::from_static(reason.as_str().as_bytes())),
            (DLQ_ATTEMPTS, of.via.attempt().to_string().into()),
            (
                DLQ_ORIGINAL_TOPIC,
                Bytes::copy_from_slice(topic.name.as_bytes()),
            ),
            (DLQ_SIZE, of.size.to_string().into()),
        ]);
        let key = of.key.as_deref().map(Bytes::copy_from_slice);
        let fits =
            |payload: &Bytes| batch_bytes(key.as_ref(), Some(payload), &headers) <= topic.max_bytes;
        Self {
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

    /// Its weight against the limit of bytes in flight.
    pub fn bytes(&self) -> usize {
        batch_bytes(self.key.as_ref(), self.payload.as_ref(), &self.headers)
    }
}
