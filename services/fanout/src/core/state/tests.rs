//! Walks of the state machine, and the property behind D-6.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;

fn limits(high: usize, low: usize, window: usize) -> Limits {
    Limits {
        high,
        low,
        window: NonZeroUsize::new(window).expect("not zero"),
        drain_us: 1_000,
    }
}

fn assigned(state: &mut State, partitions: &[i32], generation: u64) {
    assert_eq!(
        state.step(
            Input::Assigned {
                partitions: partitions.to_vec(),
                generation
            },
            0
        ),
        []
    );
}

fn start(state: &mut State, partition: i32, generation: u64, offset: i64) -> Job {
    let actions = state.step(
        Input::Record {
            partition,
            generation,
            offset,
        },
        0,
    );
    match actions.first() {
        Some(Action::Start(job)) => *job,
        other => panic!("expected a start, got {other:?}"),
    }
}

fn commit(partition: i32, generation: u64, offset: i64) -> Action {
    Action::Commit {
        partition,
        generation,
        offset,
    }
}

#[test]
fn d_6_commit_waits_for_the_gap() {
    let mut state = State::new(limits(10, 5, 10));
    assigned(&mut state, &[0], 1);
    let first = start(&mut state, 0, 1, 40);
    let second = start(&mut state, 0, 1, 41);
    assert_eq!(state.step(Input::Finished(second), 0), []);
    assert_eq!(state.step(Input::Tick, 0), []);
    assert_eq!(state.step(Input::Finished(first), 0), []);
    assert_eq!(state.step(Input::Tick, 0), [commit(0, 1, 42)]);
    // Nothing new, nothing to commit.
    assert_eq!(state.step(Input::Tick, 0), []);
}

#[test]
fn records_and_acks_of_another_generation_count_for_nothing() {
    let mut state = State::new(limits(10, 5, 10));
    assigned(&mut state, &[0], 1);
    let stale = start(&mut state, 0, 1, 7);
    let revoked = Input::Revoked {
        partitions: vec![0],
        lost: true,
        revocation: Revocation(1),
    };
    assert_eq!(
        state.step(revoked, 0),
        [
            Action::Abandon {
                partition: 0,
                generation: 1
            },
            Action::Answer {
                revocation: Revocation(1),
                offsets: BTreeMap::new()
            }
        ]
    );
    assert!(state.summary(0).lost);
    assigned(&mut state, &[0], 2);
    assert!(!state.summary(0).lost);
    assert_eq!(
        state.step(
            Input::Record {
                partition: 0,
                generation: 1,
                offset: 8
            },
            0
        ),
        [Action::Ignore]
    );
    let _again = start(&mut state, 0, 2, 7);
    assert_eq!(state.step(Input::Finished(stale), 0), []);
    assert_eq!(
        state.step(Input::Tick, 0),
        [],
        "the record is in work again"
    );
}

#[test]
fn revoked_partition_drains_then_answers() {
    let mut state = State::new(limits(10, 5, 10));
    assigned(&mut state, &[0, 1], 1);
    let job = start(&mut state, 0, 1, 7);
    let other = start(&mut state, 1, 1, 3);
    let revoked = Input::Revoked {
        partitions: vec![0],
        lost: false,
        revocation: Revocation(1),
    };
    assert_eq!(state.step(revoked, 10), []);
    assert!(state.summary(10).draining);
    assert_eq!(state.step(Input::Finished(other), 10), []);
    assert_eq!(
        state.step(Input::Finished(job), 11),
        [Action::Answer {
            revocation: Revocation(1),
            offsets: BTreeMap::from([(0, (1, 8))])
        }]
    );
    assert_eq!(state.step(Input::Tick, 12), [commit(1, 1, 4)]);
}

