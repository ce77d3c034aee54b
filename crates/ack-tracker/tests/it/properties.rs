//! The tracker against a model that keeps everything and recomputes the answer each time.

use std::num::NonZeroUsize;

use ack_tracker::{PushError, Ticket, TicketError, Tracker};
use proptest::prelude::*;

#[derive(Debug, Clone)]
enum Op {
    Push { gap: u64 },
    Open { gap: u64 },
    AddParts { pick: usize, parts: u64 },
    Seal { pick: usize, rise: Option<u64> },
    Complete { pick: usize },
}

/// What the tracker answered, and what the model says about the same call.
type Answers = (Result<Option<u64>, TicketError>, Result<(), TicketError>);

/// Every entry ever taken in; never cut off.
#[derive(Default)]
struct Model {
    entries: Vec<ModelEntry>,
}

struct ModelEntry {
    ticket: Ticket,
    position: u64,
    since_us: u64,
    outstanding: u64,
    sealed: bool,
}

impl ModelEntry {
    fn is_done(&self) -> bool {
        self.sealed && self.outstanding == 0
    }
}

impl Model {
    fn done_prefix(&self) -> usize {
        self.entries.iter().take_while(|e| e.is_done()).count()
    }

    fn done(&self) -> Option<u64> {
        self.entries[..self.done_prefix()]
            .last()
            .map(|e| e.position)
    }

    /// What a push of `position` must answer, or `None` if it is taken in.
    fn refusal(&self, position: u64, capacity: usize) -> Option<PushError<u64>> {
        let last = self.entries.last();
        if let Some(last) = last.filter(|e| !e.sealed) {
            return Some(PushError::NotSealed {
                position,
                last: last.position,
            });
        }
        if let Some(last) = last.filter(|e| position <= e.position) {
            return Some(PushError::NotAscending {
                position,
                last: last.position,
            });
        }
        (self.entries.len() - self.done_prefix() >= capacity)
            .then_some(PushError::Full { position })
    }

    fn seal(&mut self, index: usize, position: u64) -> Result<(), TicketError> {
        let entry = &mut self.entries[index];
        if entry.is_done() {
            return Err(TicketError::AlreadyComplete);
        }
        if entry.sealed {
            return Err(TicketError::Sealed);
        }
        if position < entry.position {
            return Err(TicketError::PositionWentBack);
        }
        entry.sealed = true;
        entry.position = position;
        Ok(())
    }

    fn add_parts(&mut self, index: usize, parts: u64) -> Result<(), TicketError> {
        let entry = &mut self.entries[index];
        if entry.is_done() {
            return Err(TicketError::AlreadyComplete);
        }
        if entry.sealed {
            return Err(TicketError::Sealed);
        }
        entry.outstanding += parts;
        Ok(())
    }

    fn complete(&mut self, index: usize) -> Result<(), TicketError> {
        let entry = &mut self.entries[index];
        entry.outstanding = entry
            .outstanding
            .checked_sub(1)
            .ok_or(TicketError::AlreadyComplete)?;
        Ok(())
    }
}

fn op() -> impl Strategy<Value = Op> {
    // A gap of zero repeats the last position, which must be refused.
    prop_oneof![
        3 => (0..4_u64).prop_map(|gap| Op::Push { gap }),
        2 => (0..4_u64).prop_map(|gap| Op::Open { gap }),
        3 => (any::<usize>(), 0..4_u64).prop_map(|(pick, parts)| Op::AddParts { pick, parts }),
        4 => (any::<usize>(), prop::option::of(0..4_u64))
            .prop_map(|(pick, rise)| Op::Seal { pick, rise }),
        8 => any::<usize>().prop_map(|pick| Op::Complete { pick }),
    ]
}

/// Picks among the newest entries, so that both open and finished ones are hit.
fn index(pick: usize, len: usize) -> Option<usize> {
    let window = len.min(8);
    (window > 0).then(|| len - 1 - pick % window)
}

fn enter(
    tracker: &mut Tracker<u64>,
    model: &mut Model,
    position: u64,
    now_us: u64,
    whole: bool,
    capacity: usize,
) -> Result<(), TestCaseError> {
    let refusal = model.refusal(position, capacity);
    let answer = if whole {
        tracker.push(position, now_us)
    } else {
        tracker.open(position, now_us)
    };
    match answer {
        Ok(ticket) => {
            prop_assert_eq!(refusal, None);
            model.entries.push(ModelEntry {
                ticket,
                position,
                since_us: now_us,
                outstanding: u64::from(whole),
                sealed: whole,
            });
        }
        Err(error) => prop_assert_eq!(Some(error), refusal),
    }
    Ok(())
}

