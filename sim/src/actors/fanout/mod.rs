//! A fan-out process: its core, its member of the group, and the records in work.

mod work;

use std::collections::{BTreeMap, VecDeque};

use events::Stage;
use fanout::core::{
    delivery::Rules,
    state::{Action, Input, Job, Limits, State},
};

use self::work::{Ended, Work};
use super::{Clocks, LedgerWriter, any_of};
use crate::{
    bugs::Bug,
    invariants::{self, Invariant},
    world::{
        MS, SECOND, World,
        member::{Fetched, Member},
        store::GC_GRACE,
    },
};

/// Unfinished records at most (D-13).
const RECORDS: usize = 5;
/// Records of one partition behind its oldest unfinished one.
const WINDOW: usize = 7;
/// Followers of a page.
pub(super) const PAGE: usize = 2;
/// How often offsets are committed.
const TICK: u64 = 250 * MS;
/// How long a good-bye may take.
const LEAVE_WITHIN: u64 = 8 * SECOND;
/// How long rows stay.
pub(super) const RETENTION_US: i64 = 30 * 24 * 3_600_000_000;

/// The rules of time, as the program sets them.
pub(super) fn rules() -> Rules {
    let grace = i64::try_from(GC_GRACE).unwrap_or(i64::MAX);
    Rules {
        retention_us: RETENTION_US,
        horizon_us: grace - events::Micros::HOUR,
        page_rows: PAGE,
        visible_within_us: 60_000_000,
    }
}

/// See the module.
#[derive(Debug)]
pub(crate) struct FanoutProcess {
    name: &'static str,
    state: State,
    clocks: Clocks,
    pub(crate) is_alive: bool,
    pub(crate) member: Member,
    work: Vec<Work>,
    /// Work that has ended and that the loop has not taken in.
    ended: VecDeque<(Job, Ended)>,
    pub(crate) ledger: LedgerWriter,
    ticked: u64,
    /// Pieces of work that wait for a dependency, as the core was told.
    waiting: usize,
    leave_by: Option<u64>,
    /// Jobs by assignment, in order: for the bug that mixes them up.
    started: Vec<(i32, u64, Job)>,
}

