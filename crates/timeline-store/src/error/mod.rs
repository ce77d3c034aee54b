//! What can go wrong with the store, and what to do about it.
//!
//! The driver's enums are open, so their tables end in a wildcard; an error nobody has seen yet
//! is `Unsure`: repeated in place, never a dead letter (D-12).

use std::fmt;
use std::time::Duration;

use events::Class;
use scylla::errors::{
    BadQuery, ConnectionError, ConnectionPoolError, ConnectionSetupRequestErrorKind, DbError,
    ExecutionError, MetadataError, MetadataFetchErrorKind, NewSessionError, PrepareError,
    RequestAttemptError, SchemaAgreementError, UseKeyspaceError,
};
use thiserror::Error;

/// What the store was asked to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// Insert timeline rows.
    Write,
    /// Delete timeline rows.
    Delete,
    /// Read a timeline page.
    Page,
    /// Read all rows.
    Scan,
    /// Read one row.
    Row,
    /// Ask whether the store answers.
    Probe,
    /// Read the schema version.
    Verify,
    /// Apply the schema.
    Migrate,
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Write => "write timeline rows",
            Self::Delete => "delete timeline rows",
            Self::Page => "read a timeline page",
            Self::Scan => "scan timelines",
            Self::Row => "read a timeline row",
            Self::Probe => "probe the store",
            Self::Verify => "verify the schema",
            Self::Migrate => "migrate the schema",
        })
    }
}

/// An operation on the store failed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StoreError {
    /// A setting cannot be used.
    #[error("bad setting of the timeline store: {reason}")]
    Setting {
        /// What is wrong with it.
        reason: String,
    },
    /// No session could be made.
    #[error("connect to the timeline store at {nodes}")]
    Connect {
        /// The contact points, comma separated.
        nodes: String,
        /// The driver's error.
        #[source]
        source: Box<NewSessionError>,
    },
    /// No session could be made in time.
    #[error("connect to the timeline store at {nodes}: no answer within {after:?}")]
    ConnectTimeout {
        /// The contact points, comma separated.
        nodes: String,
        /// How long was waited.
        after: Duration,
    },
    /// A statement could not be prepared.
    #[error("prepare to {operation}")]
    Prepare {
        /// What the statement is for.
        operation: Operation,
        /// The driver's error.
        #[source]
        source: Box<PrepareError>,
    },
    /// A request failed.
    #[error("{operation}")]
    Execute {
        /// What was asked.
        operation: Operation,
        /// The driver's error.
        #[source]
        source: Box<ExecutionError>,
    },
    /// The answer does not have the form of the statement.
    #[error("{operation}: the answer has another form than expected")]
    Answer {
        /// What was asked.
        operation: Operation,
        /// The driver's error.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The nodes did not agree on the schema in time.
    #[error("wait for the nodes to agree on the schema")]
    Agreement {
        /// The driver's error.
        #[source]
        source: Box<SchemaAgreementError>,
    },
    /// The schema is not there yet, or older than this program needs. Services wait for it.
    #[error("schema of keyspace {keyspace} is at version {found}, this program needs {needed}")]
    SchemaBehind {
        /// The keyspace.
        keyspace: String,
        /// The version found; 0 if there is none.
        found: i32,
        /// The version needed.
        needed: i32,
    },
    /// Another starter holds the schema lock and does not let go.
    #[error("schema lock of keyspace {keyspace} is held by {holder} for more than {after:?}")]
    SchemaLocked {
        /// The keyspace.
        keyspace: String,
        /// Who holds it.
        holder: String,
        /// How long was waited.
        after: Duration,
    },
}

impl StoreError {
    pub(crate) fn execute(operation: Operation) -> impl Fn(ExecutionError) -> Self {
        move |source| Self::Execute {
            operation,
            source: Box::new(source),
        }
    }

    pub(crate) fn prepare(operation: Operation) -> impl Fn(PrepareError) -> Self {
        move |source| Self::Prepare {
            operation,
            source: Box::new(source),
        }
    }

    pub(crate) fn answer<E>(operation: Operation) -> impl Fn(E) -> Self
    where
        E: std::error::Error + Send + Sync + 'static,
    {
        move |source| Self::Answer {
            operation,
            source: Box::new(source),
        }
    }

    /// Says what the caller should do.
    pub fn class(&self) -> Class {
        match self {
            Self::Setting { .. } => Class::Config,
            Self::Connect { source, .. } => session(source),
            Self::ConnectTimeout { .. } | Self::SchemaBehind { .. } | Self::SchemaLocked { .. } => {
                Class::Outage
            }
            Self::Prepare { source, .. } => prepare(source),
            Self::Execute { source, .. } => execution(source),
            Self::Answer { .. } => Class::Bug,
            Self::Agreement { source } => agreement(source),
        }
    }
}

fn execution(error: &ExecutionError) -> Class {
    match error {
        ExecutionError::BadQuery(error) => bad_query(error),
        // The driver knows no node at all.
        ExecutionError::EmptyPlan => Class::Outage,
        ExecutionError::PrepareError(error) => prepare(error),
        ExecutionError::ConnectionPoolError(error) => pool(error),
        ExecutionError::LastAttemptError(error) => attempt(error),
        ExecutionError::RequestTimeout(_) => Class::Unsure,
        ExecutionError::UseKeyspaceError(error) => use_keyspace(error),
        ExecutionError::SchemaAgreementError(error) => agreement(error),
        ExecutionError::MetadataError(error) => metadata(error),
        _ => Class::Unsure,
    }
}

