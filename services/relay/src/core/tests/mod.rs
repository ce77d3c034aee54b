//! Walks through the states, one table or story each.

use events::{Class, EventId};
use pgoutput::{Cell, Lsn, Message, Truncate};

use super::model::*;
use super::*;

mod confirming;
mod records;
mod recovery;

const SECOND: u64 = 1_000_000;

struct Walk {
    relay: Relay,
    now: Moment,
}

impl Walk {
    fn new() -> Self {
        let limits = Limits {
            rows: 4,
            bytes: 1 << 20,
        };
        Self {
            relay: Relay::new(router(), limits, Timing::default(), 7),
            now: Moment(1),
        }
    }

    /// Connected at position 100 with the outbox described.
    fn streaming() -> Self {
        let mut walk = Self::new();
        walk.step(Input::Tick);
        walk.step(connected(100));
        walk.step(outbox());
        walk
    }

    fn step(&mut self, input: Input) -> Actions {
        self.relay.step(input, self.now)
    }

    /// What happens until `micros` have passed, with a server that answers.
    fn after(&mut self, micros: u64) -> Actions {
        let until = self.now.plus(micros);
        let mut all = Actions::new();
        while self.now < until {
            self.now = self.now.plus(SECOND).min(until);
            let actions = self.step(Input::Tick);
            if status(&actions).is_some_and(|status| status.reply_requested) {
                all.extend(self.step(keepalive(100)));
            }
            all.extend(actions);
        }
        all
    }

    /// One transaction of one row; answers its tag.
    fn transaction(&mut self, id: i64, final_lsn: u64, end: u64) -> u64 {
        self.step(begin(final_lsn));
        let tag = produced(&self.step(insert(final_lsn, row(id, "9")))).expect("a record");
        self.step(commit(final_lsn, end));
        tag
    }

    /// The status that the passing of `micros` brings.
    fn status_after(&mut self, micros: u64) -> Option<Status> {
        status(&self.after(micros))
    }
}

fn connected(confirmed: u64) -> Input {
    Input::Connected {
        confirmed: Lsn::new(confirmed),
        status_interval_us: 3 * SECOND,
        epoch: epoch(1),
    }
}

fn published(event: i64, epoch: i64) -> Action {
    Action::Published {
        event: EventId(event),
        commit_time: 0,
        epoch,
    }
}

fn produced(actions: &Actions) -> Option<u64> {
    actions.iter().find_map(|action| match action {
        Action::Produce(tag, _) => Some(*tag),
        _ => None,
    })
}

fn status(actions: &Actions) -> Option<Status> {
    actions.iter().find_map(|action| match action {
        Action::Confirm(status) => Some(*status),
        _ => None,
    })
}

fn letter(actions: &Actions) -> Option<(u64, DeadReason)> {
    actions.iter().find_map(|action| match action {
        Action::DeadLetter(tag, letter) => Some((*tag, letter.reason)),
        _ => None,
    })
}

fn refused(state: State, class: Class) -> Input {
    Input::Refused(Failure {
        state,
        class,
        text: "why".to_owned(),
    })
}

#[test]
fn begins_by_connecting() {
    let mut walk = Walk::new();
    let actions = walk.step(Input::Tick);
    assert!(actions.contains(&Action::Connect), "{actions:?}");
    assert!(
        !walk.step(Input::Tick).contains(&Action::Connect),
        "one attempt at a time"
    );
}

#[test]
fn every_refusal_is_tried_again() {
    // Bounds of the first wait, microseconds.
    let table = [
        (State::Connecting, 100_000, 200_000),
        (State::Standby, 300_000, 900_000),
        (State::SlotLost, 100_000, 200_000),
        (State::PublicationGap, 100_000, 200_000),
        (State::SchemaError, 100_000, 200_000),
    ];
    for (state, least, most) in table {
        let mut walk = Walk::new();
        walk.step(Input::Tick);
        walk.step(refused(state, Class::Outage));
        assert_eq!(walk.relay.state(), state);
        assert!(
            !walk.after(least - 1).contains(&Action::Connect),
            "{state:?}: too soon"
        );
        assert!(
            walk.after(most).contains(&Action::Connect),
            "{state:?}: too late"
        );
    }
}

