//! What becomes of one id that is missing in a stage.
//!
//! Owns the rule that a claim applies under its lock and that `tideline explain` shows: never what
//! is discarded, dead-lettered, or was sent again after the look; the waiting time between
//! attempts; the horizon. Every time here is Postgres's.

use std::fmt;

use events::Micros;

/// Waiting time after the first attempt, microseconds; doubles with each.
pub const FIRST_WAIT_US: i64 = 60_000_000;
/// The longest waiting time between two attempts, microseconds.
pub const LONGEST_WAIT_US: i64 = 6 * Micros::HOUR;
/// The attempt from which a person is told.
pub const ALARM_FROM: u32 = 3;

/// What is known about a missing id, read under the lock of its block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    /// `outbox.created_at`.
    pub created_us: Micros,
    /// Whether its post is in `posts`; none when the event is not about a post.
    pub post_exists: Option<bool>,
    /// How often the sweep has sent it again.
    pub attempts: u32,
    /// When it last did.
    pub last_us: Option<Micros>,
    /// Whether a dead letter of it is open.
    pub dead_letter_open: bool,
    /// Whether it is entered as discarded.
    pub discarded: bool,
}

/// What to do with a missing id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Publish it again.
    Redeliver {
        /// Which attempt of the sweep this is; the first is 1.
        attempt: u32,
        /// It keeps failing: tell a person.
        alarm: bool,
    },
    /// Enter it as never to be delivered.
    Discard(DiscardReason),
    /// Nothing, for now.
    Leave(Why),
}

/// Why an event will never pass its stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DiscardReason {
    /// Older than the horizon; a rebuild repairs it.
    TooOld,
    /// Its post was removed.
    NoPost,
}

impl DiscardReason {
    /// Every reason.
    pub const ALL: [Self; 2] = [Self::TooOld, Self::NoPost];

    /// The text in `discarded.reason` and the label value.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::TooOld => "too_old",
            Self::NoPost => "no_post",
        }
    }
}

/// Why a missing id is left alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// A dead letter of it is open: a person decides.
    DeadLetter,
    /// It is discarded.
    Discarded,
    /// It was sent again after the look was taken: another sweeper was faster.
    Newer,
    /// Its next attempt is due then.
    NotDue {
        /// Postgres's time.
        due_us: Micros,
    },
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DeadLetter => f.write_str("a dead letter of it is open"),
            Self::Discarded => f.write_str("it is discarded"),
            Self::Newer => f.write_str("it was sent again after this look"),
            Self::NotDue { due_us } => write!(f, "its next attempt is due at {due_us} µs"),
        }
    }
}

/// Decides about an id that was missing in a look taken at `look_taken_us` and is missing still,
/// at `now_us`. An event older than `horizon_us` is not sent again.
pub fn fate(facts: &Facts, look_taken_us: Micros, now_us: Micros, horizon_us: i64) -> Fate {
    if facts.discarded {
        return Fate::Leave(Why::Discarded);
    }
    if facts.dead_letter_open {
        return Fate::Leave(Why::DeadLetter);
    }
    if let Some(last) = facts.last_us {
        // The position was read for what had been sent before the look, not for this.
        if last >= look_taken_us {
            return Fate::Leave(Why::Newer);
        }
        let due_us = last.plus(wait_us(facts.attempts));
        if now_us < due_us {
            return Fate::Leave(Why::NotDue { due_us });
        }
    }
    if facts.created_us.plus(horizon_us) < now_us {
        return Fate::Discard(DiscardReason::TooOld);
    }
    if facts.post_exists == Some(false) {
        return Fate::Discard(DiscardReason::NoPost);
    }
    let attempt = facts.attempts.saturating_add(1);
    Fate::Redeliver {
        attempt,
        alarm: attempt >= ALARM_FROM,
    }
}

/// How long after the last of `attempts` the next one waits, microseconds: a minute after the
/// first, doubling, at most six hours.
pub const fn wait_us(attempts: u32) -> i64 {
    let doublings = attempts.saturating_sub(1);
    // Nine doublings of a minute are more than six hours.
    if doublings >= 9 {
        return LONGEST_WAIT_US;
    }
    let wait = FIRST_WAIT_US << doublings;
    if wait < LONGEST_WAIT_US {
        wait
    } else {
        LONGEST_WAIT_US
    }
}