#[test]
fn d_6_revoked_partition_that_does_not_drain_answers_with_what_is_finished() {
    let mut state = State::new(limits(10, 5, 10));
    assigned(&mut state, &[0], 1);
    let done = start(&mut state, 0, 1, 7);
    let _slow = start(&mut state, 0, 1, 8);
    let _none = state.step(Input::Finished(done), 0);
    let revoked = Input::Revoked {
        partitions: vec![0],
        lost: false,
        revocation: Revocation(1),
    };
    assert_eq!(state.step(revoked, 10), []);
    assert_eq!(state.step(Input::Tick, 1_009), []);
    assert_eq!(
        state.step(Input::Tick, 1_010),
        [
            Action::Abandon {
                partition: 0,
                generation: 1
            },
            Action::Answer {
                revocation: Revocation(1),
                offsets: BTreeMap::from([(0, (1, 8))])
            }
        ]
    );
}

#[test]
fn pause_and_resume_keep_their_distance() {
    let mut state = State::new(limits(3, 1, 10));
    assigned(&mut state, &[0], 1);
    let a = start(&mut state, 0, 1, 1);
    let b = start(&mut state, 0, 1, 2);
    let actions = state.step(
        Input::Record {
            partition: 0,
            generation: 1,
            offset: 3,
        },
        0,
    );
    assert_eq!(actions.last(), Some(&Action::Pause));
    assert!(!state.takes_records());
    assert_eq!(state.step(Input::Finished(a), 0), []);
    assert_eq!(state.step(Input::Finished(b), 0), [Action::Resume]);
    assert!(state.takes_records());
}

#[test]
fn d_12_an_outage_pauses_until_it_is_over() {
    let mut state = State::new(limits(10, 5, 10));
    assert_eq!(state.step(Input::Outages(1), 0), [Action::Pause]);
    assert_eq!(state.step(Input::Outages(2), 0), []);
    assert_eq!(state.step(Input::Outages(0), 0), [Action::Resume]);
}

#[test]
fn d_13_a_blocked_head_pauses_at_the_window() {
    let mut state = State::new(limits(100, 50, 4));
    assigned(&mut state, &[0], 1);
    let head = start(&mut state, 0, 1, 1);
    for offset in 2..=4 {
        let job = start(&mut state, 0, 1, offset);
        let _actions = state.step(Input::Finished(job), 0);
    }
    assert!(!state.takes_records(), "one is open, four are held");
    assert_eq!(state.step(Input::Finished(head), 0), [Action::Resume]);
    assert_eq!(state.step(Input::Tick, 0), [commit(0, 1, 5)]);
}

#[test]
fn d_6_offsets_that_went_back_wait_for_what_was_in_work() {
    let mut state = State::new(limits(10, 5, 10));
    assigned(&mut state, &[0], 1);
    let before = start(&mut state, 0, 1, 90);
    assert_eq!(
        state.step(
            Input::OffsetLost {
                partition: 0,
                generation: 2
            },
            0
        ),
        []
    );
    let after = start(&mut state, 0, 2, 0);
    assert_eq!(state.step(Input::Finished(after), 0), []);
    assert_eq!(state.step(Input::Tick, 0), []);
    assert_eq!(state.step(Input::Finished(before), 0), []);
    assert_eq!(state.step(Input::Tick, 0), [commit(0, 2, 1)]);
}

#[test]
fn oldest_unfinished_record_has_an_age() {
    let mut state = State::new(limits(10, 5, 10));
    assigned(&mut state, &[0], 1);
    let _job = state.step(
        Input::Record {
            partition: 0,
            generation: 1,
            offset: 1,
        },
        100,
    );
    let summary = state.summary(350);
    assert_eq!(
        (summary.in_work, summary.oldest_us, summary.assigned),
        (1, 250, 1)
    );
}

/// One move of the broker or of the work.
#[derive(Clone, Debug)]
enum Move {
    Fetch(i32),
    Finish(usize),
    Revoke { partition: i32, lost: bool },
    Assign(i32),
    GoBack(i32),
    Tick(u64),
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let partition = 0..3_i32;
    let one = prop_oneof![
        6 => partition.clone().prop_map(Move::Fetch),
        6 => any::<usize>().prop_map(Move::Finish),
        1 => (partition.clone(), any::<bool>()).prop_map(|(partition, lost)| Move::Revoke { partition, lost }),
        2 => partition.clone().prop_map(Move::Assign),
        1 => partition.prop_map(Move::GoBack),
        2 => (0..600_u64).prop_map(Move::Tick),
    ];
    proptest::collection::vec(one, 1..200)
}

