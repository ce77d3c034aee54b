//! D-9 as entries are made, D-10 as events are sent again, D-11 as days go, D-12 where rows are
//! given up on the way to Kafka.

use std::rc::Rc;

use events::{EventId, Stage};

use super::{Invariant, delivery::unserved};
use crate::world::{World, log::Log, postgres::index, row::Row};

/// D-12: a dead letter was taken, on the way to Kafka.
pub(crate) fn at_letter(world: &mut World, uid: u64) {
    let row = world.truth.rows.get(&uid).cloned();
    if let Some(row) = row.filter(|row| !row.flaw.is_some_and(|flaw| flaw.is_unpublishable())) {
        world.violate(
            Invariant::D12,
            format!(
                "event {} went to the dead letters, and nothing is wrong with it",
                row.id
            ),
        );
    }
}

/// D-9: a row is entered in the ledger.
pub(crate) fn at_entry(world: &mut World, stage: Stage, uid: u64) {
    world.truth.unentered[index(stage)].remove(&uid);
    if world.pg.epoch().server != world.pg.server {
        // Of a server that is gone: doubted as soon as the new epoch begins.
        return;
    }
    let Some(row) = world.truth.rows.get(&uid).map(Rc::clone) else {
        return;
    };
    match stage {
        Stage::Published => {
            if !world.truth.in_topic.contains(&uid) {
                world.violate(
                    Invariant::D9,
                    format!(
                        "event {} is entered as published, and no topic has it",
                        row.id
                    ),
                );
            }
        }
        Stage::Delivered => {
            if let Some(owner) = unserved(world, &row.event) {
                let text = format!(
                    "event {} is entered as delivered, and has not reached account {owner}",
                    row.id
                );
                world.violate(Invariant::D9, text);
            }
        }
    }
}

/// What the claim knows of time: the steps of its look and of the last reading of the position.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Known {
    pub(crate) looked: u64,
    pub(crate) checked: u64,
}

/// What a live relay holds: since when it is connected, and whether the row is in flight in it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Live {
    pub(crate) since: u64,
    pub(crate) is_in_flight: bool,
}

/// D-10: the sweep sends a row again.
pub(crate) fn at_resend(
    world: &mut World,
    stage: Stage,
    row: &Row,
    known: Known,
    live: Option<Live>,
) {
    let uid = row.uid;
    world.truth.sent_again += 1;
    if world.truth.in_claim.contains(&uid) && !world.truth.unsure.contains(&uid) {
        world.violate(
            Invariant::D10,
            format!(
                "event {} is being sent again by two sweepers at once",
                row.id
            ),
        );
    }
    if world.truth.unsure.contains(&uid) {
        return;
    }
    let reason = match stage {
        Stage::Published => in_flight_to_kafka(world, row, known, live),
        Stage::Delivered => in_flight_to_fan_out(world, row, known),
    };
    if let Some(reason) = reason {
        world.violate(
            Invariant::D10,
            format!("event {} is sent again: {reason}", row.id),
        );
    }
}

fn in_flight_to_kafka(
    world: &World,
    row: &Row,
    known: Known,
    live: Option<Live>,
) -> Option<&'static str> {
    // A relay that came back after the position was read is not "live" for this claim.
    let live = live.filter(|live| live.since < known.checked)?;
    let confirmed = world.pg.slot.and_then(|slot| slot.confirmed)?;
    let commit = world
        .pg
        .wal
        .iter()
        .find(|commit| commit.rows.iter().any(|each| each.uid == row.uid))?;
    if commit.end > confirmed {
        return Some("it lies ahead of the relay");
    }
    // What a relay still holds of rows that the slot was moved past, nobody can know.
    if live.is_in_flight && !world.truth.skipped.contains(&row.uid) {
        return Some("it is in flight in the relay");
    }
    let is_entered =
        world.truth.acked.contains(&row.uid) && !world.truth.unentered[0].contains(&row.uid);
    is_entered.then_some("it is published, and its entry did not fail")
}

fn in_flight_to_fan_out(world: &World, row: &Row, known: Known) -> Option<&'static str> {
    let key = row.cells().key.map(|key| key.to_vec()).unwrap_or_default();
    let partition = Log::partition_of(&key);
    let part = &world.log.posts[partition];
    // Positions are not known where somebody took records or offsets away since.
    if part.is_stale || part.disturbed >= known.looked {
        return None;
    }
    let passed = part.committed.unwrap_or(part.low).max(part.low);
    let waiting = crate::world::log::places(world, partition, passed, part.end());
    let is_waiting = waiting.iter().any(|(_, rec)| {
        let was_there = rec.at < known.looked || world.truth.claims.contains(&rec.claim);
        rec.uid == row.uid && was_there
    });
    if is_waiting {
        return Some("it is in flight to fan-out");
    }
    let is_entered =
        world.truth.noted.contains(&row.uid) && !world.truth.unentered[1].contains(&row.uid);
    is_entered.then_some("it is delivered, and its entry did not fail")
}

/// D-11: a day is dropped with these rows.
pub(crate) fn at_day(world: &mut World, rows: &[Rc<Row>]) {
    for row in rows {
        for stage in Stage::ALL {
            if let Some(reason) = unfinished(world, stage, row) {
                world.violate(
                    Invariant::D11,
                    format!("the day of event {} is dropped, and {reason}", row.id),
                );
                return;
            }
        }
    }
}

fn unfinished(world: &World, stage: Stage, row: &Row) -> Option<String> {
    let account = &world.pg.account;
    let event: EventId = row.id;
    let is_kept = account.kept_elsewhere(stage).contains(event);
    if is_kept {
        return None;
    }
    match stage {
        Stage::Published => (!world.truth.in_topic.contains(&row.uid))
            .then(|| "no topic has ever had it".to_owned()),
        Stage::Delivered => {
            unserved(world, &row.event).map(|owner| format!("it has not reached account {owner}"))
        }
    }
}
