//! One record in work: what the lane, the driver and the sinks do for it, a step at a time.

use std::rc::Rc;

use events::{Class, Event, EventId, Micros};
use fanout::core::{
    delivery::{Delivery, Outcome, Page, PostState, Step},
    plan::{self, Plan, Post},
    retry::{self, Verdict},
    row::{Edge, Row},
    state::Job,
};
use timeline_store::{MAX_TTL_SECONDS, TimelineDelete, TimelineRow};

use super::{PAGE, RETENTION_US, rules};
use crate::{
    actors::{Clocks, LedgerWriter},
    bugs::Bug,
    invariants,
    world::{
        World,
        log::Rec,
        postgres::index,
        store::{Insert, Work as Request},
        truth::Place,
    },
};

/// An unknown outcome that repeats means that the dependency cannot keep up.
const UNSURE_IS_PRESSURE: u32 = 2;

/// How work ended.
#[derive(Clone, Copy, Debug)]
pub(super) enum Ended {
    /// Rows written, or the letter stored.
    Finished,
}

/// Postgres's time at the read of a page, as a worker carries it on.
#[derive(Clone, Copy, Debug)]
struct PgNow {
    read_us: Micros,
    /// By the worker's monotonic clock.
    read_at: u64,
    /// How far Postgres's clock was set.
    clock_step: i64,
}

/// A step that runs, again and again until it works.
#[derive(Debug)]
struct Running {
    task: Task,
    failures: u32,
    /// By the worker's monotonic clock.
    not_before: u64,
    /// A request that was sent.
    request: Option<u64>,
}

#[derive(Clone, Debug)]
enum Task {
    Read {
        after: Option<events::UserId>,
    },
    Write {
        step: Step,
        now: PgNow,
        edges: Vec<Edge>,
    },
    /// The letter into its topic, then its row.
    Bury {
        is_produced: bool,
        is_wrong: bool,
    },
}

/// See the module.
#[derive(Debug)]
pub(super) struct Work {
    rec: Rc<Rec>,
    place: Place,
    job: Option<Job>,
    post: Option<Post>,
    delivery: Option<Delivery>,
    running: Vec<Running>,
    /// Of the page read last.
    page: Option<(PgNow, Vec<Edge>)>,
    ended: bool,
    is_delivered: bool,
    /// The page read last was without the post.
    was_absent: bool,
    /// The worker's monotonic clock at the last step.
    now: u64,
}

impl Work {
    pub(super) const fn new(rec: Rc<Rec>, place: Place) -> Self {
        Self {
            rec,
            place,
            job: None,
            post: None,
            delivery: None,
            running: Vec::new(),
            page: None,
            ended: false,
            is_delivered: false,
            was_absent: false,
            now: 0,
        }
    }

    pub(super) const fn job(&self) -> Option<Job> {
        self.job
    }

    pub(super) fn words(&self) -> String {
        let (partition, topic, offset) = self.place;
        format!(
            "event {} at {partition}@{offset} of topic {topic}",
            self.rec.event
        )
    }

    /// Pieces of it that wait for a dependency.
    pub(super) fn waiting(&self) -> usize {
        self.running
            .iter()
            .filter(|running| running.failures >= UNSURE_IS_PRESSURE)
            .count()
    }

    /// Nobody works on it any more; what was sent goes on.
    pub(super) fn give_up(self, world: &mut World) {
        for running in self.running {
            if let Some(request) = running.request {
                world.store.give_up(request);
            }
        }
    }

    pub(super) fn begin(&mut self, job: Job, world: &mut World) {
        self.job = Some(job);
        let decoded = Event::decode(&self.rec.type_name, &self.rec.payload);
        let Some(event) = decoded
            .ok()
            .filter(|event| self.rec.key.as_ref() == event.partition_key().to_string().as_bytes())
        else {
            return self.bury(true);
        };
        let mut plan = plan::plan(&event);
        if world.has_bug(Bug::IgnoreRepeatedDelete)
            && self.is_repeated(world)
            && matches!(plan, Plan::Delete { .. })
        {
            plan = Plan::Nothing;
        }
        if let (Plan::Delete { post, del_us }, true) =
            (&mut plan, world.has_bug(Bug::DeleteAtPostTime))
        {
            *del_us = post.post_us;
        }
        if let Plan::Direct(post) | Plan::Delete { post, .. } = plan {
            self.post = Some(post);
        }
        let (delivery, steps) = Delivery::new(plan, rules());
        self.delivery = Some(delivery);
        self.take(steps, world);
    }

    /// Whether this record was read before.
    fn is_repeated(&self, world: &mut World) -> bool {
        !world.truth.read_before.insert(self.rec.uid)
    }

    fn bury(&mut self, is_wrong: bool) {
        self.running.clear();
        self.run(
            Task::Bury {
                is_produced: false,
                is_wrong,
            },
            0,
        );
    }

