//! D-1 to D-13, judged by what really happened in the world and never by what an actor believes.
//!
//! Each step that could break one calls in here; what can only be said at rest is in [`rest`].
//! D-14 is not built yet (large audiences are not cut into chunks), so nothing judges it.

mod account;
mod delivery;
mod rest;

use bytes::Bytes;

use crate::world::{World, postgres::Slot};

pub(crate) use account::{Known, Live, at_day, at_entry, at_letter, at_resend};
pub(crate) use delivery::{at_commit, at_deliver_letter, at_write};
pub(crate) use rest::{at_rest, unsettled};

/// An invariant of `docs/specs/delivery.md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Invariant {
    /// Post and outbox row in one transaction.
    D1,
    /// One key, one post.
    D2,
    /// Nothing unacknowledged is confirmed.
    D3,
    /// A quiet relay confirms everything.
    D4,
    /// First copies in commit order.
    D5,
    /// An offset moves only past finished records.
    D6,
    /// A repeated write changes nothing.
    D7,
    /// A deleted post never comes back.
    D8,
    /// The account balances.
    D9,
    /// Nothing in flight or delivered is sent again.
    D10,
    /// No day with an unfinished row goes.
    D11,
    /// Outages make no dead letters.
    D12,
    /// Memory is bounded.
    D13,
    /// The promise itself: lost, foreign, resurrected.
    Promise,
    /// A core said that it is wrong itself.
    Fault,
}

impl Invariant {
    /// As the specification has it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::D1 => "D-1",
            Self::D2 => "D-2",
            Self::D3 => "D-3",
            Self::D4 => "D-4",
            Self::D5 => "D-5",
            Self::D6 => "D-6",
            Self::D7 => "D-7",
            Self::D8 => "D-8",
            Self::D9 => "D-9",
            Self::D10 => "D-10",
            Self::D11 => "D-11",
            Self::D12 => "D-12",
            Self::D13 => "D-13",
            Self::Promise => "promise",
            Self::Fault => "fault",
        }
    }
}

/// An invariant that did not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Which.
    pub invariant: Invariant,
    /// What was seen.
    pub text: String,
    /// After so many steps.
    pub step: u64,
}

/// D-3: the slot moves to `confirmed` because a relay said so.
pub(crate) fn at_confirm(world: &mut World, confirmed: u64) {
    let before = world
        .pg
        .slot
        .and_then(|slot: Slot| slot.confirmed)
        .unwrap_or(0);
    if confirmed < before {
        world.violate(
            Invariant::D3,
            format!("the confirmed position fell from {before} to {confirmed}"),
        );
    }
    if confirmed > world.pg.lsn {
        let end = world.pg.lsn;
        world.violate(
            Invariant::D3,
            format!("confirmed {confirmed} lies beyond the log's end {end}"),
        );
    }
    let passed = world
        .pg
        .wal
        .iter()
        .rev()
        .take_while(|commit| commit.end > before);
    let unsafe_row = passed
        .filter(|commit| commit.end <= confirmed)
        .flat_map(|commit| &commit.rows)
        .find(|row| {
            let is_letter = world.truth.in_letters.contains(&row.uid)
                && world.pg.account.letters[0].contains_key(&row.id);
            !world.truth.in_topic.contains(&row.uid) && !is_letter
        })
        .map(|row| row.id);
    if let Some(event) = unsafe_row {
        world.violate(
            Invariant::D3,
            format!("confirmed {confirmed} passes event {event}, which neither the broker nor the dead letters have"),
        );
    }
}

/// The slot stands beyond rows that no relay has read from it: those are the sweep's. Should a relay
/// hold one of them from before and produce it late, its order means nothing (D-5).
pub(crate) fn at_skip(world: &mut World, confirmed: u64) {
    let passed = world.pg.wal.iter().filter(|commit| commit.end <= confirmed);
    for row in passed.flat_map(|commit| &commit.rows) {
        world.truth.skip(row.uid);
    }
}

/// D-5: a relay's record was taken by the posts or the follows topic.
pub(crate) fn at_relayed(world: &mut World, uid: u64, key: &Bytes) {
    let Some(later) = world.truth.relayed(uid, key) else {
        return;
    };
    let id = |uid: u64| world.truth.rows.get(&uid).map_or(0, |row| row.id.0);
    let text = format!(
        "the first copy of event {} came behind that of event {}, which was committed later",
        id(uid),
        id(later)
    );
    world.violate(Invariant::D5, text);
}

/// D-13: something that configuration bounds.
pub(crate) fn bounded(world: &mut World, what: &str, count: usize, limit: usize) {
    if count > limit {
        world.violate(Invariant::D13, format!("{count} {what}, {limit} at most"));
    }
}
