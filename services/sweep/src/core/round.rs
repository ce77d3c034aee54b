//! The round of one stage: look, wait for a position to pass the look, let the ledger catch up,
//! claim what is missing still.
//!
//! Owns that order, and when each step is due. Does not own the rule of a position
//! (`slot_watch`, `hop_watch`) nor what becomes of an id ([`crate::core::fate()`]).
//!
//! ```text
//!   resting ─ look ─▶ asking ─ passed ─▶ (grace) ─▶ checking ─▶ claiming ─▶ resting
//!                        ▲                              │            │
//!                        └──────── not any more ────────┘◀─ failed ──┘
//! ```
//!
//! Promise: nothing is claimed but a look of the present life that a position has passed, or that
//! no relay will pass (D-10). A failure never skips a step. Nothing is selected by the order of
//! ids or by `created_at`.

use std::sync::Arc;

use crate::core::{
    Claimed, Life, Look, Mark, Mode, Moment, Next, Seen, SlotView, Standing, Timing, Want,
    hop_watch::{self, HopWatch},
    slot_watch::{self, SlotWatch},
};

/// The machine of one stage, driven by one call at a time: [`Round::next`] says what to do,
/// [`Round::see`] takes what came of it.
#[derive(Clone, Debug)]
pub struct Round {
    timing: Timing,
    rule: Rule,
    state: State,
    /// Nothing is to be done before.
    not_before: Moment,
    /// A look is being taken.
    looking: bool,
    /// Somebody asked for a look after the one that is waiting.
    again: bool,
    /// When the look that is waiting began to wait.
    asking_since: Moment,
    /// The look before was given up because its position did not move.
    stuck: bool,
    /// A part of the present pass was thrown away.
    partial: bool,
    done: bool,
    standing: Standing,
}

/// What must have passed a look.
#[derive(Clone, Debug)]
enum Rule {
    Slot(SlotWatch),
    Hops(Vec<HopWatch>),
    Nothing,
}

#[derive(Clone, Debug)]
enum State {
    Resting,
    Asking(Arc<Look>, Question),
    Checking(Arc<Look>),
    Claiming(Arc<Look>),
}

#[derive(Clone, Copy, Debug)]
enum Question {
    Slot,
    Probe,
    Hop(usize),
}

impl Round {
    /// The round of `published`.
    pub fn published(timing: Timing, mode: Mode) -> Self {
        Self::new(
            timing,
            match mode {
                Mode::Sweep => Rule::Slot(SlotWatch::default()),
                Mode::Dispatch => Rule::Nothing,
            },
        )
    }

    /// The round of `delivered`, to which this many hops lead.
    pub fn delivered(timing: Timing, hops: usize) -> Self {
        Self::new(timing, Rule::Hops(vec![HopWatch::default(); hops]))
    }

    fn new(timing: Timing, rule: Rule) -> Self {
        Self {
            timing,
            rule,
            state: State::Resting,
            not_before: Moment::default(),
            looking: false,
            again: false,
            asking_since: Moment::default(),
            stuck: false,
            partial: false,
            done: false,
            standing: Standing::Idle,
        }
    }

    /// What to do now. The same answer until it is reported.
    pub fn next(&mut self, now: Moment) -> Next {
        if now < self.not_before {
            return Next::WaitUntil(self.not_before);
        }
        Next::Do(match &self.state {
            State::Resting => {
                self.looking = true;
                Want::Look
            }
            State::Asking(_, Question::Slot) | State::Checking(_) => Want::Slot,
            State::Asking(_, Question::Probe) => Want::Probe,
            State::Asking(_, Question::Hop(index)) => Want::Hop(*index),
            State::Claiming(look) => Want::Claim(Arc::clone(look)),
        })
    }

    /// Takes what came of the last [`Want`]. A report that fits no question is ignored.
    pub fn see(&mut self, seen: Seen, now: Moment) {
        let state = std::mem::replace(&mut self.state, State::Resting);
        self.state = match (state, seen) {
            (State::Resting, Seen::Looked(look)) => self.looked(look, now),
            (State::Asking(look, Question::Slot), Seen::Slot { life, slot }) => {
                self.asked_slot(look, &life, &slot, now)
            }
            (State::Asking(look, Question::Probe), Seen::Probed(acknowledged)) => {
                self.probed(look, acknowledged, now)
            }
            (State::Asking(look, Question::Hop(index)), Seen::Hop(marks)) => {
                self.asked_hop(look, index, &marks, now)
            }
            (State::Checking(look), Seen::Slot { life, slot }) => {
                self.checked(look, &life, &slot, now)
            }
            (State::Claiming(look), Seen::Claimed(claimed)) => self.claimed(look, claimed, now),
            (state, Seen::Failed) => self.failed(state, now),
            (state, _) => state,
        };
    }

