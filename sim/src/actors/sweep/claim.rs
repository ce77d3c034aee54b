//! A claim: lock a block, read again, decide, send, wait for every acknowledgement, commit.

use std::{collections::BTreeMap, sync::Arc};

use events::{
    Class, EventId, Micros, Namespace, Stage, envelope,
    route::{Letter, Routed, Router, Via},
};
use sweep::core::{Claimed, DiscardReason, Fate, Look, fate};

use super::{Lives, NOTHING, StageSweep};
use crate::{
    actors::{DATABASE, NAMESPACE},
    bugs::Bug,
    invariants::{self, Known},
    world::{
        World,
        postgres::{Claimable, index},
        producer::Producer,
        row,
    },
};

/// Ids of a block: so few that sweepers meet at locks, and not always.
const BLOCK: i64 = 4;
/// An event older than this is discarded.
const HORIZON_US: i64 = 7 * 24 * Micros::HOUR;

/// How a step of a claim ended.
#[derive(Debug)]
pub(super) enum Outcome {
    GoesOn,
    Done(Claimed),
    Failed,
}

/// What was sent and is not acknowledged.
#[derive(Debug)]
struct Sent {
    event: EventId,
    uid: u64,
    /// It is a dead letter: then this is to be entered before the commit.
    letter: Option<Letter>,
}

/// The part of a claim that is about one block.
#[derive(Debug, Default)]
struct Part {
    block: i64,
    sent: Vec<EventId>,
    waiting: BTreeMap<u64, Sent>,
    letters: Vec<(u64, Letter)>,
    discards: Vec<(EventId, DiscardReason)>,
    uids: Vec<u64>,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Claim {
    name: &'static str,
    look: Arc<Look>,
    uid: u64,
    blocks: Vec<(i64, Vec<EventId>)>,
    part: Option<Part>,
    claimed: Claimed,
}

impl Claim {
    pub(super) fn new(name: &'static str, look: &Arc<Look>, world: &mut World) -> Self {
        let mut blocks: Vec<(i64, Vec<EventId>)> = Vec::new();
        for &id in &look.ids {
            let block = id.0.div_euclid(BLOCK);
            match blocks.last_mut() {
                Some((last, ids)) if *last == block => ids.push(id),
                _ => blocks.push((block, vec![id])),
            }
        }
        let start = world.below(blocks.len());
        blocks.rotate_left(start);
        Self {
            name,
            look: Arc::clone(look),
            uid: world.truth.name(),
            blocks,
            part: None,
            claimed: NOTHING,
        }
    }

    /// It ends in the middle: nothing of the present block is written, what was sent is sent.
    pub(super) fn cut(self, producer: &mut Producer, world: &mut World) {
        producer.abandon(world);
        if let Some(part) = self.part {
            world.pg.locks.remove(&part.block);
            for uid in part.uids {
                world.truth.in_claim.remove(&uid);
                world.truth.unsure.insert(uid);
            }
        }
    }

    pub(super) fn step(
        &mut self,
        stage: &mut StageSweep,
        world: &mut World,
        lives: Lives<'_>,
    ) -> Outcome {
        let Some(part) = &mut self.part else {
            return self.begin(stage, world, lives);
        };
        if let Some((tag, result)) = stage.producer.report(world) {
            let Some(sent) = part.waiting.remove(&tag) else {
                return Outcome::GoesOn;
            };
            return self.acknowledged(sent, result, stage, world);
        }
        if !part.waiting.is_empty() {
            // The wait for acknowledgements is bounded.
            let gives_up = !world.log.is_up || world.fails(5);
            return if gives_up {
                Outcome::Failed
            } else {
                Outcome::GoesOn
            };
        }
        if let Some((uid, letter)) = part.letters.pop() {
            stage.tags += 1;
            let sent = Sent {
                event: letter.event,
                uid,
                letter: Some(letter.clone()),
            };
            part.waiting.insert(stage.tags, sent);
            stage
                .producer
                .send_letter(stage.tags, letter, uid, Some(self.uid));
            return Outcome::GoesOn;
        }
        self.commit(stage.stage, world)
    }

    /// Locks the next block, and sends what is missing of it.
    fn begin(&mut self, stage: &mut StageSweep, world: &mut World, lives: Lives<'_>) -> Outcome {
        let Some((block, ids)) = self.blocks.pop() else {
            return Outcome::Done(self.claimed);
        };
        // Now and then its share of time is over.
        if world.fails(20) {
            self.claimed.more = true;
            return Outcome::Done(self.claimed);
        }
        let is_free = world.pg.locks.insert(block) || world.has_bug(Bug::ClaimWithoutLock);
        if !is_free {
            self.claimed.left += ids.len() as u64;
            return Outcome::GoesOn;
        }
        let now = world.clock();
        let mut part = Part {
            block,
            ..Part::default()
        };
        let mut rows = world.pg.claimable(stage.stage, &ids);
        if world.has_bug(Bug::NoGrace) {
            rows = unsubtracted(world, &ids);
        }
        let router = router(self.look.life.epoch);
        for row in rows {
            match fate(&row.facts, self.look.taken_us, now, HORIZON_US) {
                Fate::Redeliver { attempt, .. } => {
                    self.send(&mut part, &router, row.event, attempt, stage, world, lives);
                }
                Fate::Discard(reason) => part.discards.push((row.event, reason)),
                Fate::Leave(_) => self.claimed.left += 1,
            }
        }
        self.part = Some(part);
        Outcome::GoesOn
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "one record of one claim, and who watches"
    )]
    fn send(
        &self,
        part: &mut Part,
        router: &Router,
        event: EventId,
        attempt: u32,
        stage: &mut StageSweep,
        world: &mut World,
        lives: Lives<'_>,
    ) {
        let Some(row) = world.pg.outbox.get(&event).cloned() else {
            return;
        };
        let known = Known {
            looked: stage.looked,
            checked: stage.checked,
        };
        let live = lives(world, row.uid);
        world.tell(self.name, || {
            format!(
                "{}: sends event {event} again, attempt {attempt}",
                stage.stage.as_str()
            )
        });
        invariants::at_resend(world, stage.stage, &row, known, live);
        world.truth.in_claim.insert(row.uid);
        part.uids.push(row.uid);
        match router.route(&row.cells(), Via::Sweep { attempt }) {
            Routed::Record(record) => {
                stage.tags += 1;
                let sent = Sent {
                    event,
                    uid: row.uid,
                    letter: None,
                };
                part.waiting.insert(stage.tags, sent);
                stage.producer.send(stage.tags, record, Some(self.uid));
            }
            Routed::Letter(letter) => part.letters.push((row.uid, letter)),
        }
    }

