//! A session before it streams: checks by simple query, then the switch.

use std::collections::HashMap;
use std::future::Future;
use std::time::Duration;

use pgoutput::Lsn;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::time::timeout;

use crate::copy_both::{self, Reader, Writer};
use crate::query::{self, Row};
use crate::startup::{self, Session};
use crate::wire::{FrameReader, FrameWriter};
use crate::{ReplicationConfig, ReplicationError, Step};

/// A replication session that is ready for queries.
#[derive(Debug)]
pub struct Connection {
    reader: FrameReader<OwnedReadHalf>,
    writer: FrameWriter<OwnedWriteHalf>,
    parameters: HashMap<String, String>,
    patience: Duration,
    /// Set while an answer is outstanding: if the caller drops the future, the
    /// next query would read the old answer.
    unfinished: bool,
}

/// What to stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamOptions {
    /// An existing logical slot with the plugin `pgoutput`.
    pub slot: String,
    /// The publication.
    pub publication: String,
    /// Whether to send the messages of `pg_logical_emit_message` (PostgreSQL 14
    /// and later).
    pub messages: bool,
}

/// The answer to IDENTIFY_SYSTEM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SystemIdentity {
    /// Unique per cluster; a restored copy keeps it.
    pub system_id: u64,
    /// Grows with each promotion.
    pub timeline: u32,
    /// How far the log is flushed.
    pub flushed: Lsn,
    /// The database of this connection.
    pub database: String,
}

impl Connection {
    /// Opens the socket and logs in, within `connect_timeout`.
    ///
    /// # Errors
    /// When the server cannot be reached, refuses the login or takes too long.
    pub async fn connect(config: &ReplicationConfig) -> Result<Self, ReplicationError> {
        let opened = within(config.connect_timeout, Step::Connect, startup::open(config)).await?;
        let Session {
            reader,
            writer,
            parameters,
        } = opened;
        Ok(Self {
            reader,
            writer,
            parameters,
            patience: config.query_timeout,
            unfinished: false,
        })
    }

    /// Runs SQL or a replication command that answers rows (IDENTIFY_SYSTEM,
    /// CREATE_REPLICATION_SLOT, SHOW, SELECT), within `query_timeout`.
    ///
    /// # Errors
    /// With [`ReplicationError::Server`] the connection stays usable; after any
    /// other error it is used up.
    ///
    /// # Cancel safety
    /// Not cancel-safe: after a dropped call every further one answers
    /// [`ReplicationError::Unfinished`].
    pub async fn query(&mut self, sql: &str) -> Result<Vec<Row>, ReplicationError> {
        self.query_within(sql, self.patience).await
    }

    /// [`Self::query`] with its own time limit, for commands that wait for other
    /// transactions, such as CREATE_REPLICATION_SLOT.
    ///
    /// # Errors
    /// As for [`Self::query`].
    ///
    /// # Cancel safety
    /// As for [`Self::query`].
    pub async fn query_within(
        &mut self,
        sql: &str,
        patience: Duration,
    ) -> Result<Vec<Row>, ReplicationError> {
        if std::mem::replace(&mut self.unfinished, true) {
            return Err(ReplicationError::Unfinished);
        }
        let run = query::run(&mut self.reader, &mut self.writer, sql);
        let answer = within(patience, Step::Query, run).await;
        self.unfinished = !matches!(answer, Ok(_) | Err(ReplicationError::Server { .. }));
        answer
    }

    /// Who the server is and how far its log goes.
    ///
    /// # Errors
    /// As for [`Self::query`].
    pub async fn identify_system(&mut self) -> Result<SystemIdentity, ReplicationError> {
        let rows = self.query("IDENTIFY_SYSTEM").await?;
        let row = rows.first();
        let value = |column| row.and_then(|row| row.get(column));
        let missing = |column| ReplicationError::Answer { column };
        let parsed = |column| value(column).and_then(|text| text.parse().ok());
        Ok(SystemIdentity {
            system_id: parsed("systemid").ok_or(missing("systemid"))?,
            timeline: value("timeline")
                .and_then(|text| text.parse().ok())
                .ok_or(missing("timeline"))?,
            flushed: value("xlogpos")
                .and_then(|text| text.parse().ok())
                .ok_or(missing("xlogpos"))?,
            database: value("dbname").ok_or(missing("dbname"))?.to_owned(),
        })
    }