/// The world around the state: a log per partition, the broker's offsets, the work.
#[derive(Default)]
struct World {
    now_us: u64,
    generation: u64,
    revocation: u64,
    owned: BTreeMap<i32, (u64, i64)>,
    committed: BTreeMap<i32, i64>,
    finished: BTreeMap<i32, BTreeSet<i64>>,
    in_work: Vec<(Job, i64)>,
}

impl World {
    fn apply(&mut self, state: &mut State, input: Input, offset: i64) -> Result<(), TestCaseError> {
        for action in state.step(input, self.now_us) {
            match action {
                Action::Start(job) => self.in_work.push((job, offset)),
                Action::Commit {
                    partition, offset, ..
                } => self.commit(partition, offset)?,
                Action::Answer { offsets, .. } => {
                    for (partition, (_, offset)) in offsets {
                        self.commit(partition, offset)?;
                    }
                }
                Action::Fault(text) => return Err(TestCaseError::fail(text)),
                Action::Ignore | Action::Abandon { .. } | Action::Pause | Action::Resume => {}
            }
        }
        Ok(())
    }

    /// D-6: every record below a committed offset has been finished at least once.
    fn commit(&mut self, partition: i32, offset: i64) -> Result<(), TestCaseError> {
        let finished = self.finished.entry(partition).or_default();
        for below in 0..offset {
            prop_assert!(
                finished.contains(&below),
                "commit {offset} passes {below} of {partition}"
            );
        }
        let _before = self.committed.insert(partition, offset);
        Ok(())
    }

    fn make(&mut self, state: &mut State, this: Move) -> Result<(), TestCaseError> {
        match this {
            Move::Fetch(partition) => {
                let Some((generation, next)) = self.owned.get_mut(&partition) else {
                    return Ok(());
                };
                if !state.takes_records() {
                    return Ok(());
                }
                let (generation, offset) = (*generation, *next);
                *next += 1;
                self.apply(
                    state,
                    Input::Record {
                        partition,
                        generation,
                        offset,
                    },
                    offset,
                )
            }
            Move::Finish(pick) => {
                if self.in_work.is_empty() {
                    return Ok(());
                }
                let (job, offset) = self.in_work.swap_remove(pick % self.in_work.len());
                let _new = self
                    .finished
                    .entry(job.partition)
                    .or_default()
                    .insert(offset);
                self.apply(state, Input::Finished(job), 0)
            }
            Move::Revoke { partition, lost } => {
                if self.owned.remove(&partition).is_none() {
                    return Ok(());
                }
                self.revocation += 1;
                let revocation = Revocation(self.revocation);
                self.apply(
                    state,
                    Input::Revoked {
                        partitions: vec![partition],
                        lost,
                        revocation,
                    },
                    0,
                )
            }
            Move::Assign(partition) => {
                if self.owned.contains_key(&partition) {
                    return Ok(());
                }
                self.generation += 1;
                let start = self.committed.get(&partition).copied().unwrap_or(0);
                let _none = self.owned.insert(partition, (self.generation, start));
                self.apply(
                    state,
                    Input::Assigned {
                        partitions: vec![partition],
                        generation: self.generation,
                    },
                    0,
                )
            }
            Move::GoBack(partition) => {
                let Some((generation, next)) = self.owned.get_mut(&partition) else {
                    return Ok(());
                };
                if *next == 0 {
                    return Ok(());
                }
                self.generation += 1;
                *generation = self.generation;
                // The client fetched an old record again: the log is the same one.
                *next -= 1;
                let generation = self.generation;
                self.apply(
                    state,
                    Input::OffsetLost {
                        partition,
                        generation,
                    },
                    0,
                )
            }
            Move::Tick(us) => {
                self.now_us += us;
                self.apply(state, Input::Tick, 0)
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// D-6 under random completion order, rebalances, lost partitions and offsets that go back.
    #[test]
    fn d_6_commits_never_pass_an_unfinished_record(moves in moves()) {
        let mut state = State::new(limits(20, 10, 16));
        let mut world = World::default();
        for this in moves {
            world.make(&mut state, this)?;
        }
    }
}
