//! The relay's life cycle: `step(input, now) -> actions`.
//!
//! ```text
//!             Connected                  Failed, no progress
//!  connecting ─────────▶ streaming ──────────────────────────▶ sink_unavailable
//!    ▲  │ Refused(state)     │ Lost(state)                         │ SinkUp
//!    │  ▼                    ▼                                     │
//!    │ standby, slot_lost, publication_gap, schema_error           │
//!    └──────────── after a wait ◀──────────────────────────────────┘
//! ```
//!
//! Owns which state the relay is in and what follows from each input. Every wait is an action, so
//! nothing here sleeps. A connection is given up as a whole: what it had enqueued may still be
//! acknowledged, which empties the limits and fills the ledger, but confirms nothing.

use events::{Class, route::Routed};
use pgoutput::{Lsn, Message};

use crate::core::backoff::Backoff;
use crate::core::confirm::Confirm;
use crate::core::limits::{Cargo, Flight};
use crate::core::session::{Inserted, Session};
use crate::core::{InFlight, Limits, Moment, Router};

mod exchange;
mod reason;
mod settle;
mod words;

pub use exchange::{Action, Actions, Attempt, Epoch, Input, Timing};
pub use reason::{Failure, Lost, StopReason};
pub use words::{Gauges, Ignored, State};

/// Longest wait between attempts to reach a server that is down.
const RECONNECT_US: u64 = 5_000_000;
/// Longest wait where a person has to act, and between probes of the broker.
const REPAIR_US: u64 = 15_000_000;

/// The relay, without its hands.
#[derive(Debug)]
pub struct Relay {
    router: Router,
    epoch: i64,
    timing: Timing,
    flying: InFlight,
    backoff: Backoff,
    state: State,
    session: Option<Session>,
    generation: u64,
    /// When to leave the present state, while not streaming.
    retry_at: Option<Moment>,
    /// A connect or probe is under way; its answer is an input to come.
    asked: bool,
    started_at: Option<Moment>,
    connected_before: bool,
    behind_gap: bool,
    connected_at: Moment,
    /// When the server was last heard of, or asked again after a pause.
    heard_at: Moment,
    progress_at: Moment,
    /// Records were acknowledged since the last stored position.
    unsaved: bool,
    saved: (Lsn, Moment),
    stop_by: Option<Moment>,
    slept: Option<Moment>,
    transactions: u64,
    idle_advances: u64,
    last: (Lsn, Lsn, Lsn),
}

impl Relay {
    /// A relay that has not begun. Its first step, whatever the input, connects. `seed` spreads
    /// the waits of several processes. Until [`Input::Connected`] names the epoch, nothing is routed.
    pub fn new(router: Router, limits: Limits, timing: Timing, seed: u64) -> Self {
        Self {
            router,
            epoch: 0,
            timing,
            flying: InFlight::new(limits),
            backoff: Backoff::new(seed),
            state: State::Connecting,
            session: None,
            generation: 0,
            retry_at: Some(Moment(0)),
            asked: false,
            started_at: None,
            connected_before: false,
            behind_gap: false,
            connected_at: Moment(0),
            heard_at: Moment(0),
            progress_at: Moment(0),
            unsaved: false,
            saved: (Lsn::ZERO, Moment(0)),
            stop_by: None,
            slept: None,
            transactions: 0,
            idle_advances: 0,
            last: (Lsn::ZERO, Lsn::ZERO, Lsn::ZERO),
        }
    }

    /// Takes one input and says what to do. `now` never falls.
    pub fn step(&mut self, input: Input, now: Moment) -> Actions {
        let mut out = Actions::new();
        if self.started_at.is_none() {
            self.started_at = Some(now);
            out.push(Action::Enter(State::Connecting, "starting".to_owned()));
        }
        match input {
            Input::Connected {
                confirmed,
                status_interval_us,
                epoch,
            } => {
                self.begin_epoch(&epoch);
                self.connected(confirmed, status_interval_us, now, &mut out);
            }
            Input::GapMended => self.behind_gap = false,
            // Refusals of older entries tell nothing new.
            Input::Epoch(epoch) if epoch.number <= self.epoch => {}
            Input::Epoch(epoch) => self.begin_epoch(&epoch),
            Input::Refused(failure) => self.refused(failure, now, &mut out),
            Input::Lost(lost) => self.lost(lost, now, &mut out),
            Input::Message(at, message) => self.message(at, message, now, &mut out),
            Input::Keepalive {
                end,
                reply_requested,
            } => {
                self.heard_at = now;
                if let Some(session) = &mut self.session {
                    session.confirm.keepalive(end, reply_requested);
                }
            }
            Input::Acked(tag) => self.acked(tag, now, &mut out),
            Input::Failed(tag, class) => self.failed(tag, class, now, &mut out),
            Input::SinkUp => self.asked = false,
            Input::SinkDown => {
                self.asked = false;
                self.retry_at = Some(self.backoff.next(now, REPAIR_US));
                self.state = State::SinkUnavailable;
            }
            Input::Tick => self.slept = None,
            Input::Shutdown => {
                self.stop_by.get_or_insert(now.plus(self.timing.drain_us));
            }
        }
        if matches!(out.last(), Some(Action::Stop(_))) {
            return out;
        }
        self.settle(now, &mut out);
        out
    }

