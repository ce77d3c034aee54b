//! Records on their way to and from the broker, and the envelope in their headers.
//!
//! Promise: a record read and produced again (a dead letter, a redrive) has the same key, payload
//! and headers, byte for byte, null or not.

use std::{borrow::Cow, str};

use bytes::Bytes;
use events::{DecodeError, Event, EventId, envelope, route};
use rdkafka::message::{BorrowedMessage, Headers as _, Message as _};

/// One header. Names may repeat; the first one with a name counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// The name.
    pub name: Cow<'static, str>,
    /// The value; `None` is Kafka's null.
    pub value: Option<Bytes>,
}

impl Header {
    /// A header with a text value.
    pub fn text(name: impl Into<Cow<'static, str>>, value: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            value: Some(Bytes::from(value.into())),
        }
    }
}

/// A record to be produced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The topic.
    pub topic: String,
    /// The key; `None` is Kafka's null and goes to any partition.
    pub key: Option<Bytes>,
    /// The payload; `None` is Kafka's null.
    pub payload: Option<Bytes>,
    /// The headers, in order.
    pub headers: Vec<Header>,
}

impl Record {
    /// Bytes that this record adds to a request, about; for limits in flight.
    pub fn size(&self) -> usize {
        let headers: usize = self
            .headers
            .iter()
            .map(|h| h.name.len() + h.value.as_ref().map_or(0, Bytes::len) + 4)
            .sum();
        self.key.as_ref().map_or(0, Bytes::len)
            + self.payload.as_ref().map_or(0, Bytes::len)
            + headers
            + 32
    }
}

/// What an outbox row became, as the relay and the sweep produce it.
impl From<route::Record> for Record {
    fn from(routed: route::Record) -> Self {
        Self {
            topic: routed.topic.to_string(),
            key: Some(routed.key),
            payload: Some(routed.payload),
            headers: named(routed.headers),
        }
    }
}

/// The dead letter of an outbox row that can never be produced.
impl From<route::Letter> for Record {
    fn from(letter: route::Letter) -> Self {
        Self {
            topic: letter.topic.to_string(),
            key: letter.key,
            payload: letter.payload,
            headers: named(letter.headers),
        }
    }
}

fn named(headers: route::Headers) -> Vec<Header> {
    headers
        .into_iter()
        .map(|(name, value)| Header {
            name: name.into(),
            value: Some(value),
        })
        .collect()
}

/// A record as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Consumed {
    /// The topic.
    pub topic: String,
    /// The kafka partition.
    pub partition: i32,
    /// The offset.
    pub offset: i64,
    /// The broker's append time, milliseconds since 1970; 0 if it has none.
    pub append_ms: i64,
    /// The key.
    pub key: Option<Bytes>,
    /// The payload.
    pub payload: Option<Bytes>,
    /// The headers, in order.
    pub headers: Vec<Header>,
}

impl Consumed {
    /// The first header of this name, if it is there and is text.
    pub fn header(&self, name: &str) -> Option<&str> {
        let header = self.headers.iter().find(|header| header.name == name)?;
        str::from_utf8(header.value.as_ref()?).ok()
    }

    /// The envelope in the headers.
    ///
    /// # Errors
    /// [`EnvelopeError`] when a header that every event has is missing or malformed.
    pub fn envelope(&self) -> Result<Envelope<'_>, EnvelopeError> {
        let need = |name: &'static str| {
            self.header(name)
                .ok_or(EnvelopeError::Missing { header: name })
        };
        let id = need(envelope::ID)?;
        let event_id =
            envelope::event_id(id).map_err(|source| EnvelopeError::EventId { source })?;
        let path = match self.header(envelope::PATH) {
            Some(text) if text == envelope::Path::Sweep.as_str() => envelope::Path::Sweep,
            _ => envelope::Path::Cdc,
        };
        Ok(Envelope {
            event_id,
            event_type: need(envelope::TYPE)?,
            source: need(envelope::SOURCE)?,
            subject: self.header(envelope::SUBJECT),
            traceparent: self.header(envelope::TRACEPARENT),
            path,
        })
    }

    /// The event in the payload, by the type in the headers.
    ///
    /// # Errors
    /// [`EnvelopeError`] when the headers, the type or the payload are not an event.
    pub fn event(&self) -> Result<(EventId, Event), EnvelopeError> {
        let envelope = self.envelope()?;
        let payload = self.payload.as_ref().ok_or(EnvelopeError::NullPayload)?;
        let event = Event::decode(envelope.event_type, payload)
            .map_err(|source| EnvelopeError::Event { source })?;
        Ok((envelope.event_id, event))
    }

    pub(crate) fn read(message: &BorrowedMessage<'_>) -> Self {
        let headers = message.headers().map_or_else(Vec::new, |headers| {
            headers
                .iter()
                .map(|header| Header {
                    name: Cow::Owned(header.key.to_owned()),
                    value: header.value.map(Bytes::copy_from_slice),
                })
                .collect()
        });
        Self {
            topic: message.topic().to_owned(),
            partition: message.partition(),
            offset: message.offset(),
            append_ms: message.timestamp().to_millis().unwrap_or(0),
            key: message.key().map(Bytes::copy_from_slice),
            payload: message.payload().map(Bytes::copy_from_slice),
            headers,
        }
    }
}

