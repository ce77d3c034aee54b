//! The table of classes, code by code.

use scylla::errors::{BrokenConnectionErrorKind, WriteType};
use scylla::statement::Consistency;

use super::*;

fn of(error: DbError) -> Class {
    failed(RequestAttemptError::DbError(error, "text of the server".into()).into())
}

fn failed(error: ExecutionError) -> Class {
    StoreError::execute(Operation::Write)(error).class()
}

#[test]
fn d_12_what_a_repeat_may_mend_is_unsure() {
    let consistency = Consistency::LocalQuorum;
    let write_type = WriteType::UnloggedBatch;
    for error in [
        DbError::Overloaded,
        DbError::TruncateError,
        DbError::ServerError,
        DbError::Other(0x7777),
        DbError::WriteTimeout {
            consistency,
            received: 1,
            required: 2,
            write_type: write_type.clone(),
        },
        DbError::WriteFailure {
            consistency,
            received: 1,
            required: 2,
            numfailures: 1,
            write_type,
        },
        DbError::ReadTimeout {
            consistency,
            received: 0,
            required: 1,
            data_present: false,
        },
        DbError::ReadFailure {
            consistency,
            received: 0,
            required: 1,
            numfailures: 1,
            data_present: false,
        },
        DbError::RateLimitReached {
            op_type: scylla::errors::OperationType::Write,
            rejected_by_coordinator: true,
        },
        // Forgotten again right after the driver had prepared it anew.
        DbError::Unprepared {
            statement_id: Default::default(),
        },
    ] {
        assert_eq!(of(error.clone()), Class::Unsure, "{error}");
    }
    assert_eq!(
        failed(ExecutionError::RequestTimeout(Duration::from_secs(4))),
        Class::Unsure
    );
    assert_eq!(
        failed(RequestAttemptError::UnableToAllocStreamId.into()),
        Class::Unsure
    );
}

#[test]
fn d_12_a_store_that_is_down_is_an_outage() {
    let consistency = Consistency::LocalQuorum;
    assert_eq!(
        of(DbError::Unavailable {
            consistency,
            required: 2,
            alive: 1
        }),
        Class::Outage
    );
    assert_eq!(of(DbError::IsBootstrapping), Class::Outage);
    assert_eq!(failed(ExecutionError::EmptyPlan), Class::Outage);
    assert_eq!(
        failed(ConnectionPoolError::Initializing.into()),
        Class::Outage
    );
    let last_connection_error = ConnectionError::ConnectTimeout;
    assert_eq!(
        failed(
            ConnectionPoolError::Broken {
                last_connection_error
            }
            .into()
        ),
        Class::Outage
    );
    let broken = BrokenConnectionErrorKind::ChannelError.into();
    assert_eq!(
        failed(RequestAttemptError::BrokenConnectionError(broken).into()),
        Class::Outage
    );
    let connect = StoreError::Connect {
        nodes: "127.0.0.1:1".into(),
        source: Box::new(NewSessionError::MetadataError(
            ConnectionPoolError::Broken {
                last_connection_error: ConnectionError::ConnectTimeout,
            }
            .into(),
        )),
    };
    assert_eq!(connect.class(), Class::Outage);
    let behind = StoreError::SchemaBehind {
        keyspace: "k".into(),
        found: 0,
        needed: 1,
    };
    assert_eq!(behind.class(), Class::Outage);
}

#[test]
fn what_an_operator_must_change_is_configuration() {
    for error in [
        DbError::AuthenticationError,
        DbError::Unauthorized,
        DbError::ConfigError,
    ] {
        assert_eq!(of(error.clone()), Class::Config, "{error}");
    }
    let none = StoreError::Connect {
        nodes: String::new(),
        source: Box::new(NewSessionError::EmptyKnownNodesList),
    };
    assert_eq!(none.class(), Class::Config);
    assert_eq!(
        StoreError::Setting {
            reason: "bad".into()
        }
        .class(),
        Class::Config
    );
}

#[test]
fn what_the_program_did_wrong_is_a_bug() {
    for error in [
        DbError::SyntaxError,
        DbError::Invalid,
        DbError::AlreadyExists {
            keyspace: "k".into(),
            table: "t".into(),
        },
        DbError::FunctionFailure {
            keyspace: "k".into(),
            function: "f".into(),
            arg_types: Vec::new(),
        },
        DbError::ProtocolError,
    ] {
        assert_eq!(of(error.clone()), Class::Bug, "{error}");
    }
    assert_eq!(failed(BadQuery::PartitionKeyExtraction.into()), Class::Bug);
    assert_eq!(
        failed(RequestAttemptError::RepreparedIdMissingInBatch.into()),
        Class::Bug
    );
    assert_eq!(
        failed(RequestAttemptError::NonfinishedPagingState.into()),
        Class::Bug
    );
}

#[test]
fn a_failed_preparation_is_classed_by_its_first_attempt() {
    let prepare = |error| {
        StoreError::prepare(Operation::Page)(PrepareError::AllAttemptsFailed {
            first_attempt: RequestAttemptError::DbError(error, String::new()),
        })
        .class()
    };
    assert_eq!(prepare(DbError::Unauthorized), Class::Config);
    assert_eq!(prepare(DbError::IsBootstrapping), Class::Outage);
    assert_eq!(prepare(DbError::SyntaxError), Class::Bug);
}

#[test]
fn the_text_says_what_was_tried_and_not_its_source() {
    let error = StoreError::execute(Operation::Write)(ExecutionError::EmptyPlan);
    assert_eq!(error.to_string(), "write timeline rows");
    assert!(std::error::Error::source(&error).is_some());
}
