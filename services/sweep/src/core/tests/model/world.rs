//! The model's relay, broker, fan-out and ledger: everything that the sweep only sees. Who writes
//! is in `writers`.

use std::collections::{BTreeMap, BTreeSet};

use events::{EventId, EventType, IdRanges, Stage};

use super::{writers::Txn, *};
use crate::core::{
    days::{Day, Finished, Row as DayRow, is_old, may_drop},
    voids::Void,
};

pub(super) const PARTITIONS: usize = 2;

#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    pub(super) lsn: u64,
    pub(super) created_us: Micros,
    pub(super) day: Day,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    pub(super) confirmed: u64,
    pub(super) is_lost: bool,
}

/// A connected relay.
#[derive(Clone, Debug)]
pub(super) struct Relay {
    /// When it connected.
    pub(super) since: u64,
    /// Where it has read the log to.
    read: u64,
    /// Read, not acknowledged: (end of the commit, id, written).
    pub(super) queue: Vec<(u64, i64, bool)>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Record {
    pub(super) id: i64,
    /// The step at which it was written.
    pub(super) at: u64,
    /// By a claim that has committed.
    pub(super) of_claim: bool,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Partition {
    pub(super) low: usize,
    pub(super) records: Vec<Record>,
    pub(super) committed: Option<usize>,
    /// Made anew, and the group has not committed since.
    pub(super) is_stale: bool,
}

#[derive(Debug)]
pub(super) struct World {
    /// Microseconds, for Postgres's clock and for waiting.
    pub(super) now: u64,
    pub(super) epoch: i64,
    /// Counts everything that happens.
    pub(super) step: u64,
    pub(super) next_id: i64,
    pub(super) next_xid: u64,
    pub(super) lsn: u64,
    pub(super) day: Day,
    pub(super) open: Vec<Txn>,
    pub(super) cached: Vec<i64>,
    /// Commits in order: (end, ids).
    pub(super) log: Vec<(u64, Vec<i64>)>,
    pub(super) rows: BTreeMap<i64, Row>,
    /// Rows ever committed.
    pub(super) committed: BTreeSet<i64>,
    pub(super) ghosts: BTreeSet<i64>,
    pub(super) ledger: [IdRanges; 2],
    pub(super) discarded: [IdRanges; 2],
    pub(super) redelivery: BTreeMap<(usize, i64), (u32, Micros)>,
    pub(super) voids: Vec<Void>,
    pub(super) next_void: i64,
    pub(super) locks: BTreeSet<i64>,
    pub(super) slot: Option<Slot>,
    pub(super) relay: Option<Relay>,
    /// Ledger inserts on their way: (latest, stage, id).
    inserts: Vec<(u64, usize, i64)>,
    /// Ledger inserts that failed.
    pub(super) lost: [BTreeSet<i64>; 2],
    /// Produced by a claim that was cut before its commit: these may repeat.
    pub(super) unsure: BTreeSet<i64>,
    pub(super) broker_up: bool,
    pub(super) partitions: [Partition; PARTITIONS],
    /// What fan-out has written, and what the relay was told is in the broker.
    pub(super) delivered: BTreeSet<i64>,
    pub(super) acked: BTreeSet<i64>,
}

impl World {
    pub(super) fn new() -> Self {
        Self {
            now: 1_000_000,
            epoch: 1,
            step: 0,
            next_id: 1,
            next_xid: 10,
            lsn: 100,
            day: Day(20_000),
            open: Vec::new(),
            cached: Vec::new(),
            log: Vec::new(),
            rows: BTreeMap::new(),
            committed: BTreeSet::new(),
            ghosts: BTreeSet::new(),
            ledger: Default::default(),
            discarded: Default::default(),
            redelivery: BTreeMap::new(),
            voids: Vec::new(),
            next_void: 1,
            locks: BTreeSet::new(),
            slot: None,
            relay: None,
            inserts: Vec::new(),
            lost: Default::default(),
            unsure: BTreeSet::new(),
            broker_up: true,
            partitions: Default::default(),
            delivered: BTreeSet::new(),
            acked: BTreeSet::new(),
        }
    }

    pub(super) fn moment(&self) -> Moment {
        Moment(self.now)
    }

    pub(super) fn clock(&self) -> Micros {
        Micros(self.now as i64)
    }

    // ── Relay ───────────────────────────────────────────────────────────────────────────────

    pub(super) fn start_relay(&mut self) {
        if self.relay.is_some() {
            return;
        }
        // A lost slot is made anew, as an absent one is: it begins at the present end of the log.
        let confirmed = match self.slot {
            Some(slot) if !slot.is_lost => slot.confirmed,
            _ => self.lsn,
        };
        self.slot = Some(Slot {
            confirmed,
            is_lost: false,
        });
        self.relay = Some(Relay {
            since: self.step,
            read: confirmed,
            queue: Vec::new(),
        });
    }

    /// The relay dies; so do its ledger inserts.
    pub(super) fn stop_relay(&mut self) {
        self.relay = None;
        let lost = &mut self.lost[0];
        self.inserts.retain(|(_, stage, id)| {
            if *stage == 0 {
                lost.insert(*id);
            }
            *stage != 0
        });
    }

    pub(super) fn drop_slot(&mut self) {
        self.stop_relay();
        self.slot = None;
    }

    pub(super) fn lose_slot(&mut self) {
        self.stop_relay();
        if let Some(slot) = &mut self.slot {
            slot.is_lost = true;
        }
    }

    /// Postgres ends at once and starts again. The slot stays where it was; who had a connection
    /// has none, and what was about to be entered is not.
    pub(super) fn restart(&mut self) {
        self.stop_relay();
        self.end_sessions();
        self.locks.clear();
        self.lose_inserts();
    }

    /// A standby takes over: connections and the slot are gone, ids go on far above, and
    /// everything that exists is in doubt in every stage.
    pub(super) fn promote(&mut self) {
        self.restart();
        self.drop_slot();
        self.epoch += 1;
        self.next_id += 1_000;
        let doubted = IdRanges::from_ids(self.rows.keys().map(|id| EventId(*id)));
        for stage in 0..2 {
            self.ledger[stage] = self.ledger[stage].subtract(&doubted);
            self.lost[stage].extend(self.rows.keys());
        }
    }

    pub(super) fn relay_reads(&mut self) {
        if let Some(relay) = &mut self.relay
            && let Some((end, ids)) = self.log.iter().find(|(end, _)| *end > relay.read)
        {
            relay.read = *end;
            relay.queue.extend(ids.iter().map(|id| (*end, *id, false)));
        }
    }

    /// The broker writes the next record, and may or may not tell.
    pub(super) fn relay_writes(&mut self) {
        if let Some(relay) = &mut self.relay
            && self.broker_up
            && let Some(entry) = relay.queue.iter_mut().find(|entry| !entry.2)
        {
            entry.2 = true;
            let id = entry.1;
            self.append(id, false);
        }
    }

    /// The relay hears of its oldest record, and confirms what is complete.
    pub(super) fn relay_hears(&mut self, loses_insert: bool) {
        let Some(relay) = &mut self.relay else {
            return;
        };
        if relay.queue.first().is_some_and(|entry| entry.2) {
            let (_, id, _) = relay.queue.remove(0);
            self.acked.insert(id);
            let confirmed = match relay.queue.first() {
                Some((end, ..)) => end - 1,
                None => relay.read,
            };
            self.enter(0, id, loses_insert);
            self.confirm(confirmed);
        } else if relay.queue.is_empty() && self.log.iter().all(|(end, _)| *end <= relay.read) {
            // A keepalive of an idle server.
            relay.read = self.lsn;
            self.confirm(self.lsn);
        }
    }

    fn confirm(&mut self, lsn: u64) {
        if let Some(slot) = &mut self.slot {
            slot.confirmed = slot.confirmed.max(lsn);
        }
    }

    // ── Broker and fan-out ──────────────────────────────────────────────────────────────────

    pub(super) fn append(&mut self, id: i64, of_claim: bool) {
        let at = self.step;
        self.partitions[partition_of(id)]
            .records
            .push(Record { id, at, of_claim });
    }

    /// Fan-out delivers the next record of a partition and commits.
    pub(super) fn fan_out(&mut self, partition: usize, loses_insert: bool) {
        let part = &mut self.partitions[partition % PARTITIONS];
        let at = match part.committed {
            // Out of range: back to the earliest.
            Some(offset) if !part.is_stale => offset,
            _ => part.low,
        };
        let Some(record) = part.records.get(at).copied() else {
            return;
        };
        part.committed = Some(at + 1);
        part.is_stale = false;
        if self.rows.contains_key(&record.id) && !self.ghosts.contains(&record.id) {
            self.delivered.insert(record.id);
            self.enter(1, record.id, loses_insert);
        }
    }

    /// An operator sets the group's offset to the end: what is between is lost.
    pub(super) fn skip(&mut self, partition: usize) {
        let part = &mut self.partitions[partition % PARTITIONS];
        part.committed = Some(part.records.len());
        part.is_stale = false;
    }

    /// The topic is made anew, with the group's offsets left from the old one or without them.
    pub(super) fn recreate(&mut self, partition: usize, keeps_offset: bool) {
        let part = &mut self.partitions[partition % PARTITIONS];
        *part = Partition {
            committed: part.committed.filter(|_| keeps_offset),
            is_stale: true,
            ..Partition::default()
        };
    }

    /// Retention removes what lies below.
    pub(super) fn expire(&mut self, partition: usize) {
        let part = &mut self.partitions[partition % PARTITIONS];
        if !part.is_stale {
            part.low = part.committed.unwrap_or(part.low).max(part.low);
        }
    }

    // ── Ledger, time, days ──────────────────────────────────────────────────────────────────

    /// An insert on its way; it arrives before the grace is over, or never.
    fn enter(&mut self, stage: usize, id: i64, is_lost: bool) {
        if is_lost {
            self.lost[stage].insert(id);
        } else {
            let latest = self.now + timing().grace - 1;
            self.inserts.push((latest, stage, id));
        }
    }

    /// No insert that is on its way arrives.
    fn lose_inserts(&mut self) {
        for (_, stage, id) in self.inserts.drain(..) {
            self.lost[stage].insert(id);
        }
    }

    pub(super) fn flush(&mut self) {
        self.advance_to(self.now, true);
    }

    pub(super) fn advance_to(&mut self, now: u64, all: bool) {
        self.now = self.now.max(now);
        let now = self.now;
        let ledger = &mut self.ledger;
        self.inserts.retain(|(latest, stage, id)| {
            let is_due = all || *latest <= now;
            if is_due {
                ledger[*stage].insert_id(EventId(*id));
            }
            !is_due
        });
    }

    /// What a stage has; what is delivered counts as published.
    pub(super) fn has(&self, stage: usize) -> IdRanges {
        match stage {
            0 => self.ledger[0].union(&self.ledger[1]),
            _ => self.ledger[1].clone(),
        }
    }

    /// Drops what the rule allows (D-11): no transaction of the day is open, it is old, and every
    /// row is finished. Checks row by row that the rule was right.
    pub(super) fn drop_days(&mut self) {
        let finished = [Stage::Published, Stage::Delivered].map(|stage| Finished {
            stage,
            ids: self
                .has(stage as usize)
                .union(&self.discarded[stage as usize]),
        });
        let days: BTreeSet<Day> = self.rows.values().map(|row| row.day).collect();
        for day in days.into_iter().filter(|day| is_old(*day, self.day, 0)) {
            let ids: Vec<i64> = self
                .rows
                .iter()
                .filter(|(_, row)| row.day == day)
                .map(|(id, _)| *id)
                .collect();
            let rows: Vec<DayRow> = ids
                .iter()
                .map(|id| DayRow {
                    event: EventId(*id),
                    event_type: Some(EventType::PostCreatedV1),
                })
                .collect();
            let is_locked = self.open.iter().any(|txn| txn.day == day);
            if is_locked || may_drop(&rows, &finished).is_err() {
                continue;
            }
            for id in ids {
                assert!(
                    self.delivered.contains(&id) || self.ghosts.contains(&id),
                    "D-11: {id} was dropped unfinished"
                );
                self.rows.remove(&id);
            }
        }
    }
}

pub(super) fn partition_of(id: i64) -> usize {
    id.rem_euclid(PARTITIONS as i64) as usize
}
