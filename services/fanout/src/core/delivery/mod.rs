//! One event on its way to its audience: page read, rows written, next page, finished.
//!
//! Owns the order of steps of one record: the next follower page is read while the rows of this
//! one are written, and never more than that. Does not own retries: a step that failed is simply
//! done again, since repeating a read or a write changes nothing (D-7).
//!
//! ```text
//!   read p1 ──▶ write p1 ──────▶ write p2 ──▶ finished
//!               read p2 ──(held)─┘
//! ```
//!
//! A post that is absent may only be not visible yet. Postgres hands a commit to the replication
//! stream as soon as it is flushed, and shows it to other snapshots a moment later (with a
//! synchronous standby, much later); the relay and Kafka are faster than that under load. So the
//! page is read again for a while before the event counts as a ghost.
//!
//! Promise: `Finished` comes only after the last page was read and every row of it and of all
//! pages before was written.

use std::time::Duration;

use events::{Micros, UserId};

use super::{
    plan::{Plan, Post},
    retry,
    row::{self, Edge, Row},
};

/// The rules of time that a delivery follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// How long a row stays in a timeline, microseconds.
    pub retention_us: i64,
    /// A post older than this is not written, microseconds.
    pub horizon_us: i64,
    /// Followers per page.
    pub page_rows: usize,
    /// For how long an absent post may still become visible, microseconds of Postgres's clock.
    pub visible_within_us: i64,
}

/// A page of followers as it was read, in one snapshot with the post.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// Whether the post is there and not deleted.
    pub post: PostState,
    /// Postgres's time at the read.
    pub pg_now: Micros,
    /// The followers, ascending; fewer than asked for are the last.
    pub edges: Vec<Edge>,
}

/// The post as it was when a page was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PostState {
    /// There.
    Live,
    /// There, marked as deleted.
    Deleted,
    /// Not there: not visible yet, or of a transaction that a failover undid.
    Absent,
    /// Another post has this id: the record is of another database.
    Foreign,
}

impl PostState {
    /// Judges the post that was found under the id of `wanted`: author, time, deleted. Another
    /// author or time tells of a record of another database whose ids are the same.
    pub fn judge(wanted: &Post, found: Option<(UserId, Micros, bool)>) -> Self {
        match found {
            Some((author, post_us, _)) if (author, post_us) != (wanted.author, wanted.post_us) => {
                Self::Foreign
            }
            Some((_, _, false)) => Self::Live,
            Some((_, _, true)) => Self::Deleted,
            None => Self::Absent,
        }
    }
}

/// What is to be done next; up to two at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Read the page behind this follower, or the first one.
    Read {
        /// The last follower of the page before.
        after: Option<UserId>,
    },
    /// Read that page again after a pause: its post was not visible.
    ReadLater {
        /// As for `Read`.
        after: Option<UserId>,
        /// How long to wait.
        pause: Duration,
    },
    /// Write rows.
    Write(Vec<Row>),
    /// Delete the rows of these owners.
    Delete {
        /// Whose.
        owners: Vec<UserId>,
        /// With this write timestamp.
        del_us: Micros,
    },
    /// Nothing is left to do.
    Finished(Outcome),
}

impl Step {
    /// How many rows the step writes or deletes.
    pub fn rows(&self) -> usize {
        match self {
            Self::Write(rows) => rows.len(),
            Self::Delete { owners, .. } => owners.len(),
            Self::Read { .. } | Self::ReadLater { .. } | Self::Finished(_) => 0,
        }
    }
}

/// How a delivery ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Every row of the audience is written, or was over already.
    Delivered,
    /// Every row of the audience is deleted.
    Removed,
    /// The post was deleted when its followers were read: what follows is not written.
    SkippedDeleted,
    /// No such post, and none became visible in time.
    Ghost,
    /// The post is older than the tombstone horizon.
    PastHorizon,
    /// Not an event of this lane.
    Nothing,
}

/// One event on its way.
#[derive(Clone, Debug)]
pub struct Delivery {
    plan: Plan,
    rules: Rules,
    read: Reading,
    /// Pages without the post in a row, and Postgres's time at the first of them.
    absent: Option<(u32, Micros)>,
    /// A page that waits for the write before it.
    held: Option<Step>,
    writing: bool,
    /// Set as soon as no page is to be read any more.
    ending: Option<Outcome>,
    audience: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reading {
    Idle { after: Option<UserId> },
    Running { after: Option<UserId> },
    Over,
}

impl Outcome {
    /// Every outcome.
    pub const ALL: [Self; 6] = [
        Self::Delivered,
        Self::Removed,
        Self::SkippedDeleted,
        Self::Ghost,
        Self::PastHorizon,
        Self::Nothing,
    ];

