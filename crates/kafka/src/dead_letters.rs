//! Turns a record that can never be processed into a dead letter.
//!
//! Owns the header names. Does not own the order of steps, which is the service's: dead letter
//! acknowledged, row written, then the offset or position moves.
//!
//! Promise: key, payload and headers of the original are unchanged; ours are added behind them,
//! and those of an earlier round (a redriven dead letter that failed again) are replaced.

use crate::{Consumed, Header, Record};

/// The step that failed, `decode` for example.
pub const STEP: &str = "dlq-step";
/// Stable code of the reason.
pub const REASON: &str = "dlq-reason";
/// The error with its causes, as text.
pub const ERROR: &str = "dlq-error";
/// How often the record was tried.
pub const ATTEMPTS: &str = "dlq-attempts";
/// Where the record was read from.
pub const ORIGINAL_TOPIC: &str = "dlq-original-topic";
/// The kafka partition it was read from.
pub const ORIGINAL_PARTITION: &str = "dlq-original-partition";
/// Its offset there.
pub const ORIGINAL_OFFSET: &str = "dlq-original-offset";
/// The broker's timestamp there, milliseconds since 1970.
pub const ORIGINAL_TIMESTAMP: &str = "dlq-original-timestamp";
/// When it failed first, microseconds since 1970.
pub const FIRST_FAILED_AT: &str = "dlq-first-failed-at";

/// Longest error text that is carried, in bytes.
const MAX_ERROR: usize = 2_000;

/// Why a record is a dead letter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The step that failed.
    pub step: &'static str,
    /// Stable code of the reason.
    pub reason: String,
    /// The error with its causes.
    pub error: String,
    /// How often the record was tried.
    pub attempts: u32,
    /// When it failed first, microseconds since 1970.
    pub first_failed_us: i64,
}

/// The dead letter of a record that was read from Kafka.
pub fn of_consumed(dead_letter_topic: &str, original: &Consumed, failure: &Failure) -> Record {
    let record = Record {
        topic: dead_letter_topic.to_owned(),
        key: original.key.clone(),
        payload: original.payload.clone(),
        headers: original.headers.clone(),
    };
    let mut record = of_unsent(dead_letter_topic, record, &original.topic, failure);
    record.headers.extend([
        Header::text(ORIGINAL_PARTITION, original.partition.to_string()),
        Header::text(ORIGINAL_OFFSET, original.offset.to_string()),
        Header::text(ORIGINAL_TIMESTAMP, original.append_ms.to_string()),
    ]);
    record
}

/// The dead letter of a record that was meant for `topic` and never got there.
pub fn of_unsent(
    dead_letter_topic: &str,
    mut original: Record,
    topic: &str,
    failure: &Failure,
) -> Record {
    original
        .headers
        .retain(|header| !header.name.starts_with("dlq-"));
    original.headers.extend([
        Header::text(STEP, failure.step),
        Header::text(REASON, failure.reason.as_str()),
        Header::text(ERROR, cut(&failure.error)),
        Header::text(ATTEMPTS, failure.attempts.to_string()),
        Header::text(FIRST_FAILED_AT, failure.first_failed_us.to_string()),
        Header::text(ORIGINAL_TOPIC, topic),
    ]);
    original.topic = dead_letter_topic.to_owned();
    original
}

fn cut(text: &str) -> &str {
    let mut end = text.len().min(MAX_ERROR);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    #[test]
    fn original_is_kept_and_origin_is_told_apart() {
        let original = Consumed {
            topic: "a.posts.v1".into(),
            partition: 3,
            offset: 77,
            append_ms: 5,
            key: None,
            payload: Some(Bytes::from_static(b"\xff")),
            headers: vec![
                Header::text("ce_id", "1"),
                Header::text(REASON, "an earlier round"),
                Header {
                    name: "null".into(),
                    value: None,
                },
            ],
        };
        let failure = Failure {
            step: "decode",
            reason: "payload_malformed".into(),
            error: "ä".repeat(3_000),
            attempts: 1,
            first_failed_us: 9,
        };
        let letter = of_consumed("a.dlq", &original, &failure);
        assert_eq!(letter.key, None);
        assert_eq!(letter.payload, original.payload);
        let value = |name: &str| {
            let mut found = letter.headers.iter().filter(|h| h.name == name);
            let value = found
                .next()
                .and_then(|h| h.value.clone())
                .map(|v| String::from_utf8(v.to_vec()).expect("text"));
            assert!(found.next().is_none(), "{name} is there once");
            value
        };
        // Arroyo's Rust client once put the offset into the partition's header.
        assert_eq!(value(ORIGINAL_PARTITION).as_deref(), Some("3"));
        assert_eq!(value(ORIGINAL_OFFSET).as_deref(), Some("77"));
        assert_eq!(value(REASON).as_deref(), Some("payload_malformed"));
        assert_eq!(value("ce_id").as_deref(), Some("1"));
        assert!(
            letter
                .headers
                .iter()
                .any(|h| h.name == "null" && h.value.is_none())
        );
        assert!(value(ERROR).is_some_and(|text| text.len() <= MAX_ERROR));
    }
}
