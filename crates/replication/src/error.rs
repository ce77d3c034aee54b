//! What can go wrong on the connection. The SQLSTATE is kept, and the questions
//! the relay asks about it are answered here, next to the facts.

use std::fmt;
use std::io;
use std::time::Duration;

use pgoutput::DecodeError;

use crate::{FrameError, ServerMessage};

/// What the connection was doing. The same SQLSTATE means different things at
/// different steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Step {
    /// Opening the socket.
    Connect,
    /// From the first byte until the server is ready for a query.
    Authenticate,
    /// A simple query.
    Query,
    /// START_REPLICATION until the server agrees.
    Start,
    /// The stream itself.
    Stream,
    /// From the client's CopyDone on.
    Finish,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Connect => "connecting",
            Self::Authenticate => "authenticating",
            Self::Query => "running a query on the replication connection",
            Self::Start => "starting replication",
            Self::Stream => "streaming",
            Self::Finish => "finishing the stream",
        })
    }
}

/// Why the connection cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum ReplicationError {
    /// No address of the host took the connection.
    #[error("connecting to postgres at {address} failed")]
    Connect {
        /// Host and port.
        address: String,
        /// What the last address answered.
        #[source]
        source: io::Error,
    },
    /// The server took longer than the configured time.
    #[error("{step} took longer than {after:?}")]
    Timeout {
        /// What was being done.
        step: Step,
        /// The configured time.
        after: Duration,
    },
    /// The socket failed.
    #[error("{step} failed at the socket")]
    Io {
        /// What was being done.
        step: Step,
        /// What the socket said.
        #[source]
        source: io::Error,
    },
    /// The server closed the connection without saying why: it crashed, was cut
    /// off or lost patience (`wal_sender_timeout` gives no reason).
    #[error("postgres closed the connection while {step}")]
    Closed {
        /// What was being done.
        step: Step,
    },
    /// The server refused or ended the work.
    #[error("{step} was refused by postgres")]
    Server {
        /// What was being done.
        step: Step,
        /// The server's words.
        #[source]
        source: Box<ServerMessage>,
    },
    /// The password exchange cannot succeed.
    #[error("authenticating with postgres failed")]
    Auth(#[source] AuthError),
    /// The byte stream is not made of acceptable frames.
    #[error("reading a frame from postgres failed")]
    Frame(#[from] FrameError),
    /// A frame does not hold what its tag says.
    #[error("{step} got a message that cannot be read")]
    Decode {
        /// What was being done.
        step: Step,
        /// What is wrong with it.
        #[source]
        source: DecodeError,
    },
    /// A message that has no place in this step.
    #[error("{step} got an unexpected message with tag {tag:#04x}")]
    Unexpected {
        /// What was being done.
        step: Step,
        /// The message's tag.
        tag: u8,
    },
    /// A query answered more rows than this connection is meant for.
    #[error("query on the replication connection answered more than {limit} rows")]
    TooManyRows {
        /// The limit.
        limit: usize,
    },
    /// A query's answer lacks a value that the protocol promises.
    #[error("answer of postgres lacks a valid {column}")]
    Answer {
        /// The column.
        column: &'static str,
    },
    /// An earlier query on this connection was given up half way.
    #[error("connection is used up by an unfinished query")]
    Unfinished,
    /// A name that cannot be part of a replication command.
    #[error("{what} name {name:?} is not usable")]
    Name {
        /// What the name is for.
        what: &'static str,
        /// The name.
        name: String,
    },
}

/// Why the password exchange cannot succeed.
#[derive(Debug, thiserror::Error)]
pub enum AuthError {
    /// The server asks for a password, the URL has none.
    #[error("server asks for a password and none is configured")]
    NoPassword,
    /// The server wants the password itself, and the line is not encrypted.
    #[error("server asks for the password in clear text, only scram-sha-256 is supported")]
    ClearText,
    /// The role's password is stored for the broken MD5 exchange.
    #[error(
        "server asks for md5, only scram-sha-256 is supported: set password_encryption to \
         scram-sha-256 and the role's password again"
    )]
    Md5,
    /// A method that is not built (GSS, SSPI, SCRAM with channel binding only).
    #[error("server asks for authentication method {code}, only scram-sha-256 is supported")]
    Method {
        /// The protocol's number of the method.
        code: u32,
    },
    /// The exchange failed, or the server could not prove that it knows the
    /// password.
    #[error("scram-sha-256 exchange failed")]
    Scram(#[source] io::Error),
    /// The server let us in half way through the exchange, without proving that
    /// it knows the password.
    #[error("server skipped the end of the scram-sha-256 exchange")]
    Unproven,
}

