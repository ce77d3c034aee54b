//! What can go wrong with Postgres, and what each failure means for the work that met it.
//!
//! Owns the one table from SQLSTATE to [`Class`] (D-12).

use std::{error::Error as StdError, io, time::Duration};

use deadpool_postgres::PoolError;
use events::Class;
use tokio_postgres::error::SqlState;

/// A failed operation on Postgres.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The connection URL cannot be read.
    #[error("invalid postgres url")]
    Url {
        /// What is wrong with it; never the URL, which may hold a password.
        #[source]
        source: tokio_postgres::Error,
    },
    /// A pool of no connections.
    #[error("postgres pool size must be at least 1")]
    PoolSize,
    /// The pool could not be built.
    #[error("cannot build the postgres pool")]
    Pool {
        /// What the pool said.
        #[source]
        source: Box<dyn StdError + Send + Sync>,
    },
    /// No connection could be had.
    #[error("cannot get a postgres connection")]
    Get {
        /// What the pool said.
        #[source]
        source: Box<PoolError>,
    },
    /// A statement failed, or the connection broke while it ran.
    #[error("cannot {doing} in postgres")]
    Sql {
        /// What was being tried.
        doing: &'static str,
        /// What the driver said.
        #[source]
        source: tokio_postgres::Error,
    },
    /// The server did not answer, not even with its own timeout.
    #[error("cannot {doing} in postgres: no answer within {limit:?}")]
    Silent {
        /// What was being tried.
        doing: &'static str,
        /// How long this side waited.
        limit: Duration,
    },
    /// A ledger entry of another epoch than the current one. It is never accepted later.
    #[error("ledger entry of epoch {given} refused: the current epoch is {current}")]
    OtherEpoch {
        /// The epoch of the entry.
        given: i64,
        /// The newest epoch in the database.
        current: i64,
    },
    /// The database has no epoch row: it was not migrated to the end.
    #[error("the database has no epoch: run `tideline migrate`")]
    NoEpoch,
    /// The schema is older than this program asks for.
    #[error("schema version {found} found, at least {expected} needed: run `tideline migrate`")]
    NotMigrated {
        /// The newest version applied; 0 when there is none.
        found: i32,
        /// The newest version compiled in.
        expected: i32,
    },
    /// The migration runner failed.
    #[error("cannot apply the postgres migrations")]
    Migration {
        /// What the runner said.
        #[source]
        source: Box<refinery::Error>,
    },
    /// A name that is put into a statement as it is, and does not have the form for it.
    #[error("invalid {what} {name:?}: use 1 to 63 lower-case letters, digits and '_'")]
    Name {
        /// `slot` or `publication`.
        what: &'static str,
        /// The name that was refused.
        name: String,
    },
    /// Every id drawn for a post was taken by a concurrent one.
    #[error("no free post id after {attempts} attempts")]
    PostId {
        /// How many ids were drawn.
        attempts: u32,
    },
    /// A stored value that no version of this program writes.
    #[error("unexpected value of {what} in postgres")]
    Value {
        /// The column.
        what: &'static str,
    },
}

impl Error {
    /// What the failure means for the work that met it.
    pub fn class(&self) -> Class {
        match self {
            Self::Url { .. } | Self::PoolSize | Self::Pool { .. } | Self::Name { .. } => {
                Class::Config
            }
            Self::Get { source } => match source.as_ref() {
                PoolError::Backend(source) => of_driver(source),
                PoolError::Timeout(_) => Class::Outage,
                PoolError::Closed
                | PoolError::NoRuntimeSpecified
                | PoolError::PostCreateHook(_) => Class::Bug,
            },
            Self::Sql { source, .. } => of_driver(source),
            Self::Silent { .. } | Self::PostId { .. } => Class::Unsure,
            Self::OtherEpoch { .. } => Class::Record,
            // Services wait for the operator's `migrate`, which may still be running.
            Self::NoEpoch | Self::NotMigrated { .. } => Class::Outage,
            Self::Migration { source } => of_migration(source),
            Self::Value { .. } => Class::Bug,
        }
    }

    /// The SQLSTATE, if the server sent one.
    pub fn sql_state(&self) -> Option<&SqlState> {
        match self {
            Self::Sql { source, .. } => source.code(),
            Self::Get { source } => match source.as_ref() {
                PoolError::Backend(source) => source.code(),
                _ => None,
            },
            _ => None,
        }
    }

