//! The lives of a database: restarts, a standby that takes over, epochs.

use events::{IdRange, Micros};

use super::{Postgres, writes};
use crate::world::World;

/// How far ids jump at a new epoch: above all that the old server can have drawn unseen.
const JUMP: i64 = 1_000;

/// Which server this is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Server {
    pub(crate) system: String,
    pub(crate) timeline: i64,
}

/// A row of `epoch`.
#[derive(Clone, Debug)]
pub(crate) struct Epoch {
    pub(crate) number: i64,
    pub(crate) server: Server,
    pub(crate) started_us: Micros,
}

/// Begins an epoch if this server is not the one of the newest. Whether it did.
pub(crate) fn here(world: &mut World) -> bool {
    if world.pg.epoch().server == world.pg.server {
        return false;
    }
    begin_epoch(world);
    true
}

/// A new epoch: ids go on higher, and what was entered around the end of the old one is doubted.
fn begin_epoch(world: &mut World) {
    let now = world.clock();
    let pg = &mut world.pg;
    let old = pg.epoch().clone();
    let signs = [
        Some(pg.account.recorded_us),
        pg.position.as_ref().map(|position| position.updated_us),
        Some(old.started_us),
    ];
    let last_sign = signs.into_iter().flatten().max().unwrap_or_default();
    let since = last_sign.min(now).plus(-Micros::HOUR);
    let doubtful = doubtful(pg, since);
    pg.next_event = pg
        .next_event
        .max(pg.outbox.keys().next_back().map_or(0, |id| id.0))
        + JUMP;
    for entered in &mut pg.account.entered {
        *entered = entered.subtract(&doubtful.into());
    }
    let (number, server) = (old.number + 1, pg.server.clone());
    pg.epochs.push(super::Epoch {
        number,
        server,
        started_us: now,
    });
    world.truth.take_back_entries();
    world.tell("postgres", || {
        format!("epoch {number} begins, {doubtful} in doubt")
    });
}

/// From the lowest row of that time up to the highest id in the ledger.
fn doubtful(pg: &Postgres, since: Micros) -> IdRange {
    let of_that_time = pg.outbox.values().filter(|row| row.created_us >= since);
    let low = of_that_time
        .map(|row| row.id.0)
        .min()
        .or_else(|| pg.outbox.keys().next_back().map(|id| id.0 + 1))
        .unwrap_or(1);
    let entered = pg.account.entered.iter().filter_map(|ids| ids.highest());
    let high = entered.max().map_or(0, |id| id.0 + 1);
    IdRange { low, high }
}

/// The server is restarted: open transactions end, flushed ones are there, connections are cut.
pub(crate) fn restart(world: &mut World) {
    while let Some(index) = world.pg.open.len().checked_sub(1) {
        writes::end(world, index, false);
    }
    cut(world);
}

/// The standby takes over as it is: what it had not heard of never was.
pub(crate) fn promote(world: &mut World) -> bool {
    let Some(standby) = world.standby.take() else {
        return false;
    };
    let (cuts, is_up) = (world.pg.cuts, world.pg.is_up);
    let clock_step = world.pg.clock_step;
    world.pg = *standby;
    let pg = &mut world.pg;
    (pg.cuts, pg.is_up) = (cuts, is_up);
    // A machine of its own, a clock of its own.
    pg.clock_step = clock_step;
    pg.server.timeline += 1;
    pg.slot = None;
    world.truth.took_over(world.step);
    restart(world);
    world.tell("postgres", || "the standby takes over".to_owned());
    true
}

fn cut(world: &mut World) {
    world.pg.cuts += 1;
    // Open claims are cut with their locks, also those whose sweeper has not noticed.
    let cut = std::mem::take(&mut world.truth.in_claim);
    world.truth.unsure.extend(cut);
    world.pg.locks.clear();
    world.pg.cached.clear();
    if let Some(slot) = &mut world.pg.slot {
        slot.holder = None;
        if slot.confirmed.is_none() {
            world.pg.slot = None;
        }
    }
}