    /// The label value.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Delivered => "delivered",
            Self::Removed => "removed",
            Self::SkippedDeleted => "skipped_deleted",
            Self::Ghost => "ghost",
            Self::PastHorizon => "past_horizon",
            Self::Nothing => "nothing",
        }
    }

    /// Whether the event has come to everybody it is for, so that the ledger may say so.
    pub const fn is_delivered(self) -> bool {
        matches!(self, Self::Delivered | Self::Removed | Self::SkippedDeleted)
    }
}

impl Delivery {
    /// A delivery and its first steps.
    pub fn new(plan: Plan, rules: Rules) -> (Self, Vec<Step>) {
        let mut delivery = Self {
            plan,
            rules,
            read: Reading::Idle { after: None },
            absent: None,
            held: None,
            writing: false,
            ending: None,
            audience: 0,
        };
        if plan == Plan::Nothing {
            delivery.end(Outcome::Nothing);
        }
        let steps = delivery.advance();
        (delivery, steps)
    }

    /// Takes in the page that was asked for.
    pub fn page_read(&mut self, page: &Page) -> Vec<Step> {
        if page.post == PostState::Absent {
            return self.absent(page.pg_now);
        }
        self.absent = None;
        let last = page.edges.len() < self.rules.page_rows;
        self.read = match page.edges.last() {
            Some(edge) if !last => Reading::Idle {
                after: Some(edge.follower),
            },
            _ => Reading::Over,
        };
        match self.plan {
            Plan::Direct(post) => self.direct_page(&post, page),
            Plan::Delete { .. } if page.post == PostState::Foreign => self.end(Outcome::Ghost),
            // Deleted or live: the event was committed once, and it is about the rows.
            Plan::Delete { del_us, .. } => {
                let owners: Vec<_> = page.edges.iter().map(|edge| edge.follower).collect();
                self.audience += owners.len() as u64;
                if !owners.is_empty() {
                    self.held = Some(Step::Delete { owners, del_us });
                }
                if self.read == Reading::Over {
                    self.end(Outcome::Removed);
                }
            }
            Plan::Nothing => self.end(Outcome::Nothing),
        }
        self.advance()
    }

    /// Takes in that the rows handed out are written or deleted.
    pub fn written(&mut self) -> Vec<Step> {
        self.writing = false;
        self.advance()
    }

    /// Followers that got a row or lost one.
    pub fn audience(&self) -> u64 {
        self.audience
    }

    /// Rows of the page that waits for the write before it.
    pub fn held_rows(&self) -> usize {
        self.held.as_ref().map_or(0, Step::rows)
    }

    fn absent(&mut self, pg_now: Micros) -> Vec<Step> {
        let (pages, since) = self.absent.map_or((1, pg_now), |(pages, since)| {
            (pages.saturating_add(1), since)
        });
        self.absent = Some((pages, since));
        match self.read {
            Reading::Running { after } if pg_now < since.plus(self.rules.visible_within_us) => {
                vec![Step::ReadLater {
                    after,
                    pause: retry::pause(pages, 0.0),
                }]
            }
            _ => {
                self.end(Outcome::Ghost);
                self.advance()
            }
        }
    }

    fn direct_page(&mut self, post: &Post, page: &Page) {
        match page.post {
            PostState::Live => {}
            PostState::Deleted => return self.end(Outcome::SkippedDeleted),
            PostState::Absent | PostState::Foreign => return self.end(Outcome::Ghost),
        }
        if row::is_past_horizon(post, page.pg_now, self.rules.horizon_us) {
            return self.end(Outcome::PastHorizon);
        }
        let rows: Vec<_> = page
            .edges
            .iter()
            .filter_map(|&edge| row::row(post, edge, self.rules.retention_us))
            .collect();
        self.audience += rows.len() as u64;
        if !rows.is_empty() {
            self.held = Some(Step::Write(rows));
        }
        if self.read == Reading::Over {
            self.end(Outcome::Delivered);
        }
    }

    fn end(&mut self, outcome: Outcome) {
        self.read = Reading::Over;
        self.ending = Some(outcome);
    }

    fn advance(&mut self) -> Vec<Step> {
        let mut steps = Vec::new();
        if !self.writing
            && let Some(work) = self.held.take()
        {
            self.writing = true;
            steps.push(work);
        }
        // One page ahead: the next is read when the one before has left the hold.
        if let Reading::Idle { after } = self.read
            && self.held.is_none()
        {
            self.read = Reading::Running { after };
            steps.push(Step::Read { after });
        }
        if let Some(outcome) = self.ending
            && !self.writing
            && self.held.is_none()
        {
            steps.push(Step::Finished(outcome));
        }
        steps
    }
}

#[cfg(test)]
mod tests;
