//! What must hold for every message.

use bytes::{Bytes, BytesMut};
use pgoutput::{Cell, CopyData, Lsn, Message, StandbyStatus};
use proptest::prelude::*;

use crate::strategies::{copy_data, lsn, message, micros};

proptest! {
    #[test]
    fn messages_survive_a_round_trip(message in message()) {
        let mut wire = BytesMut::new();
        message.encode(&mut wire).unwrap();
        prop_assert_eq!(Message::decode(wire.freeze()).unwrap(), message);
    }

    #[test]
    fn payloads_survive_a_round_trip(payload in copy_data()) {
        let mut wire = BytesMut::new();
        payload.encode(&mut wire);
        prop_assert_eq!(CopyData::decode(wire.freeze()).unwrap(), payload);
    }

    #[test]
    fn statuses_survive_a_round_trip(
        written in lsn(), flushed in lsn(), applied in lsn(), sent_at in micros(),
        reply_requested in any::<bool>(),
    ) {
        let status = StandbyStatus { written, flushed, applied, sent_at, reply_requested };
        let mut wire = BytesMut::new();
        status.encode(&mut wire);
        prop_assert_eq!(wire.len(), 34);
        prop_assert_eq!(StandbyStatus::decode(wire.freeze()).unwrap(), status);
    }

    /// A later server may append fields.
    #[test]
    fn bytes_behind_the_last_field_are_ignored(message in message(), more in any::<[u8; 3]>()) {
        prop_assume!(!matches!(message, Message::Unknown { .. }));
        let mut wire = BytesMut::new();
        message.encode(&mut wire).unwrap();
        wire.extend_from_slice(&more);
        prop_assert_eq!(Message::decode(wire.freeze()).unwrap(), message);
    }

    #[test]
    fn positions_survive_their_text_form(lsn in lsn()) {
        prop_assert_eq!(lsn.to_string().parse::<Lsn>().unwrap(), lsn);
    }

    #[test]
    fn integers_survive_their_text_form(value in any::<i64>()) {
        prop_assert_eq!(Cell::Text(value.to_string().into()).as_i64(), Ok(value));
    }

    #[test]
    fn cells_of_any_bytes_are_read_or_refused(value in any::<Vec<u8>>(), binary in any::<bool>()) {
        read_all(&value, binary);
    }

    #[test]
    fn timestamps_of_any_text_are_read_or_refused(
        text in "[0-9]{4,6}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}(\\.[0-9]{0,7})?([+-][0-9:]{0,9})?( BC)?",
    ) {
        read_all(text.as_bytes(), false);
    }
}

/// Reads the bytes as every type: none may panic.
fn read_all(value: &[u8], binary: bool) {
    let bytes = Bytes::copy_from_slice(value);
    let cell = if binary {
        Cell::Binary(bytes)
    } else {
        Cell::Text(bytes)
    };
    let _ = (
        cell.as_str(),
        cell.as_i64(),
        cell.as_bool(),
        cell.as_unix_micros(),
    );
    let _ = (cell.as_uuid(), cell.as_bytea());
}
