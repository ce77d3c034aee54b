//! Random interleavings of messages, acknowledgements, failures, keepalives and lost
//! connections, against a model of Postgres and of the broker.
//!
//! The model broker writes in the order of enqueueing, as the idempotent producer does, and
//! reports in any order. The model server knows its slot's position only from the statuses.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use events::Class;
use pgoutput::Lsn;
use proptest::prelude::*;

use super::model::*;
use super::*;

/// One committed transaction: rows as (event id, author).
#[derive(Clone, Debug)]
struct Committed {
    final_lsn: u64,
    end_lsn: u64,
    rows: Vec<(i64, u8)>,
}

/// What may happen next.
#[derive(Clone, Copy, Debug)]
enum Op {
    Read,
    Write,
    Report(usize),
    Fail(Class),
    Hang,
    Wait(u64),
}

struct Model {
    relay: Relay,
    now: Moment,
    log: Vec<Committed>,
    /// Where the slot stands.
    slot: u64,
    /// The messages of the present connection that are still to be read.
    wire: Option<VecDeque<Input>>,
    paused: bool,
    asked: Option<Action>,
    /// Handed to the producer, not written.
    queue: VecDeque<(u64, i64, Option<u8>)>,
    /// Written, not reported.
    unreported: Vec<u64>,
    /// The broker's log: (event, author).
    written: Vec<(i64, u8)>,
    /// Dead letters that are written.
    dead: BTreeSet<i64>,
    /// Rows that the broker refuses, each time.
    refused: BTreeSet<i64>,
    limits: Limits,
}

impl Model {
    fn new(log: Vec<Committed>) -> Self {
        let limits = Limits {
            rows: 5,
            bytes: 1 << 20,
        };
        let timing = Timing {
            sink_patience_us: 3_000_000,
            ..Timing::default()
        };
        Self {
            relay: Relay::new(router(), limits, timing, 3),
            now: Moment(1),
            log,
            slot: 100,
            wire: None,
            paused: false,
            asked: None,
            queue: VecDeque::new(),
            unreported: Vec::new(),
            written: Vec::new(),
            dead: BTreeSet::new(),
            refused: BTreeSet::new(),
            limits,
        }
    }

    fn input(&mut self, input: Input) {
        let actions = self.relay.step(input, self.now);
        for action in actions {
            self.carry_out(action);
        }
        assert!(
            self.relay.gauges().rows <= self.limits.rows + 1,
            "D-13: in flight is bounded"
        );
    }

    fn carry_out(&mut self, action: Action) {
        match action {
            Action::Connect | Action::ProbeSink => self.asked = Some(action),
            Action::Produce(tag, record) => {
                let author = std::str::from_utf8(&record.key).unwrap().parse().unwrap();
                self.queue
                    .push_back((tag, record.summary.event.0, Some(author)));
            }
            Action::DeadLetter(tag, letter) => self.queue.push_back((tag, letter.event.0, None)),
            Action::Confirm(status) => self.confirm(status),
            Action::PauseRead => self.paused = true,
            Action::ResumeRead => self.paused = false,
            Action::Disconnect => self.wire = None,
            Action::RebuildSink => {
                self.queue.clear();
                self.unreported.clear();
            }
            Action::Stop(reason) => panic!("nobody asked for {reason:?}"),
            Action::SavePosition(_)
            | Action::Published { .. }
            | Action::Ignored(_)
            | Action::SleepUntil(_)
            | Action::Enter(..) => {}
        }
    }

    /// D-3, judged by what the broker has, not by what the relay believes.
    fn confirm(&mut self, status: Status) {
        let confirmed = status.confirmed.as_u64();
        assert!(
            confirmed >= self.slot,
            "confirmed fell from {} to {confirmed}",
            self.slot
        );
        let safe: BTreeSet<i64> = self
            .written
            .iter()
            .map(|(event, _)| *event)
            .chain(self.dead.iter().copied())
            .collect();
        for txn in self.log.iter().filter(|txn| txn.end_lsn <= confirmed) {
            for (event, _) in &txn.rows {
                assert!(
                    safe.contains(event),
                    "D-3: confirmed {confirmed} passes row {event} of {txn:?}"
                );
            }
        }
        let known = self
            .log
            .iter()
            .any(|txn| txn.end_lsn == confirmed || txn.final_lsn == confirmed);
        assert!(
            known || confirmed == 100 || confirmed == self.end(),
            "{confirmed} is no end of a commit and no keepalive"
        );
        self.slot = confirmed;
        let end = self.end();
        if let Some(wire) = self.wire.as_mut().filter(|_| status.reply_requested) {
            wire.push_back(keepalive(end));
        }
    }

    /// What the server sends on a connection that begins now, with keepalives between the
    /// transactions.
    fn connect(&mut self) {
        let mut wire = VecDeque::from([outbox()]);
        for txn in self.log.iter().filter(|txn| txn.end_lsn > self.slot) {
            wire.push_back(keepalive(txn.final_lsn));
            wire.push_back(begin(txn.final_lsn));
            for (event, author) in &txn.rows {
                wire.push_back(insert(txn.final_lsn, row(*event, &author.to_string())));
            }
            wire.push_back(commit(txn.final_lsn, txn.end_lsn));
            wire.push_back(keepalive(txn.end_lsn));
        }
        // Somebody else wrote behind the last transaction.
        wire.push_back(keepalive(self.end()));
        self.wire = Some(wire);
        self.paused = false;
        let confirmed = Lsn::new(self.slot);
        self.input(Input::Connected {
            confirmed,
            status_interval_us: 1_000_000,
            epoch: super::model::epoch(1),
        });
    }

