//! Input that is wrong on purpose: an error or a message, never a panic, and
//! never more memory than the input justifies.

use bytes::{BufMut, Bytes, BytesMut};
use pgoutput::{CopyData, DecodeError, Message};
use proptest::prelude::*;

use crate::golden;

#[test]
fn every_truncation_of_every_golden_is_an_error() {
    for (name, payloads) in golden::streams() {
        for payload in payloads {
            for length in 0..payload.len() {
                let cut = CopyData::decode(payload.slice(..length));
                // XLogData ends where the payload ends, so only its header counts.
                let header = if payload.first() == Some(&b'w') {
                    25
                } else {
                    payload.len()
                };
                assert_eq!(
                    cut.is_err(),
                    length < header,
                    "{name}: {length} of {payload:?}"
                );
            }
            let CopyData::XLog(data) = CopyData::decode(payload).unwrap() else {
                continue;
            };
            for length in 0..data.data.len() {
                let error = Message::decode(data.data.slice(..length)).unwrap_err();
                assert!(error.offset() <= length, "{name}: {error}");
                assert!(!error.field().is_empty());
            }
        }
    }
}

#[test]
fn every_single_flipped_bit_of_every_golden_is_survived() {
    for (_, payloads) in golden::streams() {
        for payload in payloads {
            for bit in 0..payload.len() * 8 {
                let mut flipped = BytesMut::from(&payload[..]);
                flipped[bit / 8] ^= 1 << (bit % 8);
                decode(flipped.freeze());
            }
        }
    }
}

#[test]
fn errors_name_the_field_and_its_place() {
    let error = Message::decode(Bytes::from_static(b"I\0\0\0\x07N\0\x01t\0\0\0\x09short"));
    assert_eq!(
        error,
        Err(DecodeError::Truncated {
            field: "text cell",
            offset: 13,
            needed: 9,
            left: 5
        })
    );
    assert_eq!(
        error.unwrap_err().to_string(),
        "payload ends inside text cell at byte 13: 9 bytes needed, 5 left"
    );
    let error = Message::decode(Bytes::from_static(b"I\0\0\0\x07X"));
    assert_eq!(
        error,
        Err(DecodeError::Invalid {
            field: "insert tuple kind",
            offset: 5,
            value: 88
        })
    );
    let error = Message::decode(Bytes::from_static(b"O\0\0\0\0\0\0\0\0\xff\0"));
    assert!(matches!(
        error,
        Err(DecodeError::NotUtf8 {
            field: "origin name",
            offset: 9,
            ..
        })
    ));
}

/// The largest counts and lengths the fields can say, with nothing behind them.
/// Reserving what they announce would take up to 2 GiB each.
#[test]
fn huge_counts_without_bytes_are_refused() {
    let relation = b"R\0\0\0\x01s\0t\0d\x7f\xff";
    let insert = b"I\0\0\0\x01N\x7f\xff";
    let cell = b"I\0\0\0\x01N\0\x01t\x7f\xff\xff\xff";
    let truncate = b"T\x7f\xff\xff\xff\0";
    let logical = b"M\0\0\0\0\0\0\0\0\0p\0\x7f\xff\xff\xff";
    for wire in [&relation[..], insert, cell, truncate, logical] {
        let error = Message::decode(Bytes::from_static(wire)).unwrap_err();
        assert!(
            matches!(error, DecodeError::Truncated { left: 0, .. }),
            "{error}"
        );
    }
    for wire in [&b"I\0\0\0\x01N\x80\0"[..], b"T\xff\xff\xff\xff\0"] {
        let error = Message::decode(Bytes::from_static(wire)).unwrap_err();
        assert!(matches!(error, DecodeError::Invalid { .. }), "{error}");
    }
}

/// Streamed and two-phase transactions are never asked for; a server that sends
/// them anyway must not stop the relay at the decoder.
#[test]
fn messages_of_later_protocol_versions_are_unknown() {
    for tag in *b"SEcAbPKrp" {
        let mut wire = BytesMut::new();
        wire.put_u8(tag);
        wire.put_slice(b"\0\0\0\x07\x01");
        let message = Message::decode(wire.freeze()).unwrap();
        let body = Bytes::from_static(b"\0\0\0\x07\x01");
        assert_eq!(message, Message::Unknown { tag, body });
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn random_bytes_are_survived(wire in any::<Vec<u8>>()) {
        decode(wire.into());
    }

    #[test]
    fn random_bytes_behind_a_known_tag_are_survived(
        tag in prop::sample::select(b"BCORYIUDTM".to_vec()),
        wire in any::<Vec<u8>>(),
    ) {
        let mut message = BytesMut::from(&[tag][..]);
        message.extend_from_slice(&wire);
        let _ = Message::decode(message.freeze());
    }

    #[test]
    fn random_damage_to_goldens_is_survived(
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        stream in any::<prop::sample::Index>(),
        payload in any::<prop::sample::Index>(),
    ) {
        let streams = golden::streams();
        let (_, payloads) = stream.get(&streams);
        let mut wire = BytesMut::from(&payload.get(payloads)[..]);
        for (at, byte) in damage {
            let at = at.index(wire.len());
            wire[at] = byte;
        }
        decode(wire.freeze());
    }
}

fn decode(payload: Bytes) {
    let _ = Message::decode(payload.clone());
    if let Ok(CopyData::XLog(data)) = CopyData::decode(payload) {
        let _ = Message::decode(data.data);
    }
}
