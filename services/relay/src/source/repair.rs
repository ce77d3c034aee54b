//! Mending a slot: made anew after it was lost, moved past the spot of a publication gap.
//!
//! Both skip rows for good as far as the slot goes, and both are right only because the ledger
//! tells which: each puts a request to the sweep before anything streams. Promise: a slot that
//! anybody holds is never touched, every wait is bounded, and nothing is skipped without an error
//! in the log, a counter and a request.

use database::{relay_position::Position, slots, sweep_requests};
use events::Class;
use pgoutput::Lsn;
use replication::{Connection, SystemIdentity};
use runtime::report::chain;
use tracing::{error, info, warn};

use super::{Happened, Source, slot};
use crate::config::OnSlotLost;
use crate::error::ConnectError;
use crate::source::slot::Found;

/// Why the sweep is asked to look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// The slot was made anew.
    SlotLost,
    /// The slot was moved past rows that no publication covered.
    PublicationGap,
    /// The slot stands further than this relay knows of.
    SlotAhead,
    /// The server is another one, or on another timeline.
    NewEpoch,
}

impl Request {
    /// Every reason.
    pub const ALL: [Self; 4] = [
        Self::SlotLost,
        Self::PublicationGap,
        Self::SlotAhead,
        Self::NewEpoch,
    ];

    /// The word in the table and in metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::SlotLost => "slot_lost",
            Self::PublicationGap => "publication_gap",
            Self::SlotAhead => "slot_ahead",
            Self::NewEpoch => "new_epoch",
        }
    }
}

/// SQLSTATE: the slot is held by somebody.
const IN_USE: &str = "55006";
/// SQLSTATE: there is a slot of this name already.
const EXISTS: &str = "42710";
/// SQLSTATE: there is no such slot.
const MISSING: &str = "42704";

impl Source {
    /// Finds the slot, or makes it. Answers its confirmed position.
    pub(super) async fn slot(
        &self,
        connection: &mut Connection,
        system: &SystemIdentity,
        known: Option<&Position>,
        happened: &mut Happened,
    ) -> Result<Lsn, ConnectError> {
        let slot = self.slot.as_str();
        let lost = match (slot::look(connection, slot).await?, known) {
            (Found::Usable(confirmed), _) => return Ok(confirmed),
            (Found::Nothing, None) => {
                warn!(slot, "slot does not exist and was never used: creating it");
                self.create().await?;
                return self.made(connection).await;
            }
            (Found::Nothing, Some(known)) => ConnectError::SlotMissing {
                slot: slot.to_owned(),
                confirmed: Lsn::new(known.confirmed_lsn),
            },
            (Found::Lost(why), _) => ConnectError::SlotInvalidated {
                slot: slot.to_owned(),
                why,
            },
        };
        if self.on_slot_lost == OnSlotLost::Stop {
            return Err(lost);
        }
        error!(slot, found = %chain(&lost), "slot lost: making it anew, the sweep delivers what the ledger lacks");
        if matches!(lost, ConnectError::SlotInvalidated { .. }) {
            self.drop_lost().await?;
        }
        self.create().await?;
        happened.slot_recreated = true;
        // Should this fail, the next attempt finds the slot ahead of its note, and asks.
        self.ask(Request::SlotLost, happened).await?;
        let confirmed = self.made(connection).await?;
        self.positions.save(system, confirmed).await?;
        Ok(confirmed)
    }

    /// Moves the slot past a spot where the publication was missing (C34): before version 18 the
    /// server fails there for ever, and later ones skip the rows on every connection anew.
    pub(super) async fn mend_gap(
        &self,
        connection: &mut Connection,
        happened: &mut Happened,
    ) -> Result<(), ConnectError> {
        let Found::Usable(from) = slot::look(connection, &self.slot).await? else {
            // A slot that has to be made anew has no gap.
            happened.gap_mended = true;
            return Ok(());
        };
        let advanced = slots::advance(&self.pool.get().await?, &self.slot).await;
        let to = advanced.map_err(|error| self.held_or(error))?;
        happened.gap_mended = true;
        error!(
            slot = self.slot,
            %from,
            to = %Lsn::new(to),
            "publication was missing: slot moved past the rows in between, the sweep delivers them"
        );
        // Should this fail, the next attempt finds the slot ahead of what is known, and asks.
        self.ask(Request::PublicationGap, happened).await
    }

    /// Puts a request to the sweep.
    pub(super) async fn ask(
        &self,
        request: Request,
        happened: &mut Happened,
    ) -> Result<(), ConnectError> {
        let client = self.pool.get().await?;
        sweep_requests::add(&client, request.as_str(), None).await?;
        happened.requests.push(request);
        Ok(())
    }

    /// The slot that was just made, unless somebody has taken it meanwhile.
    async fn made(&self, connection: &mut Connection) -> Result<Lsn, ConnectError> {
        let slot = self.slot.clone();
        match slot::look(connection, &slot).await? {
            Found::Usable(confirmed) => Ok(confirmed),
            Found::Nothing => Err(ConnectError::SlotMissing {
                slot,
                confirmed: Lsn::ZERO,
            }),
            Found::Lost(why) => Err(ConnectError::SlotInvalidated { slot, why }),
        }
    }

    async fn drop_lost(&self) -> Result<(), ConnectError> {
        match slots::drop_slot(&self.pool.get().await?, &self.slot).await {
            Ok(_) => Ok(()),
            // Another relay was faster.
            Err(error) if has_state(&error, MISSING) => Ok(()),
            Err(error) => Err(self.held_or(error)),
        }
    }

    /// Makes the slot: waits for every open transaction, for as long as a statement may take
    /// (C33).
    async fn create(&self) -> Result<(), ConnectError> {
        let slot = self.slot.as_str();
        let client = self.pool.get().await?;
        match slots::create(&client, slot).await {
            Ok(lsn) => {
                info!(slot, from = %Lsn::new(lsn), "slot created");
                Ok(())
            }
            // Another relay was faster.
            Err(error) if has_state(&error, EXISTS) => Ok(()),
            Err(error) if error.class() == Class::Unsure => Err(ConnectError::SlotBlocked {
                slot: slot.to_owned(),
                blockers: self.blockers().await?,
            }),
            Err(error) => Err(error.into()),
        }
    }

    /// The transactions that a new slot waits for.
    async fn blockers(&self) -> Result<String, ConnectError> {
        const BLOCKERS: &str = "select coalesce(string_agg(format('%s since %s', who, since), ', ' order by since), \
                'transactions that ended meanwhile') \
            from (select format('process %s (%s)', pid, application_name) as who, xact_start as since \
                  from pg_stat_activity where backend_xid is not null and pid <> pg_backend_pid() \
                  union all select format('prepared transaction %s', gid), prepared from pg_prepared_xacts) t";
        Ok(
            match self.pool.get().await?.query_one(BLOCKERS, &[]).await {
                Ok(row) => row.try_get(0).unwrap_or_default(),
                Err(_) => String::from("transactions that could not be read"),
            },
        )
    }

    fn held_or(&self, error: database::Error) -> ConnectError {
        if has_state(&error, IN_USE) {
            ConnectError::SlotBusy {
                slot: self.slot.clone(),
                pid: "another one".to_owned(),
            }
        } else {
            error.into()
        }
    }
}

fn has_state(error: &database::Error, code: &str) -> bool {
    error.sql_state().is_some_and(|state| state.code() == code)
}
