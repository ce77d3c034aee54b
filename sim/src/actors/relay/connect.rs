//! Opening a stream: what `source` does and mends before the server sends, in its order.

use std::collections::VecDeque;

use events::{Class, envelope};
use pgoutput::{Lsn, Message};
use relay::core::{Attempt, Epoch, Failure, Input, State};

use super::{Connection, RelayProcess};
use crate::{
    actors::DATABASE,
    invariants,
    world::{
        SECOND, World,
        postgres::{self, Slot},
        row,
    },
};

/// How long a slot may take to be made.
const MADE_WITHIN: u64 = 30 * SECOND;
/// A third of `wal_sender_timeout`.
const STATUS_INTERVAL: u64 = 10 * SECOND;

/// How far an attempt is with the slot.
#[derive(Clone, Debug)]
pub(super) enum Making {
    /// Nothing was looked at.
    Begun,
    /// The slot is being made: it waits for these transactions.
    Slot {
        since: u64,
        name: u64,
        xids: Vec<u64>,
        was_lost: bool,
    },
}

/// The epoch of this number as records name it.
pub(super) fn naming(number: i64) -> Epoch {
    Epoch {
        number,
        source: envelope::source(DATABASE, number),
    }
}

fn failure(state: State, text: &str) -> Failure {
    Failure {
        state,
        class: Class::Outage,
        text: text.to_owned(),
    }
}

/// What an attempt came to.
enum Came {
    Connected {
        confirmed: u64,
    },
    Refused(Failure),
    /// It waits.
    Making(Making),
}

impl RelayProcess {
    pub(super) fn begin_attempt(&mut self) {
        self.attempt = Some((self.core.attempt(), Making::Begun));
    }

    /// One step of the attempt.
    pub(super) fn connect_on(&mut self, world: &mut World) -> bool {
        let Some((attempt, making)) = self.attempt.take() else {
            return false;
        };
        let came = match making {
            Making::Begun => self.look(attempt, world),
            Making::Slot {
                since,
                name,
                xids,
                was_lost,
            } => self.make(since, name, xids, was_lost, world),
        };
        if !self.is_alive {
            return true;
        }
        match came {
            Came::Connected { confirmed } => self.stream(confirmed, world),
            Came::Refused(failure) => {
                self.leave_slot(world);
                self.input(Input::Refused(failure), world);
            }
            Came::Making(making) => self.attempt = Some((attempt, making)),
        }
        true
    }

    /// A slot that was being made for this process is no more.
    pub(super) fn leave_slot(&self, world: &mut World) {
        world.pg.let_go(self.connection_name);
    }

    fn look(&mut self, attempt: Attempt, world: &mut World) -> Came {
        if !world.pg.is_up || world.fails(50) {
            return Came::Refused(failure(State::Connecting, "postgres does not answer"));
        }
        if !world.pg.is_published {
            return Came::Refused(failure(State::PublicationGap, "the publication is missing"));
        }
        if postgres::here(world) {
            world.pg.requests += 1;
        }
        self.server = world.pg.server.clone();
        self.told_epoch = world.pg.epoch().number;
        if world.fails(30) {
            return Came::Refused(failure(State::Connecting, "cut while it was looked at"));
        }
        let is_held = world.pg.slot.is_some_and(|slot| slot.holder.is_some());
        if is_held {
            return Came::Refused(failure(State::Standby, "the slot is held"));
        }
        let mut is_mended = false;
        if attempt.behind_gap {
            self.mend_gap(world);
            is_mended = true;
            self.input(Input::GapMended, world);
        }
        match world.pg.slot {
            Some(Slot {
                confirmed: Some(confirmed),
                is_lost: false,
                ..
            }) => {
                self.compare(attempt, confirmed, is_mended, world);
                Came::Connected { confirmed }
            }
            found => {
                let was_lost = found.is_some() || world.pg.position.is_some();
                self.begin_slot(was_lost, world)
            }
        }
    }