    /// The value of a server setting, as SHOW writes it (`1min`).
    ///
    /// # Errors
    /// As for [`Self::query`]; also for a name that is no identifier.
    pub async fn show(&mut self, setting: &str) -> Result<String, ReplicationError> {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'.';
        if setting.is_empty() || !setting.bytes().all(plain) {
            return Err(ReplicationError::Name {
                what: "setting",
                name: setting.to_owned(),
            });
        }
        let rows = self.query(&format!("SHOW {setting}")).await?;
        let value = rows
            .into_iter()
            .next()
            .and_then(|row| row.values().first().cloned().flatten());
        value.ok_or(ReplicationError::Answer { column: "setting" })
    }

    /// What the server reported at login (`server_version`, …).
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.parameters.get(name).map(String::as_str)
    }

    /// Starts streaming a publication from where the slot stands.
    ///
    /// # Errors
    /// When the server refuses; see [`ReplicationError::is_slot_busy`] and its
    /// neighbours. A missing publication is noticed only in the stream.
    pub async fn start(
        self,
        slot: &str,
        publication: &str,
    ) -> Result<(Reader, Writer), ReplicationError> {
        let options = StreamOptions {
            slot: slot.to_owned(),
            publication: publication.to_owned(),
            messages: false,
        };
        self.start_with(&options).await
    }

    /// [`Self::start`] with all options.
    ///
    /// # Errors
    /// As for [`Self::start`].
    pub async fn start_with(
        mut self,
        options: &StreamOptions,
    ) -> Result<(Reader, Writer), ReplicationError> {
        if self.unfinished {
            return Err(ReplicationError::Unfinished);
        }
        let command = options.command()?;
        let start = copy_both::start(&mut self.reader, &mut self.writer, &command);
        within(self.patience, Step::Start, start).await?;
        Ok((
            Reader::new(self.reader),
            Writer::new(self.writer, self.patience),
        ))
    }
}

impl StreamOptions {
    /// Always from `0/0`, which means where the slot stands: an older position
    /// would be moved forward silently and a newer one would skip rows.
    fn command(&self) -> Result<String, ReplicationError> {
        let slot_letter =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
        if !(1..=63).contains(&self.slot.len()) || !self.slot.bytes().all(slot_letter) {
            return Err(ReplicationError::Name {
                what: "slot",
                name: self.slot.clone(),
            });
        }
        if self.publication.is_empty() || self.publication.contains('\0') {
            let name = self.publication.clone();
            return Err(ReplicationError::Name {
                what: "publication",
                name,
            });
        }
        // An identifier inside a string: doubled for the one, then the other.
        let publication = self.publication.replace('"', "\"\"").replace('\'', "''");
        let messages = if self.messages {
            ", messages 'true'"
        } else {
            ""
        };
        Ok(format!(
            "START_REPLICATION SLOT \"{}\" LOGICAL 0/0 \
             (proto_version '1', publication_names '\"{publication}\"'{messages})",
            self.slot
        ))
    }
}

pub(crate) async fn within<T>(
    after: Duration,
    step: Step,
    work: impl Future<Output = Result<T, ReplicationError>>,
) -> Result<T, ReplicationError> {
    match timeout(after, work).await {
        Ok(done) => done,
        Err(_) => Err(ReplicationError::Timeout { step, after }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(slot: &str, publication: &str) -> StreamOptions {
        let (slot, publication) = (slot.to_owned(), publication.to_owned());
        StreamOptions {
            slot,
            publication,
            messages: false,
        }
    }

    #[test]
    fn the_command_quotes_what_it_is_given() {
        assert_eq!(
            options("relay_1", "it's \"odd\"").command().unwrap(),
            "START_REPLICATION SLOT \"relay_1\" LOGICAL 0/0 \
             (proto_version '1', publication_names '\"it''s \"\"odd\"\"\"')"
        );
    }

    #[test]
    fn names_the_server_would_refuse_do_not_reach_it() {
        let long = "x".repeat(64);
        for slot in ["", "Relay", "a-b", "a\"b", &long] {
            assert!(options(slot, "p").command().is_err(), "{slot}");
        }
        assert!(options("relay", "").command().is_err());
        assert!(options("relay", "a\0b").command().is_err());
    }
}
