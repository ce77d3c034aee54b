//! A sweeper as its driver runs it, cut into steps between which anything may happen.

use std::{collections::BTreeSet, sync::Arc};

use events::{IdRange, IdRanges};

use super::{world::World, *};
use crate::core::{Reader, voids};

/// So few, that looks are full now and then.
const LOOK_IDS: usize = 4;
/// So few, that the sweepers meet at locks, and not always.
const BLOCK: i64 = 3;
const HORIZON: i64 = 10_000 * 24 * Micros::HOUR;

/// One process: both stages. Thrown away and made anew at a crash.
#[derive(Debug)]
pub(super) struct Sweeper {
    stages: [StageSweep; 2],
}

#[derive(Debug)]
struct StageSweep {
    stage: usize,
    round: Round,
    reader: Reader,
    /// Rows were read, the mark is still to be written.
    half: Option<Look>,
    /// Produced, not committed.
    claim: Option<Claim>,
    is_cut: bool,
    /// The step of the last look, and of the last reading of the slot.
    looked_at: u64,
    checked_at: u64,
}

#[derive(Debug, Default)]
struct Claim {
    produced: Vec<i64>,
    discarded: Vec<i64>,
    blocks: BTreeSet<i64>,
}

impl Sweeper {
    pub(super) fn new() -> Self {
        let sweep = |stage, round| StageSweep {
            stage,
            round,
            reader: Reader::default(),
            half: None,
            claim: None,
            is_cut: false,
            looked_at: 0,
            checked_at: 0,
        };
        Self {
            stages: [
                sweep(0, Round::published(timing(), Mode::Sweep)),
                sweep(1, Round::delivered(timing(), 1)),
            ],
        }
    }

    /// Its connection ends: the locks go, what it produced stays.
    pub(super) fn crash(&mut self, world: &mut World) {
        for stage in &mut self.stages {
            if let Some(claim) = stage.claim.take() {
                world.unsure.extend(claim.produced);
                claim.blocks.iter().for_each(|block| {
                    world.locks.remove(block);
                });
            }
        }
        *self = Self::new();
    }

    /// Postgres is another: what was being done with it has failed.
    pub(super) fn disconnect(&mut self, world: &mut World) {
        for stage in &mut self.stages {
            let claim = stage.claim.take();
            stage.is_cut |= claim.is_some() || stage.half.take().is_some();
            world
                .unsure
                .extend(claim.into_iter().flat_map(|claim| claim.produced));
        }
    }

    /// Does one step of one stage. Returns when the next is due, if it has nothing to do.
    pub(super) fn step(&mut self, stage: usize, fails: bool, world: &mut World) -> Option<u64> {
        self.stages[stage % 2].step(fails, world)
    }

    pub(super) fn request(&mut self, world: &World) {
        for stage in &mut self.stages {
            stage.round.request(world.moment());
        }
    }
}

impl StageSweep {
    fn step(&mut self, fails: bool, world: &mut World) -> Option<u64> {
        let want = match self.round.next(world.moment()) {
            Next::WaitUntil(then) => return Some(then.0),
            Next::Do(want) => want,
        };
        // A claim that was begun ends before anything else fails.
        let is_cut = std::mem::take(&mut self.is_cut);
        let seen = if is_cut || (fails && self.claim.is_none()) {
            self.half = None;
            Some(Seen::Failed)
        } else {
            match want {
                Want::Look => self.look(world),
                Want::Slot => {
                    self.checked_at = world.step;
                    Some(slot(world))
                }
                Want::Hop(_) => Some(marks(world)),
                Want::Probe => Some(Seen::Probed(world.broker_up)),
                Want::Claim(look) => self.claim(&look, world),
            }
        };
        if let Some(seen) = seen {
            self.round.see(seen, world.moment());
        }
        None
    }

    /// First the rows, then, a step later, the mark.
    fn look(&mut self, world: &mut World) -> Option<Seen> {
        if let Some(mut look) = self.half.take() {
            world.lsn += 10;
            look.lsn = world.lsn;
            return Some(Seen::Looked(look));
        }
        self.looked_at = world.step;
        let candidates = candidates(self.stage, world);
        let (noted, snapshot) = (world.voids.clone(), world.snapshot());
        let noted = if self.stage == 0 { &noted[..] } else { &[] };
        let ranges = self
            .reader
            .ranges(&candidates, noted, &snapshot, world.moment());
        let mut ids: Vec<EventId> = world
            .rows
            .keys()
            .map(|id| EventId(*id))
            .filter(|id| ranges.contains(*id))
            .collect();
        let truncated = ids.len() > LOOK_IDS;
        ids.truncate(LOOK_IDS);
        let look = Look {
            life: life(world.epoch),
            ids,
            taken_us: world.clock(),
            lsn: 0,
            truncated,
        };
        if self.stage == 0 {
            let found = IdRanges::from_ids(look.ids.iter().copied());
            let read = Reader::read(&ranges, &look);
            note(world, &voids::revise(noted, &candidates, &read, &found));
            let merged = voids::merge(&world.voids, &snapshot);
            note(world, &merged);
        }
        self.reader.looked(&look);
        self.half = Some(look);
        None
    }

