//! The fields of ErrorResponse and NoticeResponse (manual, chapter "Error and
//! Notice Message Fields").

use std::fmt;

use bytes::Bytes;
use pgoutput::{Cursor, DecodeError};

/// An error or notice in the server's words.
///
/// Its text is severity, SQLSTATE and message; detail, hint and context are
/// there for whoever wants more.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ServerMessage {
    /// `ERROR`, `FATAL`, `NOTICE`, …, never translated.
    pub severity: String,
    /// Five letters: what programs decide by.
    pub sqlstate: String,
    /// What happened, in the server's language.
    pub message: String,
    /// More about it.
    pub detail: Option<String>,
    /// What to do about it.
    pub hint: Option<String>,
    /// Where it happened; for errors of the plugin with the log position.
    pub context: Option<String>,
    /// The function of the server that raised it; tells errors with the same
    /// SQLSTATE apart where the message may be translated.
    pub routine: Option<String>,
}

impl ServerMessage {
    /// Reads the body of an ErrorResponse or NoticeResponse. Unknown fields are
    /// skipped. Text that is not UTF-8 (an error before the encoding is agreed)
    /// is kept as far as it can be read.
    pub(crate) fn decode(body: Bytes) -> Result<Self, DecodeError> {
        let mut cursor = Cursor::new(body);
        let mut message = Self::default();
        let mut translated = String::new();
        loop {
            let kind = cursor.u8("server message field")?;
            if kind == 0 {
                break;
            }
            let bytes = cursor.c_bytes("server message text")?;
            let text = String::from_utf8_lossy(&bytes).into_owned();
            match kind {
                b'S' => translated = text,
                b'V' => message.severity = text,
                b'C' => message.sqlstate = text,
                b'M' => message.message = text,
                b'D' => message.detail = Some(text),
                b'H' => message.hint = Some(text),
                b'W' => message.context = Some(text),
                b'R' => message.routine = Some(text),
                _ => {}
            }
        }
        // Servers before 9.6 and some poolers send the translated one only.
        if message.severity.is_empty() {
            message.severity = translated;
        }
        Ok(message)
    }
}

impl fmt::Display for ServerMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}", self.severity, self.sqlstate, self.message)?;
        if let Some(detail) = &self.detail {
            write!(f, " ({detail})")?;
        }
        Ok(())
    }
}

impl std::error::Error for ServerMessage {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read_and_unknown_ones_skipped() {
        let body = Bytes::from_static(
            b"SFEHLER\0VERROR\0C55006\0Mslot is active\0Dpid 7\0Zwhat\0RReplicationSlotAcquire\0\0",
        );
        let message = ServerMessage::decode(body).unwrap();
        assert_eq!(message.to_string(), "ERROR 55006: slot is active (pid 7)");
        assert_eq!(message.routine.as_deref(), Some("ReplicationSlotAcquire"));
        assert_eq!(message.hint, None);
    }

    #[test]
    fn a_body_that_ends_early_is_an_error() {
        assert!(ServerMessage::decode(Bytes::from_static(b"VERROR\0C55006")).is_err());
        assert!(ServerMessage::decode(Bytes::from_static(b"VERROR\0")).is_err());
        assert!(ServerMessage::decode(Bytes::new()).is_err());
    }
}