    /// A look is wanted now: of the time after this call.
    pub fn request(&mut self, now: Moment) {
        if matches!(self.state, State::Resting) && !self.looking {
            self.not_before = now;
        } else {
            self.again = true;
        }
    }

    /// How it stands.
    pub const fn standing(&self) -> Standing {
        self.standing
    }

    /// Whether everything that was missing when some look was taken has been dealt with.
    pub const fn done_once(&self) -> bool {
        self.done
    }

    fn looked(&mut self, look: Look, now: Moment) -> State {
        self.looking = false;
        if look.ids.is_empty() {
            let pause = if look.truncated {
                self.timing.poll
            } else {
                self.timing.interval
            };
            return self.rest(&look, pause, now);
        }
        if !self.stuck {
            self.standing = Standing::Waiting;
        }
        self.not_before = now;
        self.asking_since = now;
        self.ask(Arc::new(look), now)
    }

    /// Begins to wait for the position.
    fn ask(&mut self, look: Arc<Look>, now: Moment) -> State {
        let stuck = std::mem::take(&mut self.stuck);
        match &mut self.rule {
            Rule::Slot(watch) => {
                watch.begin(stuck, now);
                State::Asking(look, Question::Slot)
            }
            Rule::Hops(hops) => match hops.first_mut() {
                Some(first) => {
                    first.begin(stuck, now);
                    State::Asking(look, Question::Hop(0))
                }
                None => self.settle(look, now),
            },
            Rule::Nothing => State::Claiming(look),
        }
    }

    fn asked_slot(&mut self, look: Arc<Look>, life: &Life, slot: &SlotView, now: Moment) -> State {
        if *life != look.life {
            return self.another_life(&look, now);
        }
        match self.passage(&look, slot, now) {
            slot_watch::Passage::Passed => {
                self.standing = Standing::Waiting;
                self.settle(look, now)
            }
            slot_watch::Passage::NoRelay => {
                self.standing = Standing::NoRelay;
                self.settle(look, now)
            }
            slot_watch::Passage::Inactive => {
                self.standing = Standing::Waiting;
                State::Asking(look, Question::Probe)
            }
            slot_watch::Passage::NotYet => self.poll(look, Question::Slot, Standing::Waiting, now),
            slot_watch::Passage::Blocked => self.poll(look, Question::Slot, Standing::Blocked, now),
        }
    }

    fn probed(&mut self, look: Arc<Look>, acknowledged: bool, now: Moment) -> State {
        let Rule::Slot(watch) = &mut self.rule else {
            return State::Asking(look, Question::Slot);
        };
        if !acknowledged {
            watch.out_of_reach(now);
        } else if watch.is_given_up(now, &self.timing) {
            self.standing = Standing::NoRelay;
            return self.settle(look, now);
        }
        self.poll(look, Question::Slot, Standing::Waiting, now)
    }

    fn asked_hop(&mut self, look: Arc<Look>, index: usize, marks: &[Mark], now: Moment) -> State {
        let next = index + 1;
        let Rule::Hops(hops) = &mut self.rule else {
            return State::Asking(look, Question::Hop(index));
        };
        let Some(hop) = hops.get_mut(index) else {
            return self.settle(look, now);
        };
        let standing = match hop.see(marks, now, &self.timing) {
            hop_watch::Passage::Passed => {
                self.standing = Standing::Waiting;
                return match hops.get_mut(next) {
                    Some(hop) => {
                        hop.begin(false, now);
                        State::Asking(look, Question::Hop(next))
                    }
                    None => self.settle(look, now),
                };
            }
            hop_watch::Passage::NotYet => Standing::Waiting,
            hop_watch::Passage::Blocked => Standing::Blocked,
            hop_watch::Passage::OffsetLost => Standing::OffsetLost,
        };
        self.poll(look, Question::Hop(index), standing, now)
    }

    /// The position has passed: the ledger insert that follows it gets its time.
    fn settle(&mut self, look: Arc<Look>, now: Moment) -> State {
        self.not_before = now.plus(self.timing.grace);
        State::Checking(look)
    }