fn bad_query(error: &BadQuery) -> Class {
    match error {
        BadQuery::PartitionKeyExtraction
        | BadQuery::SerializationError(_)
        | BadQuery::ValuesTooLongForKey(..)
        | BadQuery::TooManyQueriesInBatchStatement(_) => Class::Bug,
        _ => Class::Unsure,
    }
}

fn prepare(error: &PrepareError) -> Class {
    match error {
        PrepareError::ConnectionPoolError(error) => pool(error),
        PrepareError::AllAttemptsFailed { first_attempt } => attempt(first_attempt),
        // Nodes of different versions, in the middle of an upgrade.
        PrepareError::PreparedStatementIdsMismatch => Class::Outage,
        _ => Class::Unsure,
    }
}

fn attempt(error: &RequestAttemptError) -> Class {
    match error {
        RequestAttemptError::DbError(error, _) => database(error),
        RequestAttemptError::BrokenConnectionError(_) => Class::Outage,
        // Every stream of the connection waits for an answer: an overload on this side.
        RequestAttemptError::UnableToAllocStreamId => Class::Unsure,
        RequestAttemptError::SerializationError(_)
        | RequestAttemptError::CqlRequestSerialization(_)
        | RequestAttemptError::BodyExtensionsParseError(_)
        | RequestAttemptError::CqlResultParseError(_)
        | RequestAttemptError::CqlErrorParseError(_)
        | RequestAttemptError::UnexpectedResponse(_)
        | RequestAttemptError::RepreparedIdChanged { .. }
        | RequestAttemptError::RepreparedIdMissingInBatch
        | RequestAttemptError::NonfinishedPagingState => Class::Bug,
        _ => Class::Unsure,
    }
}

/// The codes of the server (CQL protocol v4, section 9).
fn database(error: &DbError) -> Class {
    match error {
        DbError::Unavailable { .. } | DbError::IsBootstrapping => Class::Outage,
        // The outcome is unknown, or the server asks to come back later.
        DbError::Overloaded
        | DbError::TruncateError
        | DbError::ReadTimeout { .. }
        | DbError::WriteTimeout { .. }
        | DbError::ReadFailure { .. }
        | DbError::WriteFailure { .. }
        | DbError::RateLimitReached { .. }
        | DbError::ServerError
        | DbError::Other(_) => Class::Unsure,
        // The driver has prepared it again, and another that did so at the same moment made the
        // server forget it once more. Nothing was done.
        DbError::Unprepared { .. } => Class::Unsure,
        DbError::AuthenticationError | DbError::Unauthorized | DbError::ConfigError => {
            Class::Config
        }
        DbError::SyntaxError
        | DbError::Invalid
        | DbError::AlreadyExists { .. }
        | DbError::FunctionFailure { .. }
        | DbError::ProtocolError => Class::Bug,
        _ => Class::Unsure,
    }
}

fn pool(error: &ConnectionPoolError) -> Class {
    match error {
        ConnectionPoolError::Broken {
            last_connection_error,
        } => connection(last_connection_error),
        ConnectionPoolError::NodeDisabledByHostFilter => Class::Config,
        _ => Class::Outage,
    }
}

fn connection(error: &ConnectionError) -> Class {
    match error {
        ConnectionError::ConnectionSetupRequestError(error) => match error.get_error() {
            ConnectionSetupRequestErrorKind::DbError(error, _) => match database(error) {
                Class::Config => Class::Config,
                // During the handshake nothing was asked yet, so nothing is unsure.
                _ => Class::Outage,
            },
            ConnectionSetupRequestErrorKind::StartAuthSessionError(_)
            | ConnectionSetupRequestErrorKind::AuthChallengeEvaluationError(_)
            | ConnectionSetupRequestErrorKind::AuthFinishError(_)
            | ConnectionSetupRequestErrorKind::MissingAuthentication => Class::Config,
            _ => Class::Outage,
        },
        _ => Class::Outage,
    }
}

fn session(error: &NewSessionError) -> Class {
    match error {
        // Names come late in a cluster that boots, so a name that does not resolve is waited for.
        NewSessionError::FailedToResolveAnyHostname(_) => Class::Outage,
        NewSessionError::EmptyKnownNodesList | NewSessionError::IllegalConfig(_) => Class::Config,
        NewSessionError::MetadataError(error) => metadata(error),
        NewSessionError::UseKeyspaceError(error) => use_keyspace(error),
        _ => Class::Outage,
    }
}

fn metadata(error: &MetadataError) -> Class {
    match error {
        MetadataError::ConnectionPoolError(error) => pool(error),
        MetadataError::FetchError(error) => match &error.error {
            MetadataFetchErrorKind::PrepareError(error) => attempt(error),
            _ => Class::Outage,
        },
        // The nodes of a cluster that boots tell half of the truth.
        _ => Class::Outage,
    }
}

fn use_keyspace(error: &UseKeyspaceError) -> Class {
    match error {
        UseKeyspaceError::BadKeyspaceName(_) | UseKeyspaceError::KeyspaceNameMismatch { .. } => {
            Class::Config
        }
        UseKeyspaceError::RequestError(error) => attempt(error),
        _ => Class::Outage,
    }
}

fn agreement(error: &SchemaAgreementError) -> Class {
    match error {
        SchemaAgreementError::ConnectionPoolError(error) => pool(error),
        SchemaAgreementError::PrepareError(error) => prepare(error),
        SchemaAgreementError::RequestError(error) => attempt(error),
        _ => Class::Outage,
    }
}

#[cfg(test)]
mod tests;
