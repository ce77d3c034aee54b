//! Values as a server writes them.

use super::*;

fn text(value: &'static str) -> Cell {
    Cell::Text(Bytes::from_static(value.as_bytes()))
}

fn binary(value: &'static [u8]) -> Cell {
    Cell::Binary(Bytes::from_static(value))
}

#[test]
fn integers() {
    assert_eq!(text("-9223372036854775808").as_i64(), Ok(i64::MIN));
    assert_eq!(binary(&[0xFF, 0xFE]).as_i64(), Ok(-2));
    assert_eq!(binary(&[0, 0, 1, 0]).as_i64(), Ok(256));
    assert_eq!(binary(&[0, 0, 0, 0, 0, 0, 1, 0]).as_i64(), Ok(256));
    for wrong in [
        text(""),
        text("1.5"),
        text("9223372036854775808"),
        binary(&[1]),
    ] {
        assert!(
            matches!(wrong.as_i64(), Err(ValueError::Invalid { .. })),
            "{wrong:?}"
        );
    }
}

#[test]
fn missing_values_are_told_apart() {
    assert_eq!(
        Cell::Null.as_i64(),
        Err(ValueError::Null {
            expected: "integer"
        })
    );
    assert_eq!(
        Cell::Unchanged.as_str(),
        Err(ValueError::Unchanged { expected: "text" })
    );
    assert_eq!(text("").as_str(), Ok(""));
    assert!(Cell::Null.is_null() && Cell::Null.bytes().is_none());
}

#[test]
fn text_must_be_utf8() {
    assert_eq!(text("日本 🌊").as_str(), Ok("日本 🌊"));
    let broken = Cell::Text(Bytes::from_static(&[0xF0, 0x9F]));
    assert!(matches!(broken.as_str(), Err(ValueError::NotUtf8 { .. })));
}

#[test]
fn booleans() {
    assert_eq!(text("t").as_bool(), Ok(true));
    assert_eq!(text("f").as_bool(), Ok(false));
    assert_eq!(binary(&[1]).as_bool(), Ok(true));
    assert_eq!(binary(&[0]).as_bool(), Ok(false));
    assert!(text("true").as_bool().is_err());
    assert!(binary(b"t").as_bool().is_err());
}

#[test]
fn timestamps() {
    for (written, micros) in [
        ("1970-01-01 00:00:00+00", 0),
        ("2000-01-01 00:00:00+00", PG_EPOCH_MICROS),
        ("2026-11-29 18:58:55.123456+00", 1_795_978_735_123_456),
        ("2026-11-29 18:58:55.1+00", 1_795_978_735_100_000),
        ("2026-11-30 00:28:55.1+05:30", 1_795_978_735_100_000),
        ("2026-11-29 13:58:55.1-05", 1_795_978_735_100_000),
        ("2026-11-29 18:58:55.1", 1_795_978_735_100_000),
        ("2024-02-29 00:00:00+00", 1_709_164_800_000_000),
        ("1969-12-31 23:59:59.999999+00", -1),
        ("0001-01-01 00:00:00+00", -62_135_596_800_000_000),
        ("0001-12-31 00:00:00+00 BC", -62_135_683_200_000_000),
        ("12026-01-01 00:00:00+00", 317_336_745_600_000_000),
    ] {
        assert_eq!(text(written).as_unix_micros(), Ok(micros), "{written}");
    }
    assert_eq!(binary(&[0; 8]).as_unix_micros(), Ok(PG_EPOCH_MICROS));
}

#[test]
fn what_is_no_finite_timestamp_is_refused() {
    for wrong in [
        "infinity",
        "-infinity",
        "",
        "2026-11-29",
        "2026-13-01 00:00:00+00",
        "2026-11-29 18:58+00",
        "2026-11-29 18:58:55.1234567+00",
        "2026-11-29 18:58:55+0",
        "2026-11-29 18:58:55+00:00:00:00",
        "Sun Nov 29 18:58:55 2026 UTC",
        "2026-11-2é 18:58:55+00",
    ] {
        assert!(text(wrong).as_unix_micros().is_err(), "{wrong}");
    }
    assert!(
        Cell::Binary(Bytes::copy_from_slice(&i64::MAX.to_be_bytes()))
            .as_unix_micros()
            .is_err()
    );
    assert!(
        Cell::Binary(Bytes::copy_from_slice(&i64::MIN.to_be_bytes()))
            .as_unix_micros()
            .is_err()
    );
}

#[test]
fn uuids() {
    let expected: [u8; 16] = *b"\x01\x23\x45\x67\x89\xab\xcd\xef\x01\x23\x45\x67\x89\xab\xcd\xef";
    assert_eq!(
        text("01234567-89ab-cdef-0123-456789abcdef").as_uuid(),
        Ok(expected)
    );
    assert_eq!(
        Cell::Binary(Bytes::copy_from_slice(&expected)).as_uuid(),
        Ok(expected)
    );
    for wrong in [
        "",
        "0123456789abcdef0123456789abcdef",
        "0123456-789ab-cdef-0123-456789abcdef",
    ] {
        assert!(text(wrong).as_uuid().is_err(), "{wrong}");
    }
}

#[test]
fn byteas() {
    assert_eq!(
        text("\\x00ff10").as_bytea(),
        Ok(Bytes::from_static(&[0, 0xFF, 0x10]))
    );
    assert_eq!(text("\\x").as_bytea(), Ok(Bytes::new()));
    assert_eq!(binary(&[1, 2]).as_bytea(), Ok(Bytes::from_static(&[1, 2])));
    for wrong in ["", "00", "\\x0", "\\xzz"] {
        assert!(text(wrong).as_bytea().is_err(), "{wrong}");
    }
}