/// Applies one operation to an existing entry; `None` means that there was none.
fn apply(tracker: &mut Tracker<u64>, model: &mut Model, op: &Op) -> Option<Answers> {
    let pick = match op {
        Op::AddParts { pick, .. } | Op::Seal { pick, .. } | Op::Complete { pick } => *pick,
        Op::Push { .. } | Op::Open { .. } => return None,
    };
    let index = index(pick, model.entries.len())?;
    let (ticket, position) = (model.entries[index].ticket, model.entries[index].position);
    Some(match op {
        Op::AddParts { parts, .. } => (
            tracker.add_parts(ticket, *parts).map(|()| None),
            model.add_parts(index, *parts),
        ),
        Op::Seal { rise: None, .. } => (tracker.seal(ticket), model.seal(index, position)),
        Op::Seal {
            rise: Some(rise), ..
        } => {
            // One below is a position that went back.
            let position = (position + rise).saturating_sub(1);
            (
                tracker.seal_at(ticket, position),
                model.seal(index, position),
            )
        }
        _ => (tracker.complete(ticket), model.complete(index)),
    })
}

fn check(tracker: &Tracker<u64>, model: &Model, capacity: usize) -> Result<(), TestCaseError> {
    let open: Vec<_> = model.entries.iter().filter(|e| !e.is_done()).collect();
    prop_assert_eq!(tracker.done(), model.done());
    prop_assert_eq!(tracker.last(), model.entries.last().map(|e| e.position));
    prop_assert_eq!(tracker.open_count(), open.len());
    prop_assert_eq!(tracker.is_idle(), open.is_empty());
    prop_assert_eq!(tracker.held(), model.entries.len() - model.done_prefix());
    prop_assert!(tracker.held() <= capacity);
    prop_assert_eq!(tracker.is_full(), tracker.held() == capacity);
    prop_assert_eq!(
        tracker.outstanding_parts(),
        model.entries.iter().map(|e| e.outstanding).sum::<u64>()
    );
    prop_assert_eq!(
        tracker
            .oldest_open()
            .map(|o| (o.position, o.since_us, o.outstanding_parts)),
        open.first()
            .map(|e| (e.position, e.since_us, e.outstanding))
    );
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// D-3 and D-6: after any history the answers are those of the model, `done` never falls,
    /// and a call says that `done` moved exactly when it did.
    #[test]
    fn d_3_d_6_any_history_agrees_with_the_model(
        capacity in 1..12_usize,
        ops in prop::collection::vec(op(), 0..200),
    ) {
        let mut tracker = Tracker::new(NonZeroUsize::new(capacity).unwrap());
        let mut model = Model::default();
        for (now_us, op) in (0_u64..).zip(&ops) {
            let before = tracker.done();
            let next = tracker.last().unwrap_or(100);
            match op {
                Op::Push { gap } => {
                    enter(&mut tracker, &mut model, next + gap, now_us, true, capacity)?;
                }
                Op::Open { gap } => {
                    enter(&mut tracker, &mut model, next + gap, now_us, false, capacity)?;
                }
                _ => {
                    if let Some((answer, expected)) = apply(&mut tracker, &mut model, op) {
                        prop_assert_eq!(answer.map(|_| ()), expected);
                        let moved = (tracker.done() != before).then(|| tracker.done()).flatten();
                        prop_assert_eq!(answer.ok().flatten(), moved);
                    }
                }
            }
            prop_assert!(tracker.done() >= before);
            check(&tracker, &model, capacity)?;
        }
    }

    /// D-6: in whatever order single parts are completed, everything ends up done.
    #[test]
    fn d_6_every_order_of_completion_ends_done(
        order in Just((0..64_u64).collect::<Vec<_>>()).prop_shuffle(),
    ) {
        let mut tracker = Tracker::new(NonZeroUsize::new(64).unwrap());
        let tickets: Vec<_> = (0..64_u64).map(|o| tracker.push(o, 0).unwrap()).collect();
        for offset in order {
            tracker.complete(tickets[offset as usize]).unwrap();
        }
        prop_assert_eq!(tracker.done(), Some(63));
        prop_assert!(tracker.is_idle());
    }
}
