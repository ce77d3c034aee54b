//! A sweep process: a round for each stage with its reader, claims, housekeeping.
//!
//! A call of the event loop takes several steps here wherever the real one asks twice, so that
//! anything may happen in between.

mod claim;
mod look;

use std::{rc::Rc, sync::Arc};

use events::{Micros, Stage};
use sweep::core::{
    Claimed, Look, Mark, Mode, Moment, Next, Reader, Round, Seen, SlotState, SlotView, Timing,
    Want,
    days::{self, Day, Finished},
    voids,
};

use self::claim::Claim;
use super::Clocks;
use crate::{
    bugs::Bug,
    invariants::{self, Live},
    world::{SECOND, World, postgres, producer::Producer, row::Row},
};

/// Ids that a look holds at most (D-13).
const LOOK_IDS: usize = 5;
/// Days that are kept.
const RETENTION_DAYS: u16 = 1;
/// How often housekeeping is done.
const HOUSEKEEPING: u64 = 60 * SECOND;

/// What relays hold of a row: only the invariants want to know.
pub(crate) type Lives<'a> = &'a dyn Fn(&World, u64) -> Option<Live>;

/// The waits of a round: as they are set by default, with less patience.
fn timing() -> Timing {
    Timing {
        interval: 10 * SECOND,
        grace: 5 * SECOND,
        relay_patience: 60 * SECOND,
        blocked_after: 20 * SECOND,
        poll: SECOND,
    }
}

/// What a call has found out so far.
#[derive(Debug)]
enum Half {
    Nothing,
    /// Rows were read, the mark is still to be written.
    Looked(Look),
    /// The slot was read, the life is not.
    Slot(SlotView),
    /// The commits were read, the ends are not.
    Commits(Vec<Option<i64>>),
}

#[derive(Debug)]
struct StageSweep {
    stage: Stage,
    round: Round,
    reader: Reader,
    half: Half,
    claim: Option<Claim>,
    /// Requests that it has heard of, and that its reader has begun anew for.
    heard: u64,
    version: u64,
    /// Its connection was cut in the middle of a call.
    cuts: u64,
    /// Steps of the last look and of the last reading of a position.
    looked: u64,
    checked: u64,
    /// The highest id of the looks so far: for a bug.
    highest: i64,
    producer: Producer,
    tags: u64,
    probe: Option<u64>,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct SweepProcess {
    pub(crate) name: &'static str,
    clocks: Clocks,
    pub(crate) is_alive: bool,
    stages: [StageSweep; 2],
    kept_house: u64,
}

impl SweepProcess {
    pub(crate) fn start(name: &'static str, world: &mut World) -> Self {
        world.tell(name, || "starts".to_owned());
        let round = |stage| match stage {
            Stage::Published => Round::published(timing(), Mode::Sweep),
            Stage::Delivered => Round::delivered(timing(), 1),
        };
        Self {
            name,
            clocks: Clocks::start(world),
            is_alive: true,
            stages: Stage::ALL.map(|stage| StageSweep::new(stage, round(stage), world)),
            kept_house: 0,
        }
    }

    /// It dies where it stands: its locks go, what it sent stays.
    pub(crate) fn crash_if_alive(&mut self, world: &mut World) {
        if !self.is_alive {
            return;
        }
        world.tell(self.name, || "dies".to_owned());
        self.is_alive = false;
        for stage in &mut self.stages {
            stage.cut(world);
        }
    }

    /// Does one thing. Whether there was any.
    pub(crate) fn step(&mut self, world: &mut World, lives: Lives<'_>) -> bool {
        if !self.is_alive {
            return false;
        }
        let first = world.below(3);
        for turn in 0..3 {
            let done = match (first + turn) % 3 {
                2 => self.keep_house(world),
                at => {
                    let now = Moment(self.clocks.monotonic(world));
                    self.stages[at].step(self.name, now, world, lives)
                }
            };
            if done {
                return true;
            }
        }
        false
    }

    /// The broker takes a record of it.
    pub(crate) fn produce_on(&mut self, world: &mut World) -> bool {
        let first = world.below(2);
        [first, 1 - first]
            .into_iter()
            .any(|at| self.stages[at].producer.advance(world))
    }