    /// The slot is moved past the spot where the publication was missing; the sweep is asked.
    fn mend_gap(&self, world: &mut World) {
        let end = world.pg.lsn;
        if let Some(slot) = world
            .pg
            .slot
            .as_mut()
            .filter(|slot| !slot.is_lost && slot.confirmed.is_some())
        {
            slot.confirmed = slot.confirmed.max(Some(end));
            world.pg.requests += 1;
            invariants::at_skip(world, end);
            world.tell(self.name, || {
                format!("moves the slot past the gap to {end}")
            });
        }
    }

    fn compare(&self, attempt: Attempt, confirmed: u64, is_mended: bool, world: &mut World) {
        let known = world
            .pg
            .position
            .clone()
            .filter(|known| known.server == self.server);
        let Some(known) = known else {
            return self.save(Lsn::new(confirmed), world);
        };
        let expected = known.confirmed.max(attempt.confirmed.as_u64());
        if confirmed > expected && !is_mended {
            world.pg.requests += 1;
            self.save(Lsn::new(confirmed), world);
        }
    }

    /// Begins to make the slot, which waits for every transaction that runs now.
    fn begin_slot(&mut self, was_lost: bool, world: &mut World) -> Came {
        let name = self.new_connection(world);
        world.tell(self.name, || {
            format!("makes the slot (lost before: {was_lost})")
        });
        world.pg.slot = Some(Slot {
            confirmed: None,
            is_lost: false,
            holder: Some(name),
        });
        let xids = world.pg.open.iter().filter_map(|txn| txn.xid).collect();
        Came::Making(Making::Slot {
            since: world.now,
            name,
            xids,
            was_lost,
        })
    }

    fn make(
        &mut self,
        since: u64,
        name: u64,
        xids: Vec<u64>,
        was_lost: bool,
        world: &mut World,
    ) -> Came {
        let is_there = world.pg.slot.is_some_and(|slot| slot.holder == Some(name));
        if !world.pg.is_up || !is_there {
            return Came::Refused(failure(State::Connecting, "cut while the slot was made"));
        }
        let waits = world
            .pg
            .open
            .iter()
            .any(|txn| txn.xid.is_some_and(|xid| xids.contains(&xid)));
        if waits && world.now.saturating_sub(since) >= MADE_WITHIN {
            return Came::Refused(failure(
                State::Connecting,
                "the slot waits for transactions",
            ));
        }
        if waits {
            return Came::Making(Making::Slot {
                since,
                name,
                xids,
                was_lost,
            });
        }
        let confirmed = world.pg.lsn;
        if let Some(slot) = &mut world.pg.slot {
            slot.confirmed = Some(confirmed);
            slot.holder = None;
        }
        invariants::at_skip(world, confirmed);
        if was_lost {
            // Should the request fail, the next attempt finds the slot ahead, and asks.
            if world.fails(50) {
                return Came::Refused(failure(State::Connecting, "cut before the sweep was asked"));
            }
            world.pg.requests += 1;
        }
        self.save(Lsn::new(confirmed), world);
        Came::Connected { confirmed }
    }

    /// The stream begins where the slot stands.
    fn stream(&mut self, confirmed: u64, world: &mut World) {
        let name = self.new_connection(world);
        if let Some(slot) = &mut world.pg.slot {
            slot.holder = Some(name);
        }
        let next = world
            .pg
            .wal
            .iter()
            .position(|commit| commit.start >= confirmed);
        let relation = Input::Message(Lsn::ZERO, Message::Relation(row::relation()));
        self.connection = Some(Connection {
            name,
            since: world.step,
            cuts: world.pg.cuts,
            next: next.unwrap_or(world.pg.wal.len()),
            wire: VecDeque::from([relation]),
            read: confirmed,
            is_asked: false,
        });
        self.is_reading = true;
        let epoch = naming(world.pg.epoch().number);
        self.input(
            Input::Connected {
                confirmed: Lsn::new(confirmed),
                status_interval_us: STATUS_INTERVAL,
                epoch,
            },
            world,
        );
    }

    fn new_connection(&mut self, world: &mut World) -> u64 {
        self.connection_name = world.truth.name();
        self.connection_name
    }
}