    fn acknowledged(
        &mut self,
        sent: Sent,
        result: Result<(), Class>,
        stage: &StageSweep,
        world: &mut World,
    ) -> Outcome {
        let Some(part) = &mut self.part else {
            return Outcome::GoesOn;
        };
        match (result, sent.letter) {
            (Ok(()), None) => part.sent.push(sent.event),
            (Ok(()), Some(letter)) => {
                // Entered by a statement of its own, whatever becomes of the claim.
                let letters = &mut world.pg.account.letters[index(stage.stage)];
                letters.insert(sent.event, letter.payload.is_some());
                self.claimed.left += 1;
            }
            (Err(Class::Record), None) => {
                let row = world.truth.rows.get(&sent.uid).cloned();
                if let Some(letter) = row.and_then(|row| refused(&row, self.look.life.epoch)) {
                    part.letters.push((sent.uid, letter));
                }
            }
            (Err(_), _) => return Outcome::Failed,
        }
        Outcome::GoesOn
    }

    /// What was sent and given up, in one transaction, which ends the lock.
    fn commit(&mut self, stage: Stage, world: &mut World) -> Outcome {
        if world.fails(30) {
            return Outcome::Failed;
        }
        let is_of_epoch = world.pg.epoch().number == self.look.life.epoch;
        if stage == Stage::Published && !is_of_epoch {
            return Outcome::Failed;
        }
        let Some(part) = self.part.take() else {
            return Outcome::GoesOn;
        };
        let now = world.clock();
        for event in &part.sent {
            let entry = world.pg.account.redelivered[index(stage)]
                .entry(*event)
                .or_insert((0, now));
            *entry = (entry.0 + 1, now);
        }
        for (event, reason) in &part.discards {
            world.pg.account.discarded[index(stage)].insert(*event, *reason);
        }
        if stage == Stage::Published {
            let entered =
                world
                    .pg
                    .enter(stage, part.sent.iter().copied(), self.look.life.epoch, now);
            debug_assert!(entered.is_ok(), "the epoch was looked at in this step");
            for uid in &part.uids {
                let is_entered = world
                    .truth
                    .rows
                    .get(uid)
                    .is_some_and(|row| part.sent.contains(&row.id));
                if is_entered {
                    invariants::at_entry(world, stage, *uid);
                }
            }
        }
        world.pg.locks.remove(&part.block);
        world.truth.claims.insert(self.uid);
        for uid in &part.uids {
            world.truth.in_claim.remove(uid);
        }
        self.claimed.redelivered += part.sent.len() as u64;
        self.claimed.discarded += part.discards.len() as u64;
        let (name, sent, discards) = (self.name, part.sent, part.discards);
        world.tell(name, || {
            let sent: Vec<i64> = sent.iter().map(|event| event.0).collect();
            format!(
                "{}: claim of {sent:?} committed, given up: {discards:?}",
                stage.as_str()
            )
        });
        if world.fails(10) {
            // Committed, and the answer never came.
            return Outcome::Failed;
        }
        Outcome::GoesOn
    }
}

fn router(epoch: i64) -> Router {
    let namespace = Namespace::new(NAMESPACE).expect("a namespace of one letter");
    Router::new(&namespace, &envelope::source(DATABASE, epoch), |_| {
        row::MAX_BYTES
    })
}

/// The letter of a row that the broker refuses for itself.
fn refused(row: &row::Row, epoch: i64) -> Option<Letter> {
    let router = router(epoch);
    match router.route(&row.cells(), Via::Sweep { attempt: 1 }) {
        Routed::Record(record) => Some(router.refused(&record.summary)),
        Routed::Letter(_) => None,
    }
}

/// The bug of [`Bug::NoGrace`]: nothing is subtracted again under the lock.
fn unsubtracted(world: &World, ids: &[EventId]) -> Vec<Claimable> {
    let rows = ids.iter().filter_map(|id| world.pg.outbox.get(id));
    rows.map(|row| Claimable {
        event: row.id,
        facts: sweep::core::Facts {
            created_us: row.created_us,
            post_exists: None,
            attempts: 0,
            last_us: None,
            dead_letter_open: false,
            discarded: false,
        },
    })
    .collect()
}
