//! What goes wrong on a large scale: processes that die, servers that are away, slots, topics and
//! offsets that are lost, clocks that jump. What goes wrong on a small scale, an answer that is
//! lost, is in the world.

use crate::{
    scheduler::Play,
    world::{
        SECOND, World,
        log::PARTITIONS,
        postgres::{self},
    },
};

/// A kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    KillRelay,
    StopRelay,
    CutRelay,
    KillFanout,
    LeaveGroup,
    FreezeMember,
    KillSweep,
    PostgresAway,
    RestartPostgres,
    KafkaAway,
    StoreAway,
    DropSlot,
    LoseSlot,
    Unpublish,
    TakeOver,
    RecreateTopic,
    TrimTopic,
    ResetOffsets,
    Deal,
    PostgresClock,
    WorkerClock,
    RemovePost,
}

impl Fault {
    pub(crate) const ALL: [Self; 22] = [
        Self::KillRelay,
        Self::StopRelay,
        Self::CutRelay,
        Self::KillFanout,
        Self::LeaveGroup,
        Self::FreezeMember,
        Self::KillSweep,
        Self::PostgresAway,
        Self::RestartPostgres,
        Self::KafkaAway,
        Self::StoreAway,
        Self::DropSlot,
        Self::LoseSlot,
        Self::Unpublish,
        Self::TakeOver,
        Self::RecreateTopic,
        Self::TrimTopic,
        Self::ResetOffsets,
        Self::Deal,
        Self::PostgresClock,
        Self::WorkerClock,
        Self::RemovePost,
    ];

    /// Lets it happen.
    pub(crate) fn strike(self, play: &mut Play) {
        let world = &mut play.world;
        world.tell("fault", || format!("{self:?}"));
        let which = world.below(2);
        match self {
            Self::KillRelay => play.relays[which].crash_if_alive(world),
            Self::StopRelay => play.relays[which].stop(world),
            Self::CutRelay => play.relays[which].hang_up(world),
            Self::KillFanout => play.fanouts[which].crash_if_alive(world),
            Self::LeaveGroup => play.fanouts[which].leave(world),
            Self::FreezeMember => play.fanouts[which].freeze(world),
            Self::KillSweep => play.sweeps[which].crash_if_alive(world),
            Self::PostgresAway => {
                world.pg.is_up = false;
                postgres::restart(world);
            }
            Self::RestartPostgres => postgres::restart(world),
            Self::KafkaAway => world.log.is_up = false,
            Self::StoreAway => world.store.is_up = false,
            Self::DropSlot => drop_slot(world),
            Self::LoseSlot => lose_slot(world),
            Self::Unpublish => world.pg.is_published = false,
            Self::TakeOver => take_over(world),
            Self::RecreateTopic => {
                let (keeps, step) = (world.odds(500), world.step);
                world.log.recreate(keeps, step);
                // Members hear of partitions that go and come.
                world.log.deal(which);
            }
            Self::TrimTopic => trim(world),
            Self::ResetOffsets => reset(play),
            Self::Deal => world.log.deal(which),
            Self::PostgresClock => {
                // Forwards at will; backwards by less than the rules' margin of an hour.
                let minutes = world.rng.i64(-25..60);
                world.pg.clock_step += minutes * 60_000_000;
            }
            Self::WorkerClock => {
                let micros = world.rng.i64(-3_600_000_000..3_600_000_000);
                play.fanouts[which].jump(world, micros);
            }
            Self::RemovePost => remove_post(world),
        }
    }
}

/// Nobody can drop a slot that is held, so its holder is cut first.
fn drop_slot(world: &mut World) {
    if world.pg.slot.is_some_and(|slot| slot.confirmed.is_some()) {
        world.pg.slot = None;
    }
}

fn lose_slot(world: &mut World) {
    if let Some(slot) = world
        .pg
        .slot
        .as_mut()
        .filter(|slot| slot.confirmed.is_some())
    {
        slot.is_lost = true;
        slot.holder = None;
    }
}

/// The standby takes over as it was, or one is set up.
fn take_over(world: &mut World) {
    if world.pg.is_up && !postgres::promote(world) {
        world.standby = Some(Box::new(world.pg.clone()));
    }
}

/// Retention, up to the group's offset as a rule, beyond it now and then.
fn trim(world: &mut World) {
    let partition = world.below(PARTITIONS);
    let part = &world.log.posts[partition];
    let (low, end) = (part.low, part.end());
    let read = part.committed.unwrap_or(low).clamp(low, end);
    let below = if world.odds(300) {
        world.rng.i64(low..=end)
    } else {
        read
    };
    let step = world.step;
    world.log.trim(partition, below, step);
}

/// An operator sets offsets, which takes a group without members.
fn reset(play: &mut Play) {
    for fanout in &mut play.fanouts {
        fanout.crash_if_alive(&mut play.world);
    }
    let world = &mut play.world;
    let members: Vec<u64> = world.log.sessions.iter().copied().collect();
    for member in members {
        world.log.expire(member);
    }
    for partition in 0..PARTITIONS {
        let part = &world.log.posts[partition];
        let (low, end) = (part.low, part.end());
        let offset = world.rng.i64(low..=end);
        let step = world.step;
        world.log.reset(partition, offset, step);
    }
}

/// An operator removes a post; its events stay.
fn remove_post(world: &mut World) {
    let posts: Vec<i64> = world.pg.posts.keys().copied().collect();
    let at = world.below(posts.len());
    let held = posts
        .get(at)
        .filter(|post| !world.pg.open.iter().any(|txn| txn.holds_post(**post)));
    if let Some(post) = held.copied() {
        world.pg.posts.remove(&post);
    }
}

/// Mends one thing that is away. Whether anything was.
pub(crate) fn mend(play: &mut Play, all: bool) -> bool {
    let world = &mut play.world;
    let mut mended = false;
    let mut turn = |is_broken: bool, world: &mut World| {
        let now = is_broken && (all || world.odds(300));
        mended |= now;
        now
    };
    if turn(!world.pg.is_up, world) {
        world.pg.is_up = true;
    }
    if turn(!world.log.is_up, world) {
        world.log.is_up = true;
    }
    if turn(!world.store.is_up, world) {
        world.store.is_up = true;
    }
    if turn(!world.pg.is_published, world) {
        world.pg.is_published = true;
    }
    if mended {
        world.tell("fault", || "something is mended".to_owned());
    }
    mended | play.revive(all)
}

/// How long time passes at once.
pub(crate) fn pause(world: &mut World) -> u64 {
    match world.rng.u32(..1_000) {
        0..500 => world.rng.u64(1..50_000),
        500..800 => world.rng.u64(50_000..SECOND),
        800..960 => world.rng.u64(SECOND..12 * SECOND),
        960..995 => world.rng.u64(12 * SECOND..120 * SECOND),
        995..999 => world.rng.u64(120 * SECOND..4_000 * SECOND),
        _ if world.profile.has_days => world.rng.u64(20..50) * 3_600 * SECOND,
        _ => SECOND,
    }
}