    /// What the metrics show.
    pub fn gauges(&self) -> Gauges {
        let (received, acked, confirmed) = self.session.as_ref().map_or(self.last, positions);
        Gauges {
            received,
            acked,
            confirmed,
            rows: self.flying.rows(),
            bytes: self.flying.bytes(),
            transactions: self.transactions,
            idle_advances: self.idle_advances,
        }
    }

    /// What the next connection attempt has to know.
    pub fn attempt(&self) -> Attempt {
        Attempt {
            confirmed: self.gauges().confirmed,
            behind_gap: self.behind_gap,
        }
    }

    /// The state the relay is in.
    pub const fn state(&self) -> State {
        self.state
    }

    /// Records that are made from now on carry it. Those in flight keep the one they were made
    /// under, and so do their ledger entries.
    fn begin_epoch(&mut self, epoch: &Epoch) {
        self.epoch = epoch.number;
        self.router.set_source(&epoch.source);
    }

    fn connected(&mut self, confirmed: Lsn, interval_us: u64, now: Moment, out: &mut Actions) {
        self.asked = false;
        self.generation += 1;
        self.session = Some(Session::new(
            self.generation,
            Confirm::new(confirmed, interval_us, now),
        ));
        self.flying.unpause();
        self.connected_before = true;
        self.connected_at = now;
        self.heard_at = now;
        self.progress_at = now;
        // A slot that was made anew, or another server, may stand further back.
        self.saved = (self.saved.0.min(confirmed), self.saved.1.max(now));
        self.enter(State::Streaming, format!("from {confirmed}"), out);
    }

    fn refused(&mut self, failure: Failure, now: Moment, out: &mut Actions) {
        self.asked = false;
        // The relay that holds the slot has the gap before it.
        self.behind_gap &= failure.state != State::Standby;
        let patient = now.since(self.started_at.unwrap_or(now)) < self.timing.startup_budget_us;
        if !self.connected_before
            && failure.class == Class::Config
            && failure.state == State::Connecting
        {
            out.push(Action::Stop(StopReason::Config(failure.text)));
        } else if !self.connected_before && failure.state == State::Connecting && !patient {
            out.push(Action::Stop(StopReason::Dependency(failure.text)));
        } else {
            self.wait_in(failure.state, failure.text, now, out);
        }
    }

    fn lost(&mut self, lost: Lost, now: Moment, out: &mut Actions) {
        if self.session.is_some() {
            self.behind_gap |= lost.state == State::PublicationGap;
            self.hang_up(out);
            self.wait_in(lost.state, lost.text, now, out);
        }
    }

    fn message(&mut self, at: Lsn, message: Message, now: Moment, out: &mut Actions) {
        let Some(session) = &mut self.session else {
            return;
        };
        session.confirm.receive(at);
        self.heard_at = now;
        let ignored = match message {
            Message::Begin(begin) => {
                return self.or_lose(|session| session.begin(begin, now), now, out);
            }
            Message::Insert(insert) => {
                let inserted = session.insert(insert.relation, &insert.new, &self.router);
                return self.inserted(inserted, now, out);
            }
            Message::Commit(commit) => {
                self.transactions += 1;
                return self.or_lose(|session| session.commit(commit), now, out);
            }
            Message::Relation(relation) => return session.relation(&relation),
            // Names of types: every column that is read is of a built-in type.
            Message::Type(_) | Message::Origin(_) => return,
            Message::Update(_) => Ignored::Update,
            Message::Delete(_) => Ignored::Delete,
            Message::Truncate(_) => Ignored::Truncate,
            Message::Logical(_) => Ignored::Logical,
            Message::Unknown { .. } => Ignored::Unknown,
        };
        out.push(Action::Ignored(ignored));
    }

