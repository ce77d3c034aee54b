//! What can be wrong with bytes from a server. No variant carries message
//! content: payloads are user data and do not belong into logs.

use std::str::Utf8Error;

/// Bytes that are not a message. The stream behind them cannot be trusted:
/// the connection should be closed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The payload ends before the field does.
    #[error("payload ends inside {field} at byte {offset}: {needed} bytes needed, {left} left")]
    Truncated {
        /// The field being read.
        field: &'static str,
        /// Where the field starts, in bytes from the start of the payload.
        offset: usize,
        /// How many bytes the field takes.
        needed: usize,
        /// How many bytes are left.
        left: usize,
    },
    /// A string without its closing zero byte.
    #[error("no zero byte ends {field} at byte {offset}")]
    Unterminated {
        /// The field being read.
        field: &'static str,
        /// Where the string starts.
        offset: usize,
    },
    /// A name that is not UTF-8, although the connection asks for UTF-8.
    #[error("{field} at byte {offset} is not utf-8")]
    NotUtf8 {
        /// The field being read.
        field: &'static str,
        /// Where the string starts.
        offset: usize,
        /// Which byte is wrong.
        #[source]
        source: Utf8Error,
    },
    /// A value outside what the protocol allows for the field.
    #[error("{field} at byte {offset} has the impossible value {value}")]
    Invalid {
        /// The field being read.
        field: &'static str,
        /// Where the field starts.
        offset: usize,
        /// The value found.
        value: i64,
    },
}

impl DecodeError {
    /// The field that could not be read.
    pub fn field(&self) -> &'static str {
        match self {
            Self::Truncated { field, .. }
            | Self::Unterminated { field, .. }
            | Self::NotUtf8 { field, .. }
            | Self::Invalid { field, .. } => field,
        }
    }

    /// Where that field starts, in bytes from the start of the payload.
    pub fn offset(&self) -> usize {
        match self {
            Self::Truncated { offset, .. }
            | Self::Unterminated { offset, .. }
            | Self::NotUtf8 { offset, .. }
            | Self::Invalid { offset, .. } => *offset,
        }
    }
}

/// A cell that does not hold the value asked for. The row is wrong for its
/// reader, the stream is fine.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ValueError {
    /// The cell is null.
    #[error("cell is null, {expected} expected")]
    Null {
        /// What the caller asked for.
        expected: &'static str,
    },
    /// The server left a large unchanged value out of an update.
    #[error("cell is an unchanged toast value that was not sent, {expected} expected")]
    Unchanged {
        /// What the caller asked for.
        expected: &'static str,
    },
    /// The text is not UTF-8.
    #[error("cell is not utf-8, {expected} expected")]
    NotUtf8 {
        /// What the caller asked for.
        expected: &'static str,
        /// Which byte is wrong.
        #[source]
        source: Utf8Error,
    },
    /// The cell has a value, but not of this type, or out of its range.
    #[error("cell of {bytes} bytes is no {expected}")]
    Invalid {
        /// What the caller asked for.
        expected: &'static str,
        /// How long the cell is.
        bytes: usize,
    },
}
