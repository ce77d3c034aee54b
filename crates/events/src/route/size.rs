//! How many bytes a record takes in Kafka.
//!
//! The broker's `max.message.bytes` bounds a whole record batch. A record is judged as the only
//! one of an uncompressed batch: what fits so always fits (Kafka protocol, "Record Batch",
//! message format 2; `docs/` of Apache Kafka, section 5.3).

use bytes::Bytes;

/// Batch header up to and with the record count.
const BATCH: usize = 61;

/// Bytes of an uncompressed batch that holds only this record.
pub fn batch_bytes(
    key: Option<&Bytes>,
    payload: Option<&Bytes>,
    headers: &[(&'static str, Bytes)],
) -> usize {
    let field = |length: usize| varint(length) + length;
    // A null key or value is a length of -1: one byte.
    let optional = |bytes: Option<&Bytes>| bytes.map_or(1, |bytes| field(bytes.len()));
    let headers_bytes: usize = headers
        .iter()
        .map(|(name, value)| field(name.len()) + field(value.len()))
        .sum();
    // Attributes, timestamp delta and offset delta take one byte each for a record alone.
    let record = 3 + optional(key) + optional(payload) + varint(headers.len()) + headers_bytes;
    BATCH + field(record)
}

/// Length of a zigzag varint of a number that is not negative.
const fn varint(number: usize) -> usize {
    let mut rest = number << 1;
    let mut length = 1;
    while rest >= 0x80 {
        rest >>= 7;
        length += 1;
    }
    length
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_follow_the_format() {
        assert_eq!([0, 63, 64, 8_191, 8_192].map(varint), [1, 1, 2, 2, 3]);
        // Record length 1, three fixed bytes, key 1, value 1, header count 1.
        assert_eq!(batch_bytes(None, None, &[]), 61 + 1 + 6);
        let one = Bytes::from_static(b"1");
        assert_eq!(
            batch_bytes(Some(&one), Some(&one), &[("a", one.clone())]),
            61 + 1 + 3 + 2 + 2 + 1 + 4
        );
    }
}