impl FanoutProcess {
    pub(crate) fn start(name: &'static str, world: &mut World) -> Self {
        let limits = Limits {
            high: RECORDS,
            low: RECORDS / 2,
            window: std::num::NonZeroUsize::new(WINDOW).expect("a window of seven"),
            drain_us: 4 * SECOND,
        };
        world.tell(name, || "starts".to_owned());
        Self {
            name,
            state: State::new(limits),
            clocks: Clocks::start(world),
            is_alive: true,
            member: Member::new(world.truth.name()),
            work: Vec::new(),
            ended: VecDeque::new(),
            ledger: LedgerWriter::new(Stage::Delivered),
            ticked: 0,
            waiting: 0,
            leave_by: None,
            started: Vec::new(),
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

    /// Its polling thread stands still, and the coordinator gives it up.
    pub(crate) fn freeze(&mut self, world: &mut World) {
        if self.is_alive && self.leave_by.is_none() {
            self.member.is_frozen = true;
            world.log.expire(self.member.name);
        }
    }

    /// Its polling thread goes on, and hears that it has nothing any more.
    pub(crate) fn thaw(&mut self, world: &mut World) {
        if self.is_alive && self.member.is_frozen {
            self.member.is_frozen = false;
            self.member.lose_all();
            world.tell(self.name, || "hears that it is out of the group".to_owned());
        }
    }

    /// It dies where it stands. Its session lasts until the coordinator gives it up.
    fn crash(&mut self, world: &mut World) {
        world.tell(self.name, || "dies".to_owned());
        self.die(world);
    }

    fn die(&mut self, world: &mut World) {
        self.is_alive = false;
        self.member.is_frozen = true;
        self.ledger.lose(world);
        for work in self.work.drain(..) {
            work.give_up(world);
        }
    }

    /// Asks it to leave the group in good order.
    pub(crate) fn leave(&mut self, world: &mut World) {
        if self.is_alive
            && self.leave_by.is_none()
            && self.member.revoking.is_none()
            && !self.member.is_frozen
        {
            world.tell(self.name, || "leaves the group".to_owned());
            self.leave_by = Some(world.now + LEAVE_WITHIN);
            self.member.revoke_all(world.now);
        }
    }

    /// Its wall clock jumps.
    pub(crate) fn jump(&mut self, world: &mut World, micros: i64) {
        self.clocks.wall += micros;
        world.tell(self.name, || {
            format!("wall clock jumps by {} s", micros / 1_000_000)
        });
    }

    /// Joins the group, once it is not a member.
    pub(crate) fn join(&mut self, world: &mut World) -> bool {
        let is_new = self.is_alive
            && self.leave_by.is_none()
            && world.log.is_up
            && !self.member.has_partitions()
            && !world.log.sessions.contains(&self.member.name);
        if is_new {
            world.log.sessions.insert(self.member.name);
            let turn = world.below(2);
            world.log.deal(turn);
            let member = self.member.name;
            world.tell(self.name, || format!("joins the group as member {member}"));
        }
        is_new
    }

    /// Does one thing. Whether there was any.
    pub(crate) fn step(&mut self, world: &mut World) -> bool {
        if !self.is_alive {
            return false;
        }
        let done = any_of(
            self,
            world,
            &[
                Self::receive,
                Self::receive,
                Self::end_work,
                Self::do_work,
                Self::do_work,
                Self::count_waiting,
                Self::tick,
                Self::poll,
                Self::flush,
                Self::end_leaving,
            ],
        );
        let summary = self.state.summary(self.now(world));
        invariants::bounded(
            world,
            "records in work in a fan-out",
            summary.in_work,
            RECORDS,
        );
        done
    }

    /// Whether nothing of it is under way.
    pub(crate) fn is_idle(&self) -> bool {
        !self.is_alive
            || (self.work.is_empty()
                && self.ended.is_empty()
                && self.member.fetched.is_empty()
                && self.ledger.is_idle())
    }

    fn now(&self, world: &World) -> u64 {
        self.clocks.monotonic(world)
    }

    fn poll(&mut self, world: &mut World) -> bool {
        if self.member.send_commits(world) {
            return true;
        }
        self.leave_by.is_none() && self.member.fetch(world)
    }

    fn flush(&mut self, world: &mut World) -> bool {
        self.ledger.flush(world)
    }

    /// Rebalances come before records that wait.
    fn receive(&mut self, world: &mut World) -> bool {
        if let Some(input) = self.member.control.pop_front() {
            world.tell(self.name, || format!("hears {input:?}"));
            if let Input::Assigned {
                partitions,
                generation,
            } = &input
            {
                for &partition in partitions {
                    self.abandon(partition, generation - 1, world);
                }
            }
            self.input(input, None, world);
            return true;
        }
        if !self.state.takes_records() || self.leave_by.is_some() {
            return false;
        }
        match self.member.fetched.pop_front() {
            Some(Fetched::Record { input, rec, place }) => {
                self.input(input, Some(Work::new(rec, place)), world);
            }
            Some(Fetched::Jump(input)) => {
                world.tell(self.name, || format!("offsets jumped: {input:?}"));
                world.pg.requests += 1;
                self.input(input, None, world);
            }
            None => return false,
        }
        true
    }

    fn input(&mut self, input: Input, mut record: Option<Work>, world: &mut World) {
        let now = self.now(world);
        for action in self.state.step(input, now) {
            if !self.is_alive {
                return;
            }
            match action {
                Action::Start(job) => {
                    if let Some(work) = record.take() {
                        self.begin(job, work, world);
                    }
                }
                Action::Commit {
                    partition,
                    generation,
                    offset,
                } => {
                    self.member.commit(partition, generation, offset);
                }
                Action::Answer {
                    revocation,
                    offsets,
                } => {
                    // The thread may have met a jump that the core has not been told of.
                    let takes_all = world.has_bug(Bug::AnswerOfBefore);
                    let current = offsets.into_iter().filter(|(partition, (generation, _))| {
                        takes_all || self.member.is_current(*partition, *generation)
                    });
                    let offsets: BTreeMap<i32, i64> = current
                        .map(|(partition, (_, offset))| (partition, offset))
                        .collect();
                    world.tell(self.name, || format!("gives up with {offsets:?}"));
                    self.member.answer(revocation, offsets);
                }
                Action::Abandon {
                    partition,
                    generation,
                } => self.abandon(partition, generation, world),
                Action::Fault(text) => world.violate(Invariant::Fault, text),
                Action::Ignore | Action::Pause | Action::Resume => {}
            }
            if world.fails(1) {
                self.crash(world);
            }
        }
    }

    fn begin(&mut self, job: Job, mut work: Work, world: &mut World) {
        world.tell(self.name, || format!("takes {}", work.words()));
        self.started.push((job.partition, job.generation, job));
        if world.has_bug(Bug::CommitBeforeWrite) {
            self.ended.push_back((job, Ended::Finished));
        }
        work.begin(job, world);
        self.work.push(work);
    }

    fn abandon(&mut self, partition: i32, generation: u64, world: &mut World) {
        let is_of = |work: &Work| {
            let job = work.job();
            job.is_some_and(|job| job.partition == partition && job.generation <= generation)
        };
        let (gone, kept) = std::mem::take(&mut self.work).into_iter().partition(is_of);
        self.work = kept;
        for work in gone {
            work.give_up(world);
        }
    }

    fn do_work(&mut self, world: &mut World) -> bool {
        if self.work.is_empty() {
            return false;
        }
        let index = world.below(self.work.len());
        let clocks = self.clocks;
        let work = &mut self.work[index];
        let Some(ended) = work.step(&clocks, &mut self.ledger, world) else {
            return true;
        };
        match ended {
            None => false,
            Some(ended) => {
                let work = self.work.swap_remove(index);
                if let Some(job) = work.job() {
                    world.tell(self.name, || format!("has finished {}", work.words()));
                    self.ended.push_back((job, ended));
                }
                true
            }
        }
    }

    /// Takes in work that has ended.
    fn end_work(&mut self, world: &mut World) -> bool {
        let Some((job, ended)) = self.ended.pop_front() else {
            return false;
        };
        match ended {
            Ended::Finished => {
                let job = self.mixed_up(job, world);
                self.input(Input::Finished(job), None, world);
            }
        }
        true
    }

    /// The bug of [`Bug::StaleGeneration`]: a completion finishes whatever has its place in the
    /// present assignment.
    fn mixed_up(&self, job: Job, world: &World) -> Job {
        if !world.has_bug(Bug::StaleGeneration) {
            return job;
        }
        let of = |generation: u64| {
            let started = self.started.iter();
            started.filter(move |(partition, each, _)| {
                (*partition, *each) == (job.partition, generation)
            })
        };
        let place = of(job.generation).position(|(_, _, each)| each.ticket == job.ticket);
        let newest = self
            .started
            .iter()
            .filter(|(partition, _, _)| *partition == job.partition)
            .map(|each| each.1)
            .max();
        let taken = place
            .zip(newest)
            .and_then(|(place, newest)| of(newest).nth(place));
        taken.map_or(job, |(_, _, taken)| *taken)
    }

    fn count_waiting(&mut self, world: &mut World) -> bool {
        let waiting = self.work.iter().map(Work::waiting).sum();
        if waiting == self.waiting {
            return false;
        }
        self.waiting = waiting;
        self.input(Input::Outages(waiting), None, world);
        true
    }

    fn tick(&mut self, world: &mut World) -> bool {
        let now = self.now(world);
        if now < self.ticked + TICK {
            return false;
        }
        self.ticked = now;
        self.input(Input::Tick, None, world);
        true
    }

    /// Leaving is over: everything was given up, or it took too long.
    fn end_leaving(&mut self, world: &mut World) -> bool {
        let Some(leave_by) = self.leave_by else {
            return false;
        };
        if self.member.revoking.is_some() && world.now < leave_by {
            return false;
        }
        world.tell(self.name, || "has left".to_owned());
        while world.pg.is_up && self.ledger.flush(world) {}
        world.log.expire(self.member.name);
        self.die(world);
        true
    }
}