    fn run(&mut self, task: Task, not_before: u64) {
        self.running.push(Running {
            task,
            failures: 0,
            not_before,
            request: None,
        });
    }

    fn take(&mut self, steps: Vec<Step>, world: &mut World) {
        for step in steps {
            match step {
                Step::Read { after } => self.run(Task::Read { after }, 0),
                Step::ReadLater { after, pause } => {
                    let pause = u64::try_from(pause.as_micros()).unwrap_or(u64::MAX);
                    self.run(Task::Read { after }, self.now + pause);
                }
                Step::Write(_) | Step::Delete { .. } => {
                    if let Some((now, edges)) = self.page.clone() {
                        self.run(Task::Write { step, now, edges }, 0);
                    }
                }
                Step::Finished(outcome) => self.finish(outcome, world),
            }
        }
    }

    fn finish(&mut self, outcome: Outcome, world: &mut World) {
        let event = self.rec.event;
        world.tell("fan-out", || format!("event {event}: {}", outcome.as_str()));
        match outcome {
            Outcome::PastHorizon => return self.bury(true),
            Outcome::Ghost => {
                if self.was_absent {
                    world.truth.ghosts.insert(self.place);
                }
            }
            Outcome::Delivered | Outcome::Removed | Outcome::SkippedDeleted => {
                self.is_delivered = true
            }
            Outcome::Nothing => {}
        }
        self.ended = true;
    }

    /// Does one thing for it. `None`: something was done; `Some(None)`: there was nothing to do;
    /// else how it ended.
    pub(super) fn step(
        &mut self,
        clocks: &Clocks,
        ledger: &mut LedgerWriter,
        world: &mut World,
    ) -> Option<Option<Ended>> {
        self.now = clocks.monotonic(world);
        if self.ended {
            if self.is_delivered {
                self.note(ledger, world);
            }
            return Some(Some(Ended::Finished));
        }
        let first = world.below(self.running.len());
        for turn in 0..self.running.len() {
            let at = (first + turn) % self.running.len();
            if self.advance(at, clocks, world) {
                return None;
            }
        }
        Some(None)
    }

    fn note(&self, ledger: &mut LedgerWriter, world: &mut World) {
        world.truth.noted.insert(self.rec.uid);
        match self.rec.epoch {
            Some(epoch) => ledger.note(world, self.rec.event, self.rec.uid, epoch),
            None => drop(world.truth.unentered[1].insert(self.rec.uid)),
        }
    }

    /// Goes on with a running step. Whether anything could be done.
    fn advance(&mut self, at: usize, clocks: &Clocks, world: &mut World) -> bool {
        let running = &mut self.running[at];
        if let Some(request) = running.request {
            let Some(answer) = world.store.answer(request) else {
                return false;
            };
            running.request = None;
            match answer {
                Ok(()) => self.wrote(at, world),
                Err(Class::Unsure) if world.has_bug(Bug::UnknownIsDone) => self.wrote(at, world),
                Err(class) => self.failed(at, class, world),
            }
            return true;
        }
        if running.not_before > self.now {
            return false;
        }
        match running.task.clone() {
            Task::Read { after } => self.read(at, after, world),
            Task::Write { step, now, edges } => {
                let work = self.request(&step, now, &edges, clocks, world);
                let sent_at = world.now;
                self.running[at].request = Some(world.store.send(work, sent_at));
            }
            Task::Bury {
                is_produced,
                is_wrong,
            } => self.bury_on(at, is_produced, is_wrong, world),
        }
        true
    }

    fn failed(&mut self, at: usize, class: Class, world: &mut World) {
        let running = &mut self.running[at];
        running.failures += 1;
        let mut verdict = retry::verdict(class, running.failures, world.rng.f64());
        if world.has_bug(Bug::DeadLetterOnOutage) && running.failures >= 4 {
            verdict = Verdict::DeadLetter;
        }
        match verdict {
            Verdict::Again(pause) => {
                running.not_before =
                    self.now + u64::try_from(pause.as_micros()).unwrap_or(u64::MAX);
            }
            Verdict::DeadLetter => self.bury(false),
            Verdict::Stop(class) => world.violate(invariants::Invariant::Fault, class.as_str()),
        }
    }

    fn read(&mut self, at: usize, after: Option<events::UserId>, world: &mut World) {
        if !world.pg.is_up || world.fails(20) {
            return self.failed(at, Class::Outage, world);
        }
        let (Some(post), Some(delivery)) = (self.post, self.delivery.as_mut()) else {
            return;
        };
        let (page, edges) = page(world, &post, after);
        self.was_absent = page.post == PostState::Absent;
        self.running.swap_remove(at);
        let now = PgNow {
            read_us: page.pg_now,
            read_at: self.now,
            clock_step: world.pg.clock_step,
        };
        let steps = delivery.page_read(&page);
        self.page = Some((now, edges));
        self.take(steps, world);
    }

