//! A look: rows first, a step later the mark; and the notes of gaps.

use std::rc::Rc;

use events::{EventType, IdRange, IdRanges, Stage};
use sweep::core::{
    Look, Moment, Reader, Seen,
    voids::{self, Revision, Snapshot, Void},
};

use super::{Half, LOOK_IDS, StageSweep};
use crate::{
    bugs::Bug,
    invariants,
    world::{World, postgres, row::Row},
};

/// Which transactions can still commit.
pub(super) fn snapshot(world: &World) -> Snapshot {
    Snapshot {
        xmin: world.pg.xmin(),
        now_us: world.clock(),
    }
}

/// Writes a revision of the notes.
pub(super) fn note(world: &mut World, revision: &Revision) {
    world
        .pg
        .voids
        .retain(|void| !revision.forget.contains(&void.entry));
    let (xmax_seen, seen_us) = (world.pg.next_xid, world.clock());
    for ids in &revision.note {
        let entry = world.pg.next_void;
        world.pg.next_void += 1;
        world.pg.voids.push(Void {
            entry,
            ids: ids.clone(),
            xmax_seen,
            seen_us,
        });
    }
}

impl StageSweep {
    pub(super) fn look(&mut self, name: &'static str, world: &mut World) -> Option<Seen> {
        if let Half::Looked(mut look) = std::mem::replace(&mut self.half, Half::Nothing) {
            if self.stage == Stage::Published && !look.ids.is_empty() {
                // The mark is log of its own, and goes by where it ends.
                world.pg.lsn += 8;
                look.lsn = world.pg.lsn;
            }
            world.tell(name, || {
                let ids: Vec<i64> = look.ids.iter().map(|id| id.0).collect();
                format!(
                    "{}: {ids:?} missing, mark {}",
                    self.stage.as_str(),
                    look.lsn
                )
            });
            return Some(Seen::Looked(look));
        }
        if self.version != self.heard {
            self.version = self.heard;
            self.reader = Reader::default();
        }
        if postgres::here(world) {
            world.pg.requests += 1;
        }
        self.looked = world.step;
        let look = self.rows(world);
        invariants::bounded(world, "ids in a look", look.ids.len(), LOOK_IDS);
        self.half = Half::Looked(look);
        None
    }

    fn rows(&mut self, world: &mut World) -> Look {
        let taken_us = world.clock();
        let candidates = self.candidates(world);
        let snapshot = snapshot(world);
        let mut noted = if self.stage == Stage::Published {
            world.pg.voids.clone()
        } else {
            Vec::new()
        };
        let trusts = world.has_bug(Bug::TrustVoids);
        let now = Moment(world.now);
        let mut ranges = self.reader.ranges(&candidates, &noted, &snapshot, now);
        if trusts {
            ranges = noted
                .iter()
                .fold(ranges, |ranges, void| ranges.subtract(&void.ids));
        }
        let (found, truncated) = self.existing(&ranges, world);
        let everything = IdRanges::from_ids(found.iter().map(|row| row.id));
        let (accounted, others): (Vec<_>, Vec<_>) = found.into_iter().partition(|row| {
            let event_type = EventType::from_name(row.type_name());
            self.stage == Stage::Published
                || event_type.is_some_and(|known| self.stage.accounts_for(known))
        });
        let life = world.pg.life();
        // What the stage does not consume is entered, so that ids stay dense.
        let others: Vec<_> = others.iter().map(|row| row.id).collect();
        let _refused_if_another_epoch_began =
            world.pg.enter(self.stage, others, life.epoch, taken_us);
        let look = Look {
            life,
            ids: accounted.iter().map(|row| row.id).collect(),
            taken_us,
            lsn: 0,
            truncated,
        };
        if self.stage == Stage::Published {
            let read = Reader::read(&ranges, &look);
            if trusts {
                noted.clear();
            }
            note(
                world,
                &voids::revise(&noted, &candidates, &read, &everything),
            );
        }
        self.reader.looked(&look);
        look
    }

    /// Rows that exist, as many as a look holds, and whether there may be more.
    fn existing(&mut self, ranges: &IdRanges, world: &World) -> (Vec<Rc<Row>>, bool) {
        let mut found: Vec<_> = world
            .pg
            .outbox
            .values()
            .filter(|row| ranges.contains(row.id))
            .cloned()
            .collect();
        if world.has_bug(Bug::IdAboveLast) {
            let highest = self.highest;
            found.retain(|row| row.id.0 > highest);
        }
        let truncated = found.len() >= LOOK_IDS;
        found.truncate(LOOK_IDS);
        self.highest = found
            .iter()
            .map(|row| row.id.0)
            .max()
            .unwrap_or(0)
            .max(self.highest);
        (found, truncated)
    }

    /// The span's ids that the stage does not have and that nothing else finishes.
    fn candidates(&self, world: &World) -> IdRanges {
        let Some(span) = world.pg.span() else {
            return IdRanges::new();
        };
        let account = &world.pg.account;
        let all = match self.stage {
            Stage::Published => IdRanges::from(span),
            Stage::Delivered => account.passed(Stage::Published).within(IdRange { ..span }),
        };
        all.subtract(&account.passed(self.stage))
            .subtract(&account.finished(self.stage))
    }
}
