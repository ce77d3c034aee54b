//! Reads the values in cells.
//!
//! Text cells are read in the form that the replication connection pins
//! (DateStyle ISO, TimeZone UTC, `bytea_output` hex), binary cells in the form
//! of the type's send function. Which type a column should have is the
//! caller's knowledge; a cell that does not fit is a [`ValueError`], never a
//! guess.

mod timestamp;

use bytes::Bytes;

use crate::copy_data::PG_EPOCH_MICROS;
use crate::{Cell, ValueError};

impl Cell {
    /// The bytes as they were sent, without looking at them: `None` for null
    /// and for unchanged.
    pub fn bytes(&self) -> Option<&Bytes> {
        match self {
            Self::Text(bytes) | Self::Binary(bytes) => Some(bytes),
            Self::Null | Self::Unchanged => None,
        }
    }

    /// Whether the cell is SQL null.
    pub fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// Text types (text, varchar, json, enum; numeric in text form).
    ///
    /// # Errors
    /// When the cell has no value or is not UTF-8.
    pub fn as_str(&self) -> Result<&str, ValueError> {
        self.text("text")
    }

    /// smallint, integer and bigint.
    ///
    /// # Errors
    /// When the cell has no value or is not such an integer.
    pub fn as_i64(&self) -> Result<i64, ValueError> {
        const EXPECTED: &str = "integer";
        if let Self::Binary(bytes) = self {
            return integer(bytes).ok_or(invalid(EXPECTED, bytes));
        }
        let text = self.text(EXPECTED)?;
        text.parse().map_err(|_| invalid(EXPECTED, text.as_bytes()))
    }

    /// boolean.
    ///
    /// # Errors
    /// When the cell has no value or is no boolean.
    pub fn as_bool(&self) -> Result<bool, ValueError> {
        const EXPECTED: &str = "boolean";
        match (self, self.value(EXPECTED)?.as_ref()) {
            (Self::Text(_), b"t") | (Self::Binary(_), [1]) => Ok(true),
            (Self::Text(_), b"f") | (Self::Binary(_), [0]) => Ok(false),
            (_, other) => Err(invalid(EXPECTED, other)),
        }
    }

    /// timestamptz, in microseconds of the Unix epoch. Also reads a timestamp
    /// without zone, as UTC.
    ///
    /// # Errors
    /// When the cell has no value, is no timestamp or is infinite.
    pub fn as_unix_micros(&self) -> Result<i64, ValueError> {
        const EXPECTED: &str = "timestamptz";
        let micros = match self {
            Self::Binary(bytes) => binary_timestamp(bytes),
            _ => timestamp::parse(self.text(EXPECTED)?),
        };
        micros.ok_or_else(|| invalid(EXPECTED, self.bytes().map_or(&[][..], Bytes::as_ref)))
    }

    /// uuid, its sixteen bytes.
    ///
    /// # Errors
    /// When the cell has no value or is no uuid.
    pub fn as_uuid(&self) -> Result<[u8; 16], ValueError> {
        const EXPECTED: &str = "uuid";
        let bytes = self.value(EXPECTED)?;
        let uuid = match self {
            Self::Binary(_) => bytes.as_ref().try_into().ok(),
            _ => text_uuid(bytes),
        };
        uuid.ok_or(invalid(EXPECTED, bytes))
    }

    /// bytea. Binary cells are shared, hexadecimal text is converted.
    ///
    /// # Errors
    /// When the cell has no value or is not hexadecimal.
    pub fn as_bytea(&self) -> Result<Bytes, ValueError> {
        const EXPECTED: &str = "bytea";
        let bytes = self.value(EXPECTED)?;
        if let Self::Binary(_) = self {
            return Ok(bytes.clone());
        }
        let decoded = bytes.strip_prefix(b"\\x").and_then(hex);
        decoded.map(Bytes::from).ok_or(invalid(EXPECTED, bytes))
    }

    fn value(&self, expected: &'static str) -> Result<&Bytes, ValueError> {
        match self {
            Self::Text(bytes) | Self::Binary(bytes) => Ok(bytes),
            Self::Null => Err(ValueError::Null { expected }),
            Self::Unchanged => Err(ValueError::Unchanged { expected }),
        }
    }

    fn text(&self, expected: &'static str) -> Result<&str, ValueError> {
        std::str::from_utf8(self.value(expected)?)
            .map_err(|source| ValueError::NotUtf8 { expected, source })
    }
}

fn invalid(expected: &'static str, bytes: &[u8]) -> ValueError {
    ValueError::Invalid {
        expected,
        bytes: bytes.len(),
    }
}

fn integer(bytes: &[u8]) -> Option<i64> {
    match bytes.len() {
        2 => bytes.try_into().ok().map(i16::from_be_bytes).map(i64::from),
        4 => bytes.try_into().ok().map(i32::from_be_bytes).map(i64::from),
        8 => bytes.try_into().ok().map(i64::from_be_bytes),
        _ => None,
    }
}

fn binary_timestamp(bytes: &[u8]) -> Option<i64> {
    let micros = bytes.try_into().ok().map(i64::from_be_bytes)?;
    // The ends of the range stand for -infinity and infinity.
    if micros == i64::MIN || micros == i64::MAX {
        return None;
    }
    micros.checked_add(PG_EPOCH_MICROS)
}

fn text_uuid(text: &[u8]) -> Option<[u8; 16]> {
    if text.len() != 36 {
        return None;
    }
    let mut groups = text.split(|byte| *byte == b'-');
    let mut digits = Vec::with_capacity(32);
    for length in [8, 4, 4, 4, 12] {
        digits.extend(groups.next().filter(|group| group.len() == length)?);
    }
    hex(&digits)?.try_into().ok()
}

fn hex(digits: &[u8]) -> Option<Vec<u8>> {
    let (pairs, []) = digits.as_chunks::<2>() else {
        return None;
    };
    let digit = |byte: u8| {
        char::from(byte)
            .to_digit(16)
            .and_then(|digit| u8::try_from(digit).ok())
    };
    pairs
        .iter()
        .map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?))
        .collect()
}

#[cfg(test)]
mod tests;
