//! The plan of a run: what is due when, as a stream. Pure, from scenario, graph and seed.
//!
//! Each source of operations (posts, each celebrity schedule, readers, churn) is a stream of its
//! own with a seed of its own, so that changing one leaves the others as they were. They are merged
//! by time; nothing but the next operation of each is in memory. Readers that thunder after a post
//! join as one more stream when the post is due.

mod population;
mod streams;
mod summary;

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::sync::Arc;
use std::time::Duration;

use judge::Change;

pub use population::Population;
pub use summary::Summary;

use crate::audience::Audience;
use crate::scenario::Scenario;

/// A number of the graph; the run maps it to an account's id.
pub type Account = u64;

/// One operation and when it is due, since the start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Planned {
    /// When it is due.
    pub at: Duration,
    /// What is done.
    pub op: Op,
}

/// One operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    /// A post.
    Post(PlannedPost),
    /// A reader looks at their timeline.
    Read(PlannedRead),
    /// A follow begins or ends.
    Edge(PlannedEdge),
}

/// A post to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedPost {
    /// Who posts.
    pub author: Account,
    /// The class of their audience.
    pub audience: Audience,
    /// So long after its acknowledgement it is deleted.
    pub delete_after: Option<Duration>,
    /// It is sent twice with one key.
    pub repeat: bool,
    /// This follower polls until they see it.
    pub watcher: Option<Account>,
    /// Readers who come because of it.
    pub thunder: Option<Thunder>,
}

/// Readers who come because of a post.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thunder {
    /// So many of a thousand followers …
    pub per_mille: u64,
    /// … within this time.
    pub within: Duration,
    /// Posts a page.
    pub page_size: u32,
}

/// A reader of their own timeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlannedRead {
    /// Who reads.
    pub reader: Account,
    /// Why.
    pub kind: ReaderKind,
    /// Pages they walk, at most.
    pub pages: u32,
    /// Posts a page.
    pub page_size: u32,
}

/// Why somebody reads; measured apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReaderKind {
    /// Just so.
    Ordinary,
    /// After a celebrity's post.
    Thundering,
    /// The one who follows very many.
    Hot,
}

/// A follow that begins or ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlannedEdge {
    /// Which of both.
    pub change: Change,
    /// Who follows.
    pub follower: Account,
    /// Whom.
    pub followee: Account,
    /// So long after the acknowledgement the follow begins again.
    pub back_after: Option<Duration>,
}

/// The operations of a run, ascending by time.
pub struct Plan {
    population: Arc<Population>,
    streams: Vec<streams::Stream>,
    heads: BinaryHeap<Head>,
}

struct Head {
    planned: Planned,
    stream: usize,
}

impl Plan {
    /// The plan of a scenario on a graph.
    ///
    /// # Errors
    /// When the graph lacks what the scenario draws from, or a trace cannot be read.
    pub fn new(scenario: &Scenario, population: &Arc<Population>) -> anyhow::Result<Self> {
        let mut plan = Self {
            population: Arc::clone(population),
            streams: Vec::new(),
            heads: BinaryHeap::new(),
        };
        for stream in streams::all(scenario, population)? {
            plan.join(stream);
        }
        Ok(plan)
    }

    fn join(&mut self, stream: streams::Stream) {
        self.streams.push(stream);
        self.advance(self.streams.len() - 1);
    }

    fn advance(&mut self, stream: usize) {
        let Some(source) = self.streams.get_mut(stream) else {
            return;
        };
        match source.next() {
            Some(planned) => self.heads.push(Head { planned, stream }),
            // The place stays, so that the others keep theirs; what it held goes.
            None => *source = Box::new(std::iter::empty()),
        }
    }
}

impl Iterator for Plan {
    type Item = Planned;

    fn next(&mut self) -> Option<Planned> {
        let Head { planned, stream } = self.heads.pop()?;
        self.advance(stream);
        if let Op::Post(post) = &planned.op
            && let Some(thunder) = post.thunder
        {
            let readers = streams::thunder(&self.population, post.author, thunder, planned.at);
            self.join(readers);
        }
        Some(planned)
    }
}

impl std::fmt::Debug for Plan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Plan({} streams)", self.streams.len())
    }
}

/// The heap gives the earliest first; at one time the earlier stream goes first.
impl Ord for Head {
    fn cmp(&self, other: &Self) -> Ordering {
        (other.planned.at, other.stream).cmp(&(self.planned.at, self.stream))
    }
}

impl PartialOrd for Head {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Head {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Head {}

#[cfg(test)]
mod tests;
