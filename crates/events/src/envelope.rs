//! The envelope: CloudEvents 1.0, Kafka binding, binary mode, plus Tideline's own headers.
//!
//! Owns the header names and the form of their values. Source: CloudEvents Kafka Protocol Binding
//! 1.0.2, sections 3.1 to 3.2.

use crate::EventId;

/// `ce_specversion`
pub const SPEC_VERSION: &str = "ce_specversion";
/// `ce_id`: the outbox id.
pub const ID: &str = "ce_id";
/// `ce_source`: see [`source`].
pub const SOURCE: &str = "ce_source";
/// `ce_type`: see [`crate::EventType`].
pub const TYPE: &str = "ce_type";
/// `ce_time`: `outbox.created_at`, RFC 3339.
pub const TIME: &str = "ce_time";
/// `ce_subject`: the outbox column `aggregateid`.
pub const SUBJECT: &str = "ce_subject";
/// `ce_sequence`: see [`sequence`]; on the relay's path only.
pub const SEQUENCE: &str = "ce_sequence";
/// `content-type`
pub const CONTENT_TYPE: &str = "content-type";
/// W3C trace context, passed through from the request.
pub const TRACEPARENT: &str = "traceparent";
/// Which path the record came by: see [`Path`].
pub const PATH: &str = "tideline-path";
/// How often this event was published by the sweep; 1 on the relay's path.
pub const ATTEMPT: &str = "tideline-attempt";
/// End LSN of the commit, text form; on the relay's path only.
pub const COMMIT_LSN: &str = "tideline-commit-lsn";

/// The value of [`SPEC_VERSION`].
pub const SPEC_VERSION_1_0: &str = "1.0";
/// The value of [`CONTENT_TYPE`].
pub const JSON: &str = "application/json";

/// The path by which a record reached Kafka (D-5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Path {
    /// The relay: first copies are in commit order per author.
    Cdc,
    /// The sweep: may come out of order.
    Sweep,
}

impl Path {
    /// The header value.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Cdc => "cdc",
            Self::Sweep => "sweep",
        }
    }
}

/// `ce_source` of a database's outbox in an epoch: `/tideline/<database>/outbox/<epoch>`.
pub fn source(database: &str, epoch: i64) -> String {
    format!("/tideline/{database}/outbox/{epoch}")
}

/// `ce_sequence`: commit end LSN and index of the row in its transaction, zero-padded, so that
/// text order is commit order.
pub fn sequence(commit_lsn: u64, index: u32) -> String {
    format!("{commit_lsn:016x}-{index:08x}")
}

/// An LSN in Postgres's text form.
pub fn lsn(lsn: u64) -> String {
    format!("{:X}/{:X}", lsn >> 32, lsn & 0xFFFF_FFFF)
}

/// The epoch that a `ce_source` names: see [`source`]. None for what another system made.
pub fn source_epoch(text: &str) -> Option<i64> {
    let (database, epoch) = text.strip_prefix("/tideline/")?.rsplit_once("/outbox/")?;
    if database.is_empty() || !epoch.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    epoch.parse().ok()
}

/// Reads `ce_id`.
///
/// # Errors
/// When the text is not a decimal 64-bit integer.
pub fn event_id(text: &str) -> Result<EventId, std::num::ParseIntError> {
    text.parse()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_names_its_epoch() {
        assert_eq!(source_epoch(&source("a/b", 12)), Some(12));
        for other in [
            "",
            "/tideline/db/outbox/",
            "/tideline/db/outbox/+1",
            "/tideline/db/outbox/99999999999999999999",
            "/tideline//outbox/1",
            "/other/db/outbox/1",
            "/tideline/db/outbox/1/2",
        ] {
            assert_eq!(source_epoch(other), None, "{other}");
        }
    }

    #[test]
    fn positions_read_as_postgres_prints_them() {
        assert_eq!(lsn(0x1_0000_00AB), "1/AB");
        assert_eq!(lsn(0), "0/0");
        assert_eq!(lsn(u64::MAX), "FFFFFFFF/FFFFFFFF");
    }
}