impl ReplicationError {
    /// The server's words, if it said anything.
    pub fn server(&self) -> Option<&ServerMessage> {
        match self {
            Self::Server { source, .. } => Some(source),
            _ => None,
        }
    }

    /// The server's SQLSTATE.
    pub fn sqlstate(&self) -> Option<&str> {
        self.server().map(|server| server.sqlstate.as_str())
    }

    /// 55006 at the start: another connection holds the slot. A normal state of
    /// a stand-by; wait and try again.
    pub fn is_slot_busy(&self) -> bool {
        self.refused(Step::Start, "55006")
    }

    /// 42704 at the start: there is no such slot.
    pub fn is_slot_missing(&self) -> bool {
        self.refused(Step::Start, "42704")
    }

    /// 42704 in the stream: the publication did not exist at this point of the
    /// log. The start never checks that. On PostgreSQL 15 the slot cannot get
    /// past the spot by itself, even when the publication exists again.
    pub fn is_publication_missing(&self) -> bool {
        self.refused(Step::Stream, "42704")
    }

    /// 55000 at the start: the server gave up the log that the slot needs.
    ///
    /// The same SQLSTATE also says that `wal_level` is too low (told apart by
    /// the raising function) or that the slot belongs to another database (told
    /// apart by the message, so only when the server speaks English).
    pub fn is_slot_invalidated(&self) -> bool {
        self.refused(Step::Start, "55000")
            && self.server().is_some_and(|server| {
                server.routine.as_deref() != Some("CheckLogicalDecodingRequirements")
                    && !server.message.contains("was not created in this database")
            })
    }

    /// Class 57P: the server is shutting down, restarting or starting up.
    pub fn is_server_going(&self) -> bool {
        self.sqlstate().is_some_and(|code| code.starts_with("57P"))
    }

    /// Whether a person must change the configuration: wrong password, role,
    /// database or method. Waiting does not help.
    pub fn is_refused_login(&self) -> bool {
        match self {
            Self::Auth(_) => true,
            Self::Server {
                step: Step::Authenticate,
                source,
            } => {
                source.sqlstate.starts_with("28")
                    || matches!(source.sqlstate.as_str(), "3D000" | "42501")
            }
            _ => false,
        }
    }

    fn refused(&self, at: Step, code: &str) -> bool {
        matches!(self, Self::Server { step, source } if *step == at && source.sqlstate == code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(step: Step, sqlstate: &str, routine: &str) -> ReplicationError {
        let source = ServerMessage {
            sqlstate: sqlstate.to_owned(),
            routine: Some(routine.to_owned()),
            ..ServerMessage::default()
        };
        ReplicationError::Server {
            step,
            source: Box::new(source),
        }
    }

    #[test]
    fn one_sqlstate_means_different_things_at_different_steps() {
        let start = refused(Step::Start, "42704", "ReplicationSlotAcquire");
        assert!(start.is_slot_missing() && !start.is_publication_missing());
        let stream = refused(Step::Stream, "42704", "get_publication_oid");
        assert!(stream.is_publication_missing() && !stream.is_slot_missing());
    }

    #[test]
    fn a_low_wal_level_is_no_lost_slot() {
        assert!(refused(Step::Start, "55000", "StartLogicalReplication").is_slot_invalidated());
        let level = refused(Step::Start, "55000", "CheckLogicalDecodingRequirements");
        assert!(!level.is_slot_invalidated());
    }

    #[test]
    fn logins_that_waiting_cannot_help_are_known() {
        assert!(refused(Step::Authenticate, "28P01", "auth_failed").is_refused_login());
        assert!(refused(Step::Authenticate, "3D000", "InitPostgres").is_refused_login());
        assert!(!refused(Step::Authenticate, "57P03", "ProcessStartupPacket").is_refused_login());
        assert!(refused(Step::Authenticate, "57P03", "ProcessStartupPacket").is_server_going());
    }
}