    /// Whether this is a violation of the unique constraint or index of this name.
    pub(crate) fn violates(&self, constraint: &str) -> bool {
        match self {
            Self::Sql { source, .. } => source.as_db_error().is_some_and(|error| {
                *error.code() == SqlState::UNIQUE_VIOLATION
                    && error.constraint() == Some(constraint)
            }),
            _ => false,
        }
    }
}

/// The class of a SQLSTATE. Source: the manual's appendix A, "PostgreSQL Error Codes".
pub fn of_sql_state(code: &str) -> Class {
    match code {
        // Statement or lock timeout; serialization failure; deadlock; idle in transaction:
        // nothing is known to be wrong with the work.
        "57014" | "55P03" | "40001" | "40P01" | "40003" | "25P03" => Class::Unsure,
        // Shutting down, crashed, starting up, idle session closed.
        "57P01" | "57P02" | "57P03" | "57P05" => Class::Outage,
        // A standby took the place of the primary; a slot is held by another process.
        "25006" | "55006" => Class::Outage,
        // The database is gone; wal_level, or a slot that was invalidated.
        "57P04" | "55000" => Class::Config,
        _ => match code.get(..2) {
            // Connection; insufficient resources; system error (disk).
            Some("08" | "53" | "58") => Class::Outage,
            // Authentication; no such database or schema; syntax, privilege, unknown name.
            Some("28" | "3D" | "3F" | "42") => Class::Config,
            // Data; integrity constraint.
            Some("22" | "23") => Class::Record,
            _ => Class::Bug,
        },
    }
}

fn of_driver(error: &tokio_postgres::Error) -> Class {
    if let Some(code) = error.code() {
        return of_sql_state(code.code());
    }
    if error.is_closed() || has_io_source(error) {
        Class::Outage
    } else {
        Class::Bug
    }
}

fn of_migration(error: &refinery::Error) -> Class {
    let mut source: Option<&(dyn StdError + 'static)> = error.source();
    while let Some(cause) = source {
        if let Some(driver) = cause.downcast_ref::<tokio_postgres::Error>() {
            return of_driver(driver);
        }
        source = cause.source();
    }
    // What is applied differs from what is compiled in: no retry mends that.
    Class::Config
}

/// Whether the cause is the socket rather than the server.
fn has_io_source(error: &(dyn StdError + 'static)) -> bool {
    let mut source = error.source();
    while let Some(cause) = source {
        if cause.is::<io::Error>() {
            return true;
        }
        source = cause.source();
    }
    false
}

#[cfg(test)]
mod tests {
    use super::{Class, Error, of_sql_state};

    #[test]
    fn every_sqlstate_class_has_its_meaning_d12() {
        let table = [
            ("08006", Class::Outage),
            ("53300", Class::Outage),
            ("53100", Class::Outage),
            ("57P01", Class::Outage),
            ("57P03", Class::Outage),
            ("58030", Class::Outage),
            ("25006", Class::Outage),
            ("55006", Class::Outage),
            ("57014", Class::Unsure),
            ("55P03", Class::Unsure),
            ("40001", Class::Unsure),
            ("40P01", Class::Unsure),
            ("28P01", Class::Config),
            ("3D000", Class::Config),
            ("42P01", Class::Config),
            ("42501", Class::Config),
            ("55000", Class::Config),
            ("22021", Class::Record),
            ("23505", Class::Record),
            ("XX000", Class::Bug),
            ("0A000", Class::Bug),
            ("", Class::Bug),
        ];
        for (code, class) in table {
            assert_eq!(of_sql_state(code), class, "{code}");
        }
    }

    #[test]
    fn own_errors_have_a_class() {
        assert_eq!(
            Error::OtherEpoch {
                given: 1,
                current: 2
            }
            .class(),
            Class::Record
        );
        assert_eq!(
            Error::NotMigrated {
                found: 0,
                expected: 1
            }
            .class(),
            Class::Outage
        );
        assert_eq!(Error::PostId { attempts: 1 }.class(), Class::Unsure);
        assert_eq!(Error::PoolSize.class(), Class::Config);
    }
}