    fn keep_house(&mut self, world: &mut World) -> bool {
        let now = self.clocks.monotonic(world);
        if now < self.kept_house + HOUSEKEEPING || !world.pg.is_up {
            return false;
        }
        self.kept_house = now;
        drop_days(self.name, world);
        let snapshot = look::snapshot(world);
        let revision = voids::merge(&world.pg.voids, &snapshot);
        look::note(world, &revision);
        true
    }
}

impl StageSweep {
    fn new(stage: Stage, round: Round, world: &World) -> Self {
        Self {
            stage,
            round,
            reader: Reader::default(),
            half: Half::Nothing,
            claim: None,
            heard: world.pg.requests,
            version: world.pg.requests,
            cuts: world.pg.cuts,
            looked: 0,
            checked: 0,
            highest: 0,
            producer: Producer::default(),
            tags: 0,
            probe: None,
        }
    }

    /// Its connections are gone, in whatever it was doing.
    fn cut(&mut self, world: &mut World) {
        self.half = Half::Nothing;
        self.probe = None;
        if let Some(claim) = self.claim.take() {
            claim.cut(&mut self.producer, world);
        }
    }

    fn step(
        &mut self,
        name: &'static str,
        now: Moment,
        world: &mut World,
        lives: Lives<'_>,
    ) -> bool {
        if self.heard != world.pg.requests && world.pg.is_up {
            self.heard = world.pg.requests;
            self.round.request(now);
            return true;
        }
        let want = match self.round.next(now) {
            Next::WaitUntil(_) => return false,
            Next::Do(want) => want,
        };
        let seen = self.perform(name, &want, world, lives);
        let Some(seen) = seen else {
            return true;
        };
        if matches!(seen, Seen::Failed) {
            world.tell(name, || {
                format!("{}: {} failed", self.stage.as_str(), words(&want))
            });
        }
        self.round.see(seen, now);
        true
    }

    /// One step of what is wanted. None while it is not done.
    fn perform(
        &mut self,
        name: &'static str,
        want: &Want,
        world: &mut World,
        lives: Lives<'_>,
    ) -> Option<Seen> {
        let is_cut = std::mem::replace(&mut self.cuts, world.pg.cuts) != world.pg.cuts;
        let is_in_claim = self.claim.is_some();
        if is_cut || (!is_in_claim && world.fails(15)) {
            self.cut(world);
            return Some(Seen::Failed);
        }
        let asks_kafka = matches!(want, Want::Hop(_) | Want::Probe);
        if !asks_kafka && !world.pg.is_up {
            self.cut(world);
            return Some(Seen::Failed);
        }
        match want {
            Want::Look => self.look(name, world),
            Want::Slot => self.slot(world),
            Want::Hop(_) => self.hop(name, world),
            Want::Probe => self.probe(world),
            Want::Claim(look) => self.claim(name, look, world, lives),
        }
    }

    /// First the slot, then in which life.
    fn slot(&mut self, world: &mut World) -> Option<Seen> {
        if let Half::Slot(mut slot) = std::mem::replace(&mut self.half, Half::Nothing) {
            if postgres::here(world) {
                world.pg.requests += 1;
            }
            if world.has_bug(Bug::IgnoreInFlight) {
                slot.confirmed = Some(u64::MAX);
            }
            return Some(Seen::Slot {
                life: world.pg.life(),
                slot,
            });
        }
        self.checked = world.step;
        let state = match world.pg.slot {
            None => SlotState::Absent,
            Some(slot) if slot.is_lost => SlotState::Lost,
            Some(slot) if slot.holder.is_some() => SlotState::Active,
            Some(_) => SlotState::Inactive,
        };
        let confirmed = world.pg.slot.and_then(|slot| slot.confirmed);
        self.half = Half::Slot(SlotView { state, confirmed });
        None
    }

