//! What can go wrong around the core, and what each failure means.
//!
//! One exhaustive [`class`](ConnectError::class); the state that names a failure to connect is
//! decided here too, next to it.

use events::Class;
use replication::ReplicationError;
use runtime::report::chain;

use crate::core::{Failure, State};

/// The replication connection could not be brought to stream.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The connection or a command on it failed.
    #[error("open the replication stream")]
    Replication(#[from] ReplicationError),
    /// Ordinary SQL failed.
    #[error("check the replication set-up")]
    Database(#[from] database::Error),
    /// The server is a standby.
    #[error(
        "the server is in recovery: point the url at the primary; this is tried again, since it may be promoted"
    )]
    Recovery,
    /// SQL and replication lead to different servers: a failover is under way.
    #[error(
        "replication leads to server {replication} and sql to server {sql}: a failover may be under way"
    )]
    TwoServers {
        /// System identifier and timeline of the replication connection.
        replication: String,
        /// Those of the pool's connection.
        sql: String,
    },
    /// Another relay holds the slot.
    #[error("slot {slot} is held by process {pid} of the server")]
    SlotBusy {
        /// The slot.
        slot: String,
        /// The walsender that holds it.
        pid: String,
    },
    /// A slot that was in use is not there.
    #[error(
        "slot {slot} is missing although it was in use up to {confirmed}: rows committed since may be lost to it; \
         create it again with `select pg_create_logical_replication_slot('{slot}', 'pgoutput')`, and the sweep \
         delivers what the ledger lacks"
    )]
    SlotMissing {
        /// The slot.
        slot: String,
        /// The position noted for it.
        confirmed: pgoutput::Lsn,
    },
    /// The server gave the slot's log up.
    #[error(
        "slot {slot} is lost ({why}): drop it with `select pg_drop_replication_slot('{slot}')`, create it again with \
         `select pg_create_logical_replication_slot('{slot}', 'pgoutput')`, and the sweep delivers what the ledger lacks; \
         max_slot_wal_keep_size is too small for such an outage"
    )]
    SlotInvalidated {
        /// The slot.
        slot: String,
        /// What the server says.
        why: String,
    },
    /// The slot could not be made in time: it waits for every open transaction.
    #[error("create slot {slot}: waited too long for {blockers}")]
    SlotBlocked {
        /// The slot.
        slot: String,
        /// The oldest transactions that are open.
        blockers: String,
    },
    /// The slot is not one of ours.
    #[error(
        "slot {slot} is of plugin {plugin} and database {database}: choose another postgres.slot"
    )]
    SlotForeign {
        /// The slot.
        slot: String,
        /// Its plugin.
        plugin: String,
        /// Its database.
        database: String,
    },
    /// The publication is missing or is not what the relay needs.
    #[error("publication {publication} {fault}: run `{fix}`")]
    Publication {
        /// The publication.
        publication: String,
        /// What is wrong.
        fault: &'static str,
        /// The statement that mends it.
        fix: String,
    },
}

impl ConnectError {
    /// What the failure means.
    pub fn class(&self) -> Class {
        match self {
            Self::Replication(error) if error.is_refused_login() => Class::Config,
            // Waiting does not raise wal_level; a lost slot has its own variant.
            Self::Replication(error) if error.sqlstate() == Some("55000") => Class::Config,
            Self::Replication(_) => Class::Outage,
            Self::Database(error) => error.class(),
            Self::SlotForeign { .. } => Class::Config,
            Self::Recovery
            | Self::TwoServers { .. }
            | Self::SlotBusy { .. }
            | Self::SlotMissing { .. }
            | Self::SlotInvalidated { .. }
            | Self::SlotBlocked { .. }
            | Self::Publication { .. } => Class::Outage,
        }
    }

    /// The state that names it.
    pub fn state(&self) -> State {
        match self {
            Self::Replication(error) if error.is_slot_busy() => State::Standby,
            Self::Replication(error) if error.is_slot_missing() || error.is_slot_invalidated() => {
                State::SlotLost
            }
            Self::SlotBusy { .. } => State::Standby,
            Self::SlotMissing { .. } | Self::SlotInvalidated { .. } => State::SlotLost,
            Self::Publication { .. } => State::PublicationGap,
            Self::Replication(_)
            | Self::Database(_)
            | Self::Recovery
            | Self::TwoServers { .. }
            | Self::SlotBlocked { .. }
            | Self::SlotForeign { .. } => State::Connecting,
        }
    }

    /// What the core has to know.
    pub fn failure(&self) -> Failure {
        Failure {
            state: self.state(),
            class: self.class(),
            text: chain(self).to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use replication::{ServerMessage, Step};

    use super::*;

    fn refused(step: Step, sqlstate: &str) -> ConnectError {
        let source = Box::new(ServerMessage {
            sqlstate: sqlstate.to_owned(),
            ..ServerMessage::default()
        });
        ConnectError::Replication(ReplicationError::Server { step, source })
    }

    #[test]
    fn every_failure_has_its_state_and_class() {
        let slot = || "s".to_owned();
        let table = [
            (refused(Step::Start, "55006"), State::Standby, Class::Outage),
            (
                refused(Step::Start, "42704"),
                State::SlotLost,
                Class::Outage,
            ),
            (
                refused(Step::Authenticate, "28P01"),
                State::Connecting,
                Class::Config,
            ),
            (
                refused(Step::Authenticate, "57P03"),
                State::Connecting,
                Class::Outage,
            ),
            (ConnectError::Recovery, State::Connecting, Class::Outage),
            (
                ConnectError::SlotBusy {
                    slot: slot(),
                    pid: "1".into(),
                },
                State::Standby,
                Class::Outage,
            ),
            (
                ConnectError::SlotMissing {
                    slot: slot(),
                    confirmed: pgoutput::Lsn::ZERO,
                },
                State::SlotLost,
                Class::Outage,
            ),
            (
                ConnectError::Database(database::Error::NoEpoch),
                State::Connecting,
                Class::Outage,
            ),
            (
                ConnectError::SlotForeign {
                    slot: slot(),
                    plugin: "p".into(),
                    database: "d".into(),
                },
                State::Connecting,
                Class::Config,
            ),
        ];
        for (error, state, class) in table {
            assert_eq!((error.state(), error.class()), (state, class), "{error:?}");
        }
    }
}