    /// The end of the server's log.
    fn end(&self) -> u64 {
        self.log.last().map_or(100, |txn| txn.end_lsn) + 16
    }

    fn answer(&mut self) {
        match self.asked.take() {
            Some(Action::Connect) => self.connect(),
            Some(_) => self.input(Input::SinkUp),
            None => {}
        }
    }

    fn run(&mut self, op: Op) {
        match op {
            Op::Read => {
                self.answer();
                if !self.paused
                    && let Some(input) = self.wire.as_mut().and_then(VecDeque::pop_front)
                {
                    self.input(input);
                }
            }
            Op::Write => {
                if let Some((tag, event, author)) = self.queue.pop_front() {
                    if author.is_some() && self.refused.contains(&event) {
                        return self.input(Input::Failed(tag, Class::Record));
                    }
                    match author {
                        Some(author) => self.written.push((event, author)),
                        None => drop(self.dead.insert(event)),
                    }
                    self.unreported.push(tag);
                }
            }
            Op::Report(which) => {
                if !self.unreported.is_empty() {
                    let tag = self.unreported.swap_remove(which % self.unreported.len());
                    self.input(Input::Acked(tag));
                }
            }
            Op::Fail(Class::Record) => {
                if let Some((_, event, Some(_))) = self.queue.front()
                    && !self.written.iter().any(|(written, _)| written == event)
                {
                    self.refused.insert(*event);
                }
            }
            Op::Fail(class) => {
                if let Some((tag, ..)) = self.queue.pop_front() {
                    self.input(Input::Failed(tag, class));
                }
            }
            Op::Hang => {
                if self.wire.take().is_some() {
                    self.input(Input::Lost(Lost::connection("gone")));
                }
            }
            Op::Wait(micros) => {
                self.now = self.now.plus(micros);
                self.input(Input::Tick);
            }
        }
    }

    /// Everything works from now on.
    fn settle(&mut self) {
        for _ in 0..4_000 {
            self.run(Op::Read);
            self.run(Op::Write);
            self.run(Op::Report(0));
            self.run(Op::Wait(50_000));
        }
    }

    /// D-5: the first copies of each author's rows are in commit order.
    fn check_order(&self) {
        let mut place = BTreeMap::new();
        for (place_in_log, (event, _)) in self.log.iter().flat_map(|txn| &txn.rows).enumerate() {
            place.insert(*event, place_in_log);
        }
        let mut seen = BTreeSet::new();
        let mut last: BTreeMap<u8, usize> = BTreeMap::new();
        for (event, author) in &self.written {
            if seen.insert(*event) {
                let before = last.insert(*author, place[event]);
                assert!(
                    before.is_none_or(|before| before < place[event]),
                    "D-5: {event} came too late"
                );
            }
        }
    }
}

fn log() -> impl Strategy<Value = Vec<Committed>> {
    let txn = (0_u64..3, prop::collection::vec(0_u8..3, 0..4));
    prop::collection::vec(txn, 1..12).prop_map(|txns| {
        let mut end = 100;
        let mut event = 0;
        txns.into_iter()
            .map(|(gap, authors)| {
                // A commit record may start exactly where the one before ends.
                let final_lsn = end + gap * 8;
                end = final_lsn + 8;
                let rows = authors
                    .into_iter()
                    .map(|author| {
                        event += 1;
                        (event, author)
                    })
                    .collect();
                Committed {
                    final_lsn,
                    end_lsn: end,
                    rows,
                }
            })
            .collect()
    })
}

fn op() -> impl Strategy<Value = Op> {
    let class = prop_oneof![
        Just(Class::Outage),
        Just(Class::Unsure),
        Just(Class::Bug),
        Just(Class::Record)
    ];
    prop_oneof![
        12 => Just(Op::Read),
        8 => Just(Op::Write),
        8 => (0_usize..8).prop_map(Op::Report),
        1 => class.prop_map(Op::Fail),
        1 => Just(Op::Hang),
        4 => (0_u64..400_000).prop_map(Op::Wait),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    /// D-3, D-4, D-5, D-13 and a confirmed position that never falls, over everything that may
    /// happen; C1, C5, C6, C8, C10, C19.
    #[test]
    fn nothing_is_lost_and_nothing_is_pinned(log in log(), ops in prop::collection::vec(op(), 0..200)) {
        let mut model = Model::new(log);
        model.run(Op::Wait(1));
        for op in ops {
            model.run(op);
        }
        model.settle();
        prop_assert_eq!(model.slot, model.end(), "D-4: a quiet relay confirms all of the log");
        model.check_order();
        let written: BTreeSet<i64> = model.written.iter().map(|(event, _)| *event).collect();
        for (event, _) in model.log.iter().flat_map(|txn| &txn.rows) {
            prop_assert!(written.contains(event) || model.dead.contains(event), "row {} is lost", event);
        }
    }
}
