//! Positions in the write-ahead log.

use std::fmt;
use std::num::ParseIntError;
use std::str::FromStr;

/// A position in the write-ahead log: a byte offset since the cluster began.
///
/// The text form is that of `pg_lsn`: two hexadecimal halves, `16/B374D848`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Lsn(u64);

impl Lsn {
    /// `0/0`, which the protocol uses for "no position".
    pub const ZERO: Self = Self(0);

    /// The position at this byte offset.
    pub const fn new(offset: u64) -> Self {
        Self(offset)
    }

    /// The byte offset.
    pub const fn as_u64(self) -> u64 {
        self.0
    }

    /// Whether this is `0/0`.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// The position `bytes` further on, or nothing where the log would end.
    pub const fn checked_add(self, bytes: u64) -> Option<Self> {
        match self.0.checked_add(bytes) {
            Some(offset) => Some(Self(offset)),
            None => None,
        }
    }

    /// How many bytes of log lie between `earlier` and here; 0 when it is not
    /// earlier.
    pub const fn bytes_since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

impl From<u64> for Lsn {
    fn from(offset: u64) -> Self {
        Self(offset)
    }
}

impl From<Lsn> for u64 {
    fn from(lsn: Lsn) -> Self {
        lsn.0
    }
}

impl fmt::Display for Lsn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:X}/{:X}", self.0 >> 32, self.0 & 0xFFFF_FFFF)
    }
}

impl fmt::Debug for Lsn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Lsn({self})")
    }
}

/// Text that is not a position.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseLsnError {
    /// There is no slash between two halves.
    #[error("log position has no slash")]
    NoSlash,
    /// A half is empty or longer than eight digits.
    #[error("half of a log position has {digits} digits, 1 to 8 expected")]
    Length {
        /// How many bytes the half has.
        digits: usize,
    },
    /// A half is not a hexadecimal number.
    #[error("half of a log position is not hexadecimal")]
    Digits(#[source] ParseIntError),
}

impl FromStr for Lsn {
    type Err = ParseLsnError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (high, low) = text.split_once('/').ok_or(ParseLsnError::NoSlash)?;
        Ok(Self(half(high)? << 32 | half(low)?))
    }
}

fn half(text: &str) -> Result<u64, ParseLsnError> {
    if text.is_empty() || text.len() > 8 {
        return Err(ParseLsnError::Length { digits: text.len() });
    }
    // The number parser would take a plus sign, pg_lsn does not.
    let digits = if text.starts_with('+') { "+" } else { text };
    u64::from_str_radix(digits, 16).map_err(ParseLsnError::Digits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_form_is_that_of_pg_lsn() {
        let lsn = Lsn::new(0x16_B374_D848);
        assert_eq!(lsn.to_string(), "16/B374D848");
        assert_eq!("16/b374d848".parse(), Ok(lsn));
        assert_eq!("0/0".parse(), Ok(Lsn::ZERO));
        assert_eq!("FFFFFFFF/FFFFFFFF".parse(), Ok(Lsn::new(u64::MAX)));
        assert_eq!(format!("{lsn:?}"), "Lsn(16/B374D848)");
    }

    #[test]
    fn bad_text_is_refused() {
        for text in [
            "",
            "0",
            "/",
            "0/",
            "/0",
            "0/123456789",
            "+1/0",
            "0/+1",
            "0/g",
            "1/2/3",
        ] {
            assert!(text.parse::<Lsn>().is_err(), "{text}");
        }
    }

    #[test]
    fn order_and_distance_follow_the_offset() {
        let low = Lsn::new(0xFFFF_FFFF);
        let high = low.checked_add(1).unwrap();
        assert_eq!(high.to_string(), "1/0");
        assert!(low < high);
        assert_eq!(high.bytes_since(low), 1);
        assert_eq!(low.bytes_since(high), 0);
        assert_eq!(Lsn::new(u64::MAX).checked_add(1), None);
    }
}
