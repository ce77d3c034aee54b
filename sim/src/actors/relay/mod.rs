//! A relay process: its core, and what its event loop, source and sink do with the actions.

mod connect;
mod hands;

use std::collections::{BTreeMap, VecDeque};

use events::{Namespace, Stage, route::Letter};
use pgoutput::{Begin, Commit, Insert, Lsn, Message};
use relay::core::{Attempt, Input, Limits, Lost, Moment, Relay, Router, Timing};

use self::connect::Making;
use super::{Clocks, LedgerWriter, NAMESPACE, any_of};
use crate::{
    bugs::Bug,
    invariants::{self, Live},
    world::{World, postgres::Server, producer::Producer, row},
};

/// Records in flight at most (D-13).
const ROWS: usize = 6;
/// Bytes in flight at most.
const BYTES: usize = 1 << 14;

/// A replication connection.
#[derive(Debug)]
struct Connection {
    name: u64,
    /// The step at which it began.
    since: u64,
    cuts: u64,
    /// The next commit of the log to send.
    next: usize,
    /// What is on the wire.
    wire: VecDeque<Input>,
    /// How far the server has read the log.
    read: u64,
    is_asked: bool,
}

/// A letter that the broker has, and whose row is still to be written.
#[derive(Debug)]
struct Noted {
    tag: u64,
    letter: Letter,
    uid: u64,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct RelayProcess {
    name: &'static str,
    core: Relay,
    clocks: Clocks,
    pub(crate) is_alive: bool,
    producer: Producer,
    /// Rows by tag, with the letter if it is one.
    flying: BTreeMap<u64, (u64, Option<Letter>)>,
    letters: Vec<Noted>,
    pub(crate) ledger: LedgerWriter,
    connection: Option<Connection>,
    attempt: Option<(Attempt, Making)>,
    is_probing: bool,
    saving: Option<Lsn>,
    is_reading: bool,
    wakes: Option<Moment>,
    /// The end of the last keepalive.
    keepalive: u64,
    told_epoch: i64,
    server: Server,
    /// The last connection to Postgres, also once this process is dead.
    connection_name: u64,
    /// The row whose acknowledgement the core is being told.
    acked: Option<u64>,
    router: Router,
}

impl RelayProcess {
    pub(crate) fn start(name: &'static str, world: &mut World) -> Self {
        let namespace = Namespace::new(NAMESPACE).expect("a namespace of one letter");
        let router = Router::new(&namespace, "", |_| row::MAX_BYTES);
        let limits = Limits {
            rows: ROWS,
            bytes: BYTES,
        };
        let timing = Timing {
            startup_budget_us: u64::MAX / 2,
            ..Timing::default()
        };
        let seed = world.rng.u64(..);
        world.tell(name, || "starts".to_owned());
        Self {
            name,
            core: Relay::new(router.clone(), limits, timing, seed),
            router,
            clocks: Clocks::start(world),
            is_alive: true,
            producer: Producer::default(),
            flying: BTreeMap::new(),
            letters: Vec::new(),
            ledger: LedgerWriter::new(Stage::Published),
            connection: None,
            attempt: None,
            is_probing: false,
            saving: None,
            is_reading: true,
            wakes: Some(Moment(0)),
            keepalive: 0,
            told_epoch: 0,
            server: world.pg.server.clone(),
            connection_name: 0,
            acked: None,
        }
    }

    /// What it goes by.
    pub(crate) const fn name(&self) -> &'static str {
        self.name
    }

    pub(crate) fn crash_if_alive(&mut self, world: &mut World) {
        if self.is_alive {
            self.crash(world);
        }
    }

    /// It dies where it stands.
    fn crash(&mut self, world: &mut World) {
        world.tell(self.name, || "dies".to_owned());
        self.is_alive = false;
        self.producer.abandon(world);
        self.ledger.lose(world);
        self.connection = None;
        self.attempt = None;
        // The server notices at once, or keeps the slot for the dead until it does.
        if world.fails(500) {
            world.dead_connections.push(self.connection_name);
        } else {
            world.pg.let_go(self.connection_name);
        }
    }

    /// Asks it to stop in good order.
    pub(crate) fn stop(&mut self, world: &mut World) {
        if self.is_alive {
            world.tell(self.name, || "is asked to stop".to_owned());
            self.input(Input::Shutdown, world);
        }
    }

    /// Cuts its connection.
    pub(crate) fn hang_up(&mut self, world: &mut World) {
        if let Some(connection) = self.connection.take() {
            world.pg.let_go(connection.name);
            self.input(Input::Lost(Lost::connection("cut")), world);
        }
    }

    /// What it holds of a row, if it is connected to the slot.
    pub(crate) fn live(&self, world: &World, uid: u64) -> Option<Live> {
        let connection = self.connection.as_ref()?;
        let holds = world.pg.slot.and_then(|slot| slot.holder) == Some(connection.name);
        (self.is_alive && holds).then(|| Live {
            since: connection.since,
            is_in_flight: self.flying.values().any(|(each, _)| *each == uid),
        })
    }