#[test]
fn start_up_ends_for_the_wrong_configuration_and_after_its_budget() {
    let mut walk = Walk::new();
    walk.step(Input::Tick);
    let actions = walk.step(refused(State::Connecting, Class::Config));
    assert!(matches!(
        actions.last(),
        Some(Action::Stop(StopReason::Config(_)))
    ));

    let mut walk = Walk::new();
    walk.step(Input::Tick);
    walk.after(Timing::default().startup_budget_us);
    let actions = walk.step(refused(State::Connecting, Class::Outage));
    assert!(matches!(
        actions.last(),
        Some(Action::Stop(StopReason::Dependency(_)))
    ));

    let mut walk = Walk::streaming();
    walk.step(Input::Lost(Lost::connection("gone")));
    walk.after(Timing::default().startup_budget_us);
    let actions = walk.step(refused(State::Connecting, Class::Config));
    assert!(
        !matches!(actions.last(), Some(Action::Stop(_))),
        "who has streamed waits for ever"
    );
}

/// A server that answers no status is gone, whatever its socket says; while reading is paused
/// its answers cannot be heard.
#[test]
fn a_silent_server_is_left() {
    let mut walk = Walk::streaming();
    walk.now = walk.now.plus(9 * SECOND - 1);
    assert!(!walk.step(Input::Tick).contains(&Action::Disconnect));
    walk.now = walk.now.plus(1);
    assert!(walk.step(Input::Tick).contains(&Action::Disconnect));
    assert_eq!(walk.relay.state(), State::Connecting);

    let mut walk = Walk::streaming();
    walk.step(begin(110));
    for id in 0..4 {
        walk.step(insert(110, row(id, "9")));
    }
    walk.now = walk.now.plus(19 * SECOND);
    assert!(
        !walk.step(Input::Tick).contains(&Action::Disconnect),
        "paused"
    );
}

/// D-13: reading pauses at the limit and resumes at half of it.
#[test]
fn reading_pauses_and_resumes() {
    let mut walk = Walk::streaming();
    walk.step(begin(110));
    let mut tags = Vec::new();
    let mut last = Actions::new();
    for id in 0..4 {
        last = walk.step(insert(110, row(id, "9")));
        tags.extend(produced(&last));
    }
    assert!(last.contains(&Action::PauseRead));
    assert!(
        !walk
            .step(Input::Acked(tags[0]))
            .contains(&Action::ResumeRead)
    );
    assert!(
        walk.step(Input::Acked(tags[1]))
            .contains(&Action::ResumeRead)
    );
}

/// C27: Postgres is set free when Kafka stands still; nothing is thrown away.
#[test]
fn a_sink_without_progress_closes_the_replication_connection() {
    let mut walk = Walk::streaming();
    let tag = walk.transaction(1, 110, 120);
    assert!(!walk.after(19 * SECOND).contains(&Action::Disconnect));
    let actions = walk.after(SECOND);
    assert!(
        actions.contains(&Action::Disconnect) && !actions.contains(&Action::RebuildSink),
        "{actions:?}"
    );
    assert_eq!(walk.relay.state(), State::SinkUnavailable);
    assert!(walk.after(SECOND).contains(&Action::ProbeSink));
    walk.step(Input::SinkDown);
    assert!(walk.after(SECOND).contains(&Action::ProbeSink));
    assert!(walk.step(Input::SinkUp).contains(&Action::Connect));
    // The late acknowledgement fills the ledger and confirms nothing on the new connection.
    walk.step(connected(100));
    let actions = walk.step(Input::Acked(tag));
    assert!(actions.contains(&published(1, 1)));
    assert_eq!(
        walk.status_after(3 * SECOND).unwrap().confirmed,
        Lsn::new(100)
    );
}

/// C16: a stop tells Postgres the last position; with records in flight it waits for them.
#[test]
fn a_stop_drains_then_says_good_bye() {
    let mut walk = Walk::streaming();
    let tag = walk.transaction(1, 110, 120);
    let actions = walk.step(Input::Shutdown);
    assert!(actions.contains(&Action::PauseRead));
    assert!(!matches!(actions.last(), Some(Action::Stop(_))));
    let actions = walk.step(Input::Acked(tag));
    assert_eq!(status(&actions).unwrap().confirmed, Lsn::new(120));
    assert_eq!(actions.last(), Some(&Action::Stop(StopReason::Asked)));

    let mut walk = Walk::streaming();
    walk.transaction(1, 110, 120);
    walk.step(Input::Shutdown);
    let actions = walk.after(10 * SECOND);
    assert_eq!(
        status(&actions).unwrap().confirmed,
        Lsn::new(100),
        "D-3 in a hurry too"
    );
    assert_eq!(actions.last(), Some(&Action::Stop(StopReason::Asked)));

    let mut walk = Walk::new();
    assert_eq!(
        walk.step(Input::Shutdown).last(),
        Some(&Action::Stop(StopReason::Asked))
    );
}
