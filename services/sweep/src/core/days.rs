//! Outbox days: which are old enough to go, and when one may.
//!
//! Owns the days, which are UTC days of Postgres's clock, and the drop rule (D-11) in words that can
//! be tested against every history; `database::outbox::drop_day` applies it to the rows themselves,
//! under the lock. Does not own partitions, locks or clocks.

use events::{EventId, EventType, IdRanges, Micros, Stage};

/// How many ids an answer names at most.
pub const SAMPLE: usize = 5;

const DAY_US: i64 = 24 * Micros::HOUR;

/// A UTC day, counted from 1970-01-01.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Day(pub i32);

impl Day {
    /// The day of a point in time, held at the ends of the range.
    pub fn of(time: Micros) -> Self {
        let days = time.0.div_euclid(DAY_US);
        Self(
            days.try_into()
                .unwrap_or(if days < 0 { i32::MIN } else { i32::MAX }),
        )
    }

    fn plus(self, days: i32) -> Self {
        Self(self.0.saturating_add(days))
    }
}

/// Whether a day is old enough to be dropped, if [`may_drop`] allows it.
pub fn is_old(day: Day, today: Day, retention_days: u16) -> bool {
    day < today.plus(-i32::from(retention_days))
}

/// A row of the day in question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// Its id.
    pub event: EventId,
    /// Its type; none if the registry does not know it.
    pub event_type: Option<EventType>,
}

/// What a stage has finished: delivered, discarded, or in an open dead letter whose full record is
/// in the dead-letter topic. What is delivered counts as published.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finished {
    /// The stage.
    pub stage: Stage,
    /// The ids.
    pub ids: IdRanges,
}

/// Why a day stays.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{count} rows are unfinished in {}, among them {sample:?}", stage.as_str())]
pub struct Unfinished {
    /// The first stage that has not finished.
    pub stage: Stage,
    /// How many of the day's rows.
    pub count: u64,
    /// The first of them.
    pub sample: Vec<EventId>,
}

/// The drop rule (D-11): a day may go when every row is finished in every critical stage that
/// accounts for it. Judged row by row; gaps do not matter, since they have no row.
///
/// # Errors
/// [`Unfinished`] names the first stage that holds the day.
pub fn may_drop(rows: &[Row], finished: &[Finished]) -> Result<(), Unfinished> {
    for stage in Stage::ALL.into_iter().filter(|stage| stage.critical()) {
        let done = finished
            .iter()
            .filter(|finished| finished.stage == stage)
            .fold(IdRanges::new(), |ids, more| ids.union(&more.ids));
        let held: Vec<EventId> = rows
            .iter()
            .filter(|row| is_accounted(stage, row.event_type) && !done.contains(row.event))
            .map(|row| row.event)
            .collect();
        if !held.is_empty() {
            return Err(Unfinished {
                stage,
                count: held.len() as u64,
                sample: held.into_iter().take(SAMPLE).collect(),
            });
        }
    }
    Ok(())
}

/// A type that the registry does not know is the relay's to publish or to dead-letter, and nobody
/// else's.
fn is_accounted(stage: Stage, event_type: Option<EventType>) -> bool {
    match event_type {
        Some(event_type) => stage.accounts_for(event_type),
        None => stage == Stage::Published,
    }
}
