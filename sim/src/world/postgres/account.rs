//! The account: ledger, dead letters, discards, re-deliveries, as the tables and their statements
//! have it.

use std::collections::BTreeMap;

use events::{EventId, IdRange, IdRanges, Micros, Stage};
use sweep::core::{DiscardReason, Facts};

use super::Postgres;

/// The place of a stage in arrays.
pub(crate) const fn index(stage: Stage) -> usize {
    match stage {
        Stage::Published => 0,
        Stage::Delivered => 1,
    }
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub(crate) struct Account {
    /// What is entered, by stage.
    pub(crate) entered: [IdRanges; 2],
    /// When an entry was last made.
    pub(crate) recorded_us: Micros,
    /// Open dead letters, and whether their topic holds the whole record.
    pub(crate) letters: [BTreeMap<EventId, bool>; 2],
    pub(crate) discarded: [BTreeMap<EventId, DiscardReason>; 2],
    /// How often the sweep sent an event again, and when last.
    pub(crate) redelivered: [BTreeMap<EventId, (u32, Micros)>; 2],
}

/// A row that is still missing, and what decides about it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Claimable {
    pub(crate) event: EventId,
    pub(crate) facts: Facts,
}

impl Account {
    /// Ids that have passed the stage: delivered implies published.
    pub(crate) fn passed(&self, stage: Stage) -> IdRanges {
        match stage {
            Stage::Published => self.entered[0].union(&self.entered[1]),
            Stage::Delivered => self.entered[1].clone(),
        }
    }

    /// Ids that are finished without an entry: what is never published is never delivered.
    pub(crate) fn finished(&self, stage: Stage) -> IdRanges {
        let letters = self
            .stages_before(stage)
            .flat_map(|at| self.letters[at].keys());
        let discards = self
            .stages_before(stage)
            .flat_map(|at| self.discarded[at].keys());
        IdRanges::from_ids(letters.chain(discards).copied())
    }

    /// The same for a day that is to go: a letter counts only if it holds the record.
    pub(crate) fn kept_elsewhere(&self, stage: Stage) -> IdRanges {
        let letters = self
            .stages_before(stage)
            .flat_map(|at| self.letters[at].iter())
            .filter(|(_, is_whole)| **is_whole)
            .map(|(event, _)| event);
        let discards = self
            .stages_before(stage)
            .flat_map(|at| self.discarded[at].keys());
        IdRanges::from_ids(letters.chain(discards).copied())
    }

    /// Whether a letter of this event is open, of this stage or one before it.
    pub(crate) fn has_letter(&self, stage: Stage, event: EventId) -> bool {
        self.stages_before(stage)
            .any(|at| self.letters[at].contains_key(&event))
    }

    /// Whether it was given up, in this stage or one before it.
    pub(crate) fn is_discarded(&self, stage: Stage, event: EventId) -> bool {
        self.stages_before(stage)
            .any(|at| self.discarded[at].contains_key(&event))
    }

    fn stages_before(&self, stage: Stage) -> std::ops::RangeInclusive<usize> {
        0..=index(stage)
    }
}

impl Postgres {
    /// Enters ids; refused when the epoch is not the newest one.
    ///
    /// # Errors
    /// The number of the newest epoch.
    pub(crate) fn enter(
        &mut self,
        stage: Stage,
        ids: impl IntoIterator<Item = EventId>,
        epoch: i64,
        now: Micros,
    ) -> Result<(), i64> {
        let newest = self.epoch().number;
        if epoch != newest {
            return Err(newest);
        }
        for id in ids {
            self.account.entered[index(stage)].insert_id(id);
        }
        self.account.recorded_us = now;
        Ok(())
    }

    /// The span of the outbox.
    pub(crate) fn span(&self) -> Option<IdRange> {
        let low = self.outbox.keys().next()?.0;
        let high = self.outbox.keys().next_back()?.0 + 1;
        Some(IdRange { low, high })
    }

    /// Those of the ids that exist and that the stage still lacks, as a claim reads them.
    pub(crate) fn claimable(&self, stage: Stage, ids: &[EventId]) -> Vec<Claimable> {
        let passed = self.account.passed(stage);
        let mut found = Vec::new();
        for &event in ids {
            let Some(row) = self.outbox.get(&event).filter(|_| !passed.contains(event)) else {
                continue;
            };
            let before = self.account.redelivered[index(stage)].get(&event);
            found.push(Claimable {
                event,
                facts: Facts {
                    created_us: row.created_us,
                    post_exists: self.post_exists(&row.event),
                    attempts: before.map_or(0, |(attempts, _)| *attempts),
                    last_us: before.map(|(_, last)| *last),
                    dead_letter_open: self.account.has_letter(stage, event),
                    discarded: self.account.is_discarded(stage, event),
                },
            });
        }
        found
    }

    fn post_exists(&self, event: &events::Event) -> Option<bool> {
        match event {
            events::Event::PostCreated(post) => Some(self.posts.contains_key(&post.post_id.0)),
            events::Event::PostDeleted(post) => Some(self.posts.contains_key(&post.post_id.0)),
            events::Event::FollowCreated(_) | events::Event::FollowDeleted(_) => None,
        }
    }
}
