//! Whether a group has passed what was in its topic after a look.
//!
//! Owns the rule for one hop of `delivered`: the end offsets are read once, after the look, and
//! are the targets; the hop has passed when the group's committed offset has reached the target
//! of every partition. An empty partition counts as passed. A committed offset beyond the end
//! belongs to a topic that was made anew, and counts only once the group commits again. When the
//! new topic ends just there and stays so, the number cannot tell the old offset from the new one:
//! then it counts after a while, for otherwise a quiet topic would be waited for for ever. Records
//! may be repeated by that, which changes no row (D-10: the positions were not known).

use std::collections::BTreeMap;

use crate::core::{Mark, Moment, Timing};

/// What is remembered of one hop.
#[derive(Clone, Debug, Default)]
pub(super) struct HopWatch {
    /// When this look began to wait here.
    begun: Moment,
    targets: Option<BTreeMap<i32, Target>>,
    /// Those of the look that this one replaces.
    before: BTreeMap<i32, Target>,
    /// Committed offsets that belong to a topic that is gone, by partition. They outlive looks:
    /// the new topic's end may grow past them before the group commits again.
    stale: BTreeMap<i32, Stale>,
}

/// A committed offset of a topic that is gone.
#[derive(Clone, Copy, Debug)]
struct Stale {
    offset: i64,
    /// The end of the new topic, and since when it is there.
    end: i64,
    since: Moment,
}

#[derive(Clone, Copy, Debug)]
struct Target {
    end: i64,
    committed: Option<i64>,
    moved: Moment,
}

/// What the offsets say about a look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Passage {
    /// Every target is reached.
    Passed,
    /// The group is on its way.
    NotYet,
    /// A partition does not move.
    Blocked,
    /// A committed offset lies beyond the end.
    OffsetLost,
}

impl HopWatch {
    /// A new look waits: the next positions are its targets. One that replaces a look that was
    /// `stuck` takes over since when nothing moved.
    pub(super) fn begin(&mut self, stuck: bool, now: Moment) {
        let before = self.targets.take().unwrap_or_default();
        if !stuck {
            self.begun = now;
        }
        self.before = if stuck { before } else { BTreeMap::new() };
    }

    /// Judges the positions of all partitions.
    pub(super) fn see(&mut self, marks: &[Mark], now: Moment, timing: &Timing) -> Passage {
        self.note_stale(marks, now, timing);
        if marks.is_empty() {
            // No partition at all is a topic that is away, not one that has been read.
            return waiting(self.begun, now, timing);
        }
        let targets = self.targets.get_or_insert_with(|| {
            let target = |mark: &Mark| Target {
                end: mark.end,
                committed: mark.committed,
                moved: match self.before.get(&mark.partition) {
                    Some(before) if before.committed == mark.committed => before.moved,
                    _ => now,
                },
            };
            marks
                .iter()
                .map(|mark| (mark.partition, target(mark)))
                .collect()
        });
        let mut passage = Passage::Passed;
        // A partition that is no longer there takes its records with it: nothing to wait for.
        for mark in marks {
            let Some(target) = targets.get_mut(&mark.partition) else {
                continue;
            };
            // An end that fell belongs to a topic made anew after the look.
            target.end = target.end.min(mark.end);
            if mark.committed != target.committed {
                target.committed = mark.committed;
                target.moved = now;
            }
            let partition = if mark.low >= mark.end {
                Passage::Passed
            } else if self.stale.contains_key(&mark.partition) {
                Passage::OffsetLost
            } else if mark.committed.is_some_and(|offset| offset >= target.end) {
                Passage::Passed
            } else {
                waiting(target.moved, now, timing)
            };
            passage = passage.max(partition);
        }
        passage
    }

    /// Enters offsets beyond the end, and strikes those in whose place the group has committed.
    fn note_stale(&mut self, marks: &[Mark], now: Moment, timing: &Timing) {
        for mark in marks {
            let before = self.stale.remove(&mark.partition);
            let Some(offset) = mark.committed else {
                continue;
            };
            let known = before.filter(|stale| stale.offset == offset);
            if offset <= mark.end && known.is_none() {
                continue;
            }
            let since = match known {
                Some(stale) if stale.end == mark.end => stale.since,
                _ => now,
            };
            if offset == mark.end && now.since(since) >= timing.blocked_after {
                continue;
            }
            let stale = Stale {
                offset,
                end: mark.end,
                since,
            };
            self.stale.insert(mark.partition, stale);
        }
    }
}

fn waiting(since: Moment, now: Moment, timing: &Timing) -> Passage {
    if now.since(since) >= timing.blocked_after {
        Passage::Blocked
    } else {
        Passage::NotYet
    }
}