    /// First the locks, the facts and the produce; a step later the commit.
    fn claim(&mut self, look: &Arc<Look>, world: &mut World) -> Option<Seen> {
        if let Some(claim) = self.claim.take() {
            return Some(self.commit(&claim, world));
        }
        if !world.broker_up || look.life.epoch != world.epoch {
            return Some(Seen::Failed);
        }
        let mut claim = Claim::default();
        for id in look.ids.iter().map(|id| id.0) {
            let block = id / BLOCK;
            if !claim.blocks.contains(&block) {
                if !world.locks.insert(block) {
                    continue;
                }
                claim.blocks.insert(block);
            }
            let is_in = world.has(self.stage).contains(EventId(id));
            let Some(row) = world.rows.get(&id).filter(|_| !is_in) else {
                continue;
            };
            let before = world.redelivery.get(&(self.stage, id));
            let facts = Facts {
                created_us: row.created_us,
                post_exists: Some(!world.ghosts.contains(&id)),
                attempts: before.map_or(0, |(attempts, _)| *attempts),
                last_us: before.map(|(_, last)| *last),
                dead_letter_open: false,
                discarded: world.discarded[self.stage].contains(EventId(id)),
            };
            match fate(&facts, look.taken_us, world.clock(), HORIZON) {
                Fate::Redeliver { .. } => {
                    self.check(id, world);
                    world.append(id, false);
                    claim.produced.push(id);
                }
                Fate::Discard(reason) => {
                    assert_eq!(reason, DiscardReason::NoPost);
                    claim.discarded.push(id);
                }
                Fate::Leave(_) => {}
            }
        }
        self.claim = Some(claim);
        None
    }

    fn commit(&self, claim: &Claim, world: &mut World) -> Seen {
        for id in &claim.produced {
            let now = world.clock();
            let entry = world
                .redelivery
                .entry((self.stage, *id))
                .or_insert((0, now));
            *entry = (entry.0 + 1, now);
            if self.stage == 0 {
                world.ledger[0].insert_id(EventId(*id));
            }
            for record in world
                .partitions
                .iter_mut()
                .flat_map(|part| &mut part.records)
            {
                record.of_claim |= record.id == *id;
            }
        }
        for id in &claim.discarded {
            world.discarded[self.stage].insert_id(EventId(*id));
        }
        claim.blocks.iter().for_each(|block| {
            world.locks.remove(block);
        });
        Seen::Claimed(Claimed {
            redelivered: claim.produced.len() as u64,
            discarded: claim.discarded.len() as u64,
            ..Claimed::default()
        })
    }

    /// D-10, at the moment of sending again.
    fn check(&self, id: i64, world: &World) {
        if world.unsure.contains(&id) {
            return;
        }
        if self.stage == 0 {
            // A relay that came back after the position was read is not "live" for this claim.
            let Some(relay) = world
                .relay
                .as_ref()
                .filter(|relay| relay.since < self.checked_at)
            else {
                return;
            };
            let slot = world.slot.unwrap();
            assert!(
                world.rows[&id].lsn <= slot.confirmed,
                "D-10: {id} is ahead of the relay"
            );
            assert!(
                relay.queue.iter().all(|entry| entry.1 != id),
                "D-10: {id} is in flight"
            );
            assert!(
                !world.acked.contains(&id) || world.lost[0].contains(&id),
                "D-10: {id} was published and its ledger insert did not fail"
            );
        } else {
            let part = &world.partitions[super::world::partition_of(id)];
            // The group's position is not known.
            if part.is_stale {
                return;
            }
            let passed = part.committed.unwrap_or(part.low).max(part.low);
            let in_flight =
                part.records.iter().skip(passed).find(|record| {
                    record.id == id && (record.at < self.looked_at || record.of_claim)
                });
            assert!(in_flight.is_none(), "D-10: {id} is in flight to fan-out");
            assert!(
                !world.delivered.contains(&id) || world.lost[1].contains(&id),
                "D-10: {id} was delivered and its ledger insert did not fail"
            );
        }
    }
}

/// The span's ids that the stage does not have.
fn candidates(stage: usize, world: &World) -> IdRanges {
    let (Some(low), Some(high)) = (world.rows.keys().next(), world.rows.keys().last()) else {
        return IdRanges::new();
    };
    let span = IdRange {
        low: *low,
        high: high + 1,
    };
    let all = match stage {
        0 => IdRanges::from(span),
        _ => world.has(0).within(span),
    };
    all.subtract(&world.has(stage))
        .subtract(&world.discarded[stage])
}

fn note(world: &mut World, revision: &voids::Revision) {
    world
        .voids
        .retain(|void| !revision.forget.contains(&void.entry));
    for ids in &revision.note {
        world.voids.push(voids::Void {
            entry: world.next_void,
            ids: ids.clone(),
            xmax_seen: world.next_xid,
            seen_us: world.clock(),
        });
        world.next_void += 1;
    }
}

fn slot(world: &World) -> Seen {
    let state = match (world.slot, &world.relay) {
        (None, _) => SlotState::Absent,
        (Some(slot), _) if slot.is_lost => SlotState::Lost,
        (Some(_), None) => SlotState::Inactive,
        (Some(_), Some(_)) => SlotState::Active,
    };
    Seen::Slot {
        life: life(world.epoch),
        slot: SlotView {
            state,
            confirmed: world.slot.map(|slot| slot.confirmed),
        },
    }
}

fn marks(world: &World) -> Seen {
    let mark = |(index, part): (usize, &super::world::Partition)| Mark {
        partition: index as i32,
        low: part.low as i64,
        end: part.records.len() as i64,
        committed: part.committed.map(|offset| offset as i64),
    };
    Seen::Hop(world.partitions.iter().enumerate().map(mark).collect())
}