    /// Does one thing. Whether there was any.
    pub(crate) fn step(&mut self, world: &mut World) -> bool {
        if !self.is_alive {
            return false;
        }
        any_of(
            self,
            world,
            &[
                Self::tick,
                Self::report,
                Self::read,
                Self::read,
                Self::connect_on,
                Self::probe_on,
                Self::save_on,
                Self::write_letter,
                Self::flush,
            ],
        )
    }

    /// The broker takes a record of it.
    pub(crate) fn produce_on(&mut self, world: &mut World) -> bool {
        self.producer.advance(world)
    }

    /// Whether nothing of it is under way.
    pub(crate) fn is_idle(&self) -> bool {
        !self.is_alive
            || (self.producer.is_idle() && self.letters.is_empty() && self.ledger.is_idle())
    }

    fn now(&self, world: &World) -> Moment {
        Moment(self.clocks.monotonic(world))
    }

    fn input(&mut self, input: Input, world: &mut World) {
        let now = self.now(world);
        let actions = self.core.step(input, now);
        for action in actions {
            if !self.is_alive {
                return;
            }
            self.carry_out(action, world);
            if world.fails(1) {
                // At any action, between any two.
                self.crash(world);
            }
        }
        let limit = ROWS + 1;
        let rows = self.core.gauges().rows;
        invariants::bounded(world, "records in flight in a relay", rows, limit);
    }

    fn tick(&mut self, world: &mut World) -> bool {
        let is_due = self.wakes.is_some_and(|at| self.now(world) >= at);
        if is_due {
            self.wakes = None;
            self.input(Input::Tick, world);
        }
        is_due
    }

    fn flush(&mut self, world: &mut World) -> bool {
        if let Some(number) = self
            .ledger
            .newer_epoch
            .take()
            .filter(|number| *number != self.told_epoch)
        {
            self.told_epoch = number;
            self.input(Input::Epoch(connect::naming(number)), world);
            return true;
        }
        self.ledger.flush(world)
    }

    fn probe_on(&mut self, world: &mut World) -> bool {
        if !std::mem::take(&mut self.is_probing) {
            return false;
        }
        let answers = world.log.is_up && !world.fails(50);
        self.input(
            if answers {
                Input::SinkUp
            } else {
                Input::SinkDown
            },
            world,
        );
        true
    }

    /// Takes the next thing off the wire.
    fn read(&mut self, world: &mut World) -> bool {
        let never_pauses = world.has_bug(Bug::NeverPause);
        if !self.is_reading && !never_pauses {
            return false;
        }
        let Some(connection) = &mut self.connection else {
            return false;
        };
        // A slot that is dropped or given up takes its connection with it.
        let holds = world
            .pg
            .slot
            .is_some_and(|slot| slot.holder == Some(connection.name));
        if !world.pg.is_up || !holds || connection.cuts != world.pg.cuts {
            self.hang_up(world);
            return true;
        }
        if connection.wire.is_empty() && !connection.send(world) {
            return false;
        }
        let Some(input) = connection.wire.pop_front() else {
            return false;
        };
        if let Input::Keepalive { end, .. } = &input {
            self.keepalive = end.as_u64();
            if world.has_bug(Bug::SilentWhenIdle) {
                return true;
            }
        }
        if matches!(input, Input::Lost(_)) {
            let name = connection.name;
            self.connection = None;
            world.pg.let_go(name);
        }
        self.input(input, world);
        true
    }
}

impl Connection {
    /// The server sends: a transaction, or a sign of life.
    fn send(&mut self, world: &mut World) -> bool {
        let Some(commit) = world.pg.wal.get(self.next).cloned() else {
            return self.send_keepalive(world);
        };
        if commit.is_unpublished {
            let text = "the publication was missing here";
            self.wire.push_back(Input::Lost(Lost::publication(text)));
            return true;
        }
        self.next += 1;
        if world.odds(300) {
            self.wire.push_back(keepalive(commit.start, false));
        }
        let start = Lsn::new(commit.start);
        let begin = Message::Begin(Begin {
            final_lsn: start,
            commit_time: commit.time_us,
            xid: u32::try_from(commit.xid).unwrap_or_default(),
        });
        self.wire.push_back(Input::Message(start, begin));
        for row in &commit.rows {
            let insert = Message::Insert(Insert {
                relation: row::OUTBOX,
                new: row.tuple(),
            });
            self.wire.push_back(Input::Message(start, insert));
            if world.odds(50) {
                self.wire.push_back(keepalive(commit.start, true));
            }
        }
        let end = Lsn::new(commit.end);
        let message = Message::Commit(Commit {
            commit_lsn: start,
            end_lsn: end,
            commit_time: commit.time_us,
        });
        self.wire.push_back(Input::Message(end, message));
        self.read = commit.end;
        true
    }

    fn send_keepalive(&mut self, world: &mut World) -> bool {
        let end = world.pg.lsn;
        let is_news = end > self.read;
        if !is_news && !self.is_asked && !world.fails(20) {
            return false;
        }
        self.is_asked = false;
        self.read = end;
        let asks = world.odds(200);
        self.wire.push_back(keepalive(end, asks && is_news));
        true
    }
}

fn keepalive(end: u64, reply_requested: bool) -> Input {
    Input::Keepalive {
        end: Lsn::new(end),
        reply_requested,
    }
}