    /// First what the group has committed, then where the partitions end.
    fn hop(&mut self, name: &'static str, world: &mut World) -> Option<Seen> {
        if !world.log.is_up {
            self.half = Half::Nothing;
            return Some(Seen::Failed);
        }
        let Half::Commits(commits) = std::mem::replace(&mut self.half, Half::Nothing) else {
            self.checked = world.step;
            let commits = world.log.posts.iter().map(|part| part.committed).collect();
            self.half = Half::Commits(commits);
            return None;
        };
        let ignores = world.has_bug(Bug::IgnoreInFlight);
        let parts = world.log.posts.iter().zip(commits).zip(0..);
        let marks: Vec<Mark> = parts
            .map(|((part, committed), partition)| Mark {
                partition,
                low: part.low,
                end: part.end(),
                committed: if ignores { Some(part.end()) } else { committed },
            })
            .collect();
        world.tell(name, || {
            let of = |mark: &Mark| (mark.low, mark.committed, mark.end);
            format!(
                "the group is at {:?}",
                marks.iter().map(of).collect::<Vec<_>>()
            )
        });
        Some(Seen::Hop(marks))
    }

    fn probe(&mut self, world: &mut World) -> Option<Seen> {
        let Some(tag) = self.probe else {
            self.tags += 1;
            self.probe = Some(self.tags);
            self.producer.probe(self.tags);
            return None;
        };
        if !world.log.is_up {
            self.producer.abandon(world);
            self.probe = None;
            return Some(Seen::Probed(false));
        }
        let (reported, result) = self.producer.report(world)?;
        if reported != tag {
            return None;
        }
        self.probe = None;
        Some(Seen::Probed(result.is_ok()))
    }

    fn claim(
        &mut self,
        name: &'static str,
        look: &Arc<Look>,
        world: &mut World,
        lives: Lives<'_>,
    ) -> Option<Seen> {
        let mut claim = self
            .claim
            .take()
            .unwrap_or_else(|| Claim::new(name, look, world));
        let outcome = claim.step(self, world, lives);
        match outcome {
            claim::Outcome::GoesOn => {
                self.claim = Some(claim);
                None
            }
            claim::Outcome::Done(claimed) => Some(Seen::Claimed(claimed)),
            claim::Outcome::Failed => {
                claim.cut(&mut self.producer, world);
                Some(Seen::Failed)
            }
        }
    }
}

/// Drops the days that are old and finished, or finds out what holds them.
fn drop_days(name: &'static str, world: &mut World) {
    let today = Day::of(world.clock());
    let mut by_day: std::collections::BTreeMap<Day, Vec<Rc<Row>>> =
        std::collections::BTreeMap::new();
    for row in world.pg.outbox.values() {
        by_day
            .entry(Day::of(row.created_us))
            .or_default()
            .push(Rc::clone(row));
    }
    for (day, rows) in by_day {
        if !days::is_old(day, today, RETENTION_DAYS) {
            continue;
        }
        let of_day = |at: Micros| Day::of(at) == day;
        let is_locked = world
            .pg
            .open
            .iter()
            .any(|txn| txn.rows.iter().any(|row| of_day(row.created_us)));
        let finished: Vec<Finished> = Stage::ALL
            .into_iter()
            .map(|stage| Finished {
                stage,
                ids: world
                    .pg
                    .account
                    .passed(stage)
                    .union(&world.pg.account.kept_elsewhere(stage)),
            })
            .collect();
        let judged: Vec<days::Row> = rows
            .iter()
            .map(|row| days::Row {
                event: row.id,
                event_type: events::EventType::from_name(row.type_name()),
            })
            .collect();
        let may_go =
            days::may_drop(&judged, &finished).is_ok() || world.has_bug(Bug::DropUndelivered);
        if is_locked || !may_go {
            continue;
        }
        world.tell(name, || format!("drops a day with {} rows", rows.len()));
        invariants::at_day(world, &rows);
        for row in &rows {
            world.pg.outbox.remove(&row.id);
        }
    }
}

const fn words(want: &Want) -> &'static str {
    match want {
        Want::Look => "look",
        Want::Slot => "slot",
        Want::Hop(_) => "hop",
        Want::Probe => "probe",
        Want::Claim(_) => "claim",
    }
}

/// A claim that has done nothing yet.
const NOTHING: Claimed = Claimed {
    redelivered: 0,
    discarded: 0,
    left: 0,
    more: false,
};