    fn or_lose(
        &mut self,
        act: impl FnOnce(&mut Session) -> Result<(), Lost>,
        now: Moment,
        out: &mut Actions,
    ) {
        let outcome = self.session.as_mut().map_or(Ok(()), act);
        if let Err(lost) = outcome {
            self.lost(lost, now, out);
        }
    }

    fn inserted(&mut self, inserted: Result<Inserted, Lost>, now: Moment, out: &mut Actions) {
        match inserted {
            Err(lost) => self.lost(lost, now, out),
            Ok(Inserted::Stray) => out.push(Action::Ignored(Ignored::Stray)),
            Ok(Inserted::Row { txn, routed }) => {
                if self.flying.rows() == 0 {
                    self.progress_at = now;
                }
                match *routed {
                    Routed::Record(record) => {
                        let cargo = Cargo::Record(record.summary.clone());
                        let bytes = record.bytes();
                        let tag = self.flying.enter(Flight {
                            ticket: txn.ticket,
                            generation: self.generation,
                            epoch: self.epoch,
                            commit_time: txn.commit_time,
                            bytes,
                            cargo,
                        });
                        out.push(Action::Produce(tag, record));
                    }
                    Routed::Letter(letter) => {
                        let tag = self.flying.enter(Flight {
                            ticket: txn.ticket,
                            generation: self.generation,
                            epoch: self.epoch,
                            commit_time: txn.commit_time,
                            bytes: letter.bytes(),
                            cargo: Cargo::Letter,
                        });
                        out.push(Action::DeadLetter(tag, letter));
                    }
                }
            }
        }
    }

    fn acked(&mut self, tag: u64, now: Moment, out: &mut Actions) {
        // Unknown tags are reports of a producer that was thrown away.
        let Some(flight) = self.flying.leave(tag) else {
            return;
        };
        self.progress_at = now;
        self.unsaved = true;
        if let Some(session) = &mut self.session {
            session.complete(flight.ticket);
        }
        if let Cargo::Record(summary) = flight.cargo {
            out.push(Action::Published {
                event: summary.event,
                commit_time: flight.commit_time,
                epoch: flight.epoch,
            });
        }
    }

    fn failed(&mut self, tag: u64, class: Class, now: Moment, out: &mut Actions) {
        let Some(flight) = self.flying.leave(tag) else {
            return;
        };
        match (class, &flight.cargo) {
            (Class::Record, Cargo::Record(summary)) => {
                // On a connection that is gone the row will come again, and fail again.
                if self
                    .session
                    .as_ref()
                    .is_some_and(|session| session.owns(flight.generation))
                {
                    let letter = self.router.refused(summary);
                    let tag = self.flying.enter(Flight {
                        bytes: letter.bytes(),
                        cargo: Cargo::Letter,
                        ..flight
                    });
                    out.push(Action::DeadLetter(tag, letter));
                }
            }
            (Class::Config, _) => {
                out.push(Action::Stop(StopReason::Config(
                    "kafka refuses our records".to_owned(),
                )));
            }
            // One of several outcomes of a broken broker connection, or of a producer that gave
            // up for good. Records behind this one must not overtake it (D-5): all of them go,
            // and come again from Postgres.
            (Class::Outage | Class::Unsure | Class::Bug | Class::Record, _) => {
                self.hang_up(out);
                self.flying.clear();
                out.push(Action::RebuildSink);
                self.wait_in(
                    State::SinkUnavailable,
                    "a record was not acknowledged".to_owned(),
                    now,
                    out,
                );
            }
        }
    }

    fn hang_up(&mut self, out: &mut Actions) {
        if let Some(session) = self.session.take() {
            self.last = positions(&session);
            out.push(Action::Disconnect);
        }
    }

    fn wait_in(&mut self, state: State, text: String, now: Moment, out: &mut Actions) {
        self.retry_at = Some(match state {
            State::Standby => self.backoff.standby(now),
            State::Connecting | State::Streaming => self.backoff.next(now, RECONNECT_US),
            State::SinkUnavailable
            | State::SlotLost
            | State::PublicationGap
            | State::SchemaError => self.backoff.next(now, REPAIR_US),
        });
        self.enter(state, text, out);
    }

    fn enter(&mut self, state: State, text: String, out: &mut Actions) {
        self.state = state;
        out.push(Action::Enter(state, text));
    }
}

fn positions(session: &Session) -> (Lsn, Lsn, Lsn) {
    (
        session.confirm.received(),
        session.confirm.acked(),
        session.confirm.confirmed(),
    )
}