    /// Before a claim; where no position decides there is nothing to check.
    fn check(&self, look: Arc<Look>) -> State {
        match self.rule {
            Rule::Nothing => State::Claiming(look),
            Rule::Slot(_) | Rule::Hops(_) => State::Checking(look),
        }
    }

    /// Asks again after a while. A look that is stuck is replaced at every interval, since what it
    /// holds may have arrived by other ways; the next one stands as this one does.
    fn poll(
        &mut self,
        look: Arc<Look>,
        question: Question,
        standing: Standing,
        now: Moment,
    ) -> State {
        self.standing = standing;
        self.not_before = now.plus(self.timing.poll);
        let is_old = now.since(self.asking_since) >= self.timing.interval;
        if standing.is_alarm() && (is_old || self.again) {
            self.again = false;
            self.stuck = true;
            self.partial |= look.truncated;
            return State::Resting;
        }
        State::Asking(look, question)
    }

    /// Before the claim: the life is the same, and no relay came back with what it still holds.
    fn checked(&mut self, look: Arc<Look>, life: &Life, slot: &SlotView, now: Moment) -> State {
        if *life != look.life {
            return self.another_life(&look, now);
        }
        if !matches!(self.rule, Rule::Slot(_)) {
            return State::Claiming(look);
        }
        let passage = self.passage(&look, slot, now);
        match passage {
            slot_watch::Passage::Passed | slot_watch::Passage::NoRelay => State::Claiming(look),
            slot_watch::Passage::Inactive if self.is_given_up(now) => State::Claiming(look),
            _ => self.poll(look, Question::Slot, Standing::Waiting, now),
        }
    }

    fn claimed(&mut self, look: Arc<Look>, claimed: Claimed, now: Moment) -> State {
        if claimed.more {
            self.not_before = now;
            return self.check(look);
        }
        let moved = claimed.redelivered > 0 || claimed.discarded > 0;
        let pause = match (look.truncated, moved) {
            (true, true) => 0,
            // Nothing of it could be moved, so the next ids are not in a hurry either.
            (true, false) => self.timing.poll,
            (false, _) => self.timing.interval,
        };
        self.rest(&look, pause, now)
    }

    /// The look is dealt with.
    fn rest(&mut self, look: &Look, pause: u64, now: Moment) -> State {
        let mut pause = if self.again { 0 } else { pause };
        if !look.truncated && std::mem::take(&mut self.partial) {
            pause = pause.min(self.timing.poll);
        } else {
            self.done |= !look.truncated;
        }
        self.stuck = false;
        self.standing = Standing::Idle;
        self.again = false;
        self.not_before = now.plus(pause);
        State::Resting
    }

    /// The look says nothing about this life; neither does what was remembered.
    fn another_life(&mut self, look: &Look, now: Moment) -> State {
        match &mut self.rule {
            Rule::Slot(watch) => *watch = SlotWatch::default(),
            Rule::Hops(hops) => hops.iter_mut().for_each(|hop| *hop = HopWatch::default()),
            Rule::Nothing => {}
        }
        self.again = false;
        self.stuck = false;
        self.partial |= look.truncated;
        self.standing = Standing::Idle;
        self.not_before = now.plus(self.timing.poll);
        State::Resting
    }

    fn failed(&mut self, state: State, now: Moment) -> State {
        self.looking = false;
        self.not_before = now.plus(self.timing.poll);
        match state {
            State::Resting => State::Resting,
            State::Asking(look, Question::Hop(index)) => State::Asking(look, Question::Hop(index)),
            State::Asking(look, Question::Slot | Question::Probe) => {
                self.out_of_reach(now);
                State::Asking(look, Question::Slot)
            }
            State::Checking(look) => {
                self.out_of_reach(now);
                State::Checking(look)
            }
            // What the claim did is unknown. The ledger knows; the position is read again first.
            State::Claiming(look) => self.check(look),
        }
    }

    fn out_of_reach(&mut self, now: Moment) {
        if let Rule::Slot(watch) = &mut self.rule {
            watch.out_of_reach(now);
        }
    }

    fn passage(&mut self, look: &Look, slot: &SlotView, now: Moment) -> slot_watch::Passage {
        match &mut self.rule {
            Rule::Slot(watch) => watch.see(slot, look.lsn, now, &self.timing),
            Rule::Hops(_) | Rule::Nothing => slot_watch::Passage::NotYet,
        }
    }

    fn is_given_up(&self, now: Moment) -> bool {
        matches!(&self.rule, Rule::Slot(watch) if watch.is_given_up(now, &self.timing))
    }
}