    fn wrote(&mut self, at: usize, world: &mut World) {
        self.running.swap_remove(at);
        if let Some(delivery) = &mut self.delivery {
            let steps = delivery.written();
            self.take(steps, world);
        }
    }

    /// The request of a page of rows, as it is sent now.
    fn request(
        &self,
        step: &Step,
        now: PgNow,
        edges: &[Edge],
        clocks: &Clocks,
        world: &World,
    ) -> Request {
        let Some(post) = self.post else {
            return Request::Write(Vec::new());
        };
        match step {
            Step::Write(rows) => {
                let pg_now = now
                    .read_us
                    .plus(i64::try_from(self.now - now.read_at).unwrap_or(i64::MAX));
                let insert =
                    |row: &Row| insert(world, clocks, &post, row, pg_now, now.clock_step, edges);
                Request::Write(rows.iter().filter_map(insert).collect())
            }
            Step::Delete { owners, del_us } => {
                let delete = |owner: &events::UserId| TimelineDelete {
                    owner: *owner,
                    post: post.id,
                    write_us: *del_us,
                };
                Request::Delete(owners.iter().map(delete).collect())
            }
            Step::Read { .. } | Step::ReadLater { .. } | Step::Finished(_) => {
                Request::Write(Vec::new())
            }
        }
    }

    /// First the topic, then the row, then done.
    fn bury_on(&mut self, at: usize, is_produced: bool, is_wrong: bool, world: &mut World) {
        let is_reached = if is_produced {
            world.pg.is_up
        } else {
            world.log.is_up
        };
        if !is_reached || world.fails(20) {
            return self.failed_to_bury(at, world);
        }
        if !is_produced {
            invariants::at_deliver_letter(world, self.rec.event.0, is_wrong);
            self.running[at].task = Task::Bury {
                is_produced: true,
                is_wrong,
            };
            return;
        }
        let letters = &mut world.pg.account.letters[index(events::Stage::Delivered)];
        letters.insert(EventId(self.rec.event.0), true);
        world.truth.buried.insert(self.place);
        self.running.clear();
        self.ended = true;
    }

    fn failed_to_bury(&mut self, at: usize, world: &mut World) {
        let running = &mut self.running[at];
        running.failures += 1;
        let pause = retry::pause(running.failures, world.rng.f64());
        running.not_before = self.now + u64::try_from(pause.as_micros()).unwrap_or(u64::MAX);
    }
}

/// A page of followers with the state of the post and Postgres's time, in one snapshot.
fn page(world: &World, post: &Post, after: Option<events::UserId>) -> (Page, Vec<Edge>) {
    let found = world.pg.posts.get(&post.id.0);
    let state = found.map(|found| {
        (
            events::UserId(found.author),
            found.post_us,
            found.is_deleted,
        )
    });
    let after = after.map_or(i64::MIN, |after| after.0);
    let author = found.map(|found| found.author);
    let edges = world.pg.edges.iter().filter(|edge| {
        Some(edge.followee) == author && edge.ended.is_none() && edge.follower > after
    });
    let mut edges: Vec<Edge> = edges
        .map(|edge| Edge {
            follower: events::UserId(edge.follower),
            edge_us: edge.edge_us,
        })
        .collect();
    edges.sort_unstable_by_key(|edge| edge.follower);
    edges.truncate(PAGE);
    let all = edges.clone();
    if world.has_bug(Bug::FirstPageOnly) && edges.len() == PAGE {
        edges.pop();
    }
    let page = Page {
        post: PostState::judge(post, state),
        pg_now: world.clock(),
        edges,
    };
    (page, all)
}

/// The rule of `timeline-store`: what is left of its time, rounded down; nothing is not sent.
fn insert(
    world: &World,
    clocks: &Clocks,
    post: &Post,
    row: &Row,
    pg_now: Micros,
    clock_step: i64,
    edges: &[Edge],
) -> Option<Insert> {
    let mut left = (row.expires_us.0 - pg_now.0).div_euclid(1_000_000);
    if world.has_bug(Bug::ConstantTtl) {
        left = RETENTION_US / 1_000_000;
    }
    let ttl = u32::try_from(left.min(i64::from(MAX_TTL_SECONDS)))
        .ok()
        .filter(|ttl| *ttl > 0)?;
    let mut write_us = row.write_us;
    if world.has_bug(Bug::WorkerClock) {
        write_us = world.clock().plus(clocks.wall);
    }
    let edge = edges.iter().find(|edge| edge.follower == row.owner)?;
    Some(Insert {
        row: TimelineRow {
            owner: row.owner,
            post: post.id,
            author: post.author,
            write_us,
            expires_us: row.expires_us,
        },
        ttl,
        edge_us: edge.edge_us,
        clock_step,
    })
}