/// What the headers of an event say. See `events::envelope` for the names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Envelope<'a> {
    /// The outbox id.
    pub event_id: EventId,
    /// `ce_type`, not yet looked up.
    pub event_type: &'a str,
    /// `ce_source`: database and epoch.
    pub source: &'a str,
    /// `ce_subject`.
    pub subject: Option<&'a str>,
    /// W3C trace context.
    pub traceparent: Option<&'a str>,
    /// The path it came by; the relay's if the header is missing.
    pub path: envelope::Path,
}

/// Why a record is not an event. Always the record's fault.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EnvelopeError {
    /// A header is missing, null or not text.
    #[error("header {header} is missing or not text")]
    Missing {
        /// Its name.
        header: &'static str,
    },
    /// `ce_id` is not an outbox id.
    #[error("reading header ce_id")]
    EventId {
        /// What is wrong with the number.
        #[source]
        source: std::num::ParseIntError,
    },
    /// The payload is null.
    #[error("payload is null")]
    NullPayload,
    /// The type is unknown or the payload malformed.
    #[error("decoding the payload")]
    Event {
        /// What is wrong.
        #[source]
        source: DecodeError,
    },
}

impl EnvelopeError {
    /// The stable code for `dlq-reason`.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Missing { .. } => "header_missing",
            Self::EventId { .. } => "event_id_malformed",
            Self::NullPayload => "payload_null",
            Self::Event {
                source: DecodeError::UnknownType { .. },
            } => "type_unknown",
            Self::Event { .. } => "payload_malformed",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(headers: &[(&'static str, &str)], payload: Option<&str>) -> Consumed {
        Consumed {
            topic: "t".into(),
            partition: 0,
            offset: 1,
            append_ms: 0,
            key: Some(Bytes::from_static(b"7")),
            payload: payload.map(|p| Bytes::from(p.to_owned())),
            headers: headers
                .iter()
                .map(|(name, value)| Header::text(*name, *value))
                .collect(),
        }
    }

    #[test]
    fn each_defect_has_its_reason() {
        let whole = [
            ("ce_id", "12"),
            ("ce_type", "tideline.post.created.v1"),
            ("ce_source", "/tideline/t/outbox/1"),
        ];
        let good = r#"{"post_id":"1","author_id":"2","post_us":3}"#;
        type Case<'a> = (&'a [(&'static str, &'static str)], Option<&'a str>, &'a str);
        let cases: [Case<'_>; 6] = [
            (&whole[1..], Some(good), "header_missing"),
            (&whole[..1], Some(good), "header_missing"),
            (
                &[("ce_id", "x"), whole[1], whole[2]],
                Some(good),
                "event_id_malformed",
            ),
            (&whole, None, "payload_null"),
            (&whole, Some("{"), "payload_malformed"),
            (
                &[whole[0], ("ce_type", "other.v1"), whole[2]],
                Some(good),
                "type_unknown",
            ),
        ];
        for (headers, payload, reason) in cases {
            let error = record(headers, payload).event().err().map(|e| e.reason());
            assert_eq!(error, Some(reason));
        }
        let (id, event) = record(&whole, Some(good))
            .event()
            .expect("a whole record decodes");
        assert_eq!(id, EventId(12));
        assert_eq!(event.event_type(), events::EventType::PostCreatedV1);
    }
}
