//! What a plan amounts to, counted to its end: for `--dry-run` and the report.

use std::fmt;
use std::time::Duration;

use super::{Op, Plan, Population, ReaderKind};
use crate::audience::Audience;

/// What a plan amounts to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Posts by class.
    pub posts: [u64; 5],
    /// Rows by class: a post and each of its followers, deletions and changed follows left aside.
    pub rows: [u64; 5],
    /// Posts that are deleted.
    pub deletes: u64,
    /// Posts that are sent twice with one key.
    pub repeats: u64,
    /// Followers who poll.
    pub watchers: u64,
    /// Ordinary, thundering and hot readers.
    pub readers: [u64; 3],
    /// Follows that begin or end, those that begin again included.
    pub edges: u64,
    /// The most operations in one second, deletions and follows that begin again left aside.
    pub peak: u64,
    /// When the last operation is due.
    pub last: Duration,
}

impl Summary {
    /// Counts a plan.
    pub fn of(plan: Plan, population: &Population) -> Self {
        let mut summary = Self::default();
        let (mut second, mut in_second) = (0, 0);
        for planned in plan {
            if planned.at.as_secs() != second {
                (second, in_second) = (planned.at.as_secs(), 0);
            }
            in_second += 1;
            summary.peak = summary.peak.max(in_second);
            summary.last = planned.at;
            summary.add(&planned.op, population);
        }
        summary
    }

    fn add(&mut self, op: &Op, population: &Population) {
        match op {
            Op::Post(post) => {
                let class = post.audience.index();
                let rows = population.graph().follower_count(post.author);
                if let (Some(posts), Some(sum)) =
                    (self.posts.get_mut(class), self.rows.get_mut(class))
                {
                    (*posts, *sum) = (*posts + 1, *sum + rows);
                }
                self.deletes += u64::from(post.delete_after.is_some());
                self.repeats += u64::from(post.repeat);
                self.watchers += u64::from(post.watcher.is_some());
            }
            Op::Read(read) => {
                let kind = match read.kind {
                    ReaderKind::Ordinary => 0,
                    ReaderKind::Thundering => 1,
                    ReaderKind::Hot => 2,
                };
                if let Some(readers) = self.readers.get_mut(kind) {
                    *readers += 1;
                }
            }
            Op::Edge(edge) => self.edges += 1 + u64::from(edge.back_after.is_some()),
        }
    }

    /// All posts.
    pub fn all_posts(&self) -> u64 {
        self.posts.iter().sum()
    }

    /// All rows.
    pub fn all_rows(&self) -> u64 {
        self.rows.iter().sum()
    }
}

/// One line for each kind of operation.
impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "posts      {:>9}   rows {:>10}",
            self.all_posts(),
            self.all_rows()
        )?;
        let classes = Audience::ALL.iter().zip(self.posts.iter().zip(&self.rows));
        for (class, (posts, rows)) in classes.filter(|(_, (posts, _))| **posts > 0) {
            writeln!(f, "  {posts:>17}   rows {rows:>10}   {}", class.title())?;
        }
        let [ordinary, thundering, hot] = self.readers;
        writeln!(f, "deletes    {:>9}", self.deletes)?;
        writeln!(f, "repeats    {:>9}", self.repeats)?;
        writeln!(
            f,
            "readers    {:>9}   of them thundering {thundering}, hot {hot}",
            ordinary + thundering + hot
        )?;
        writeln!(f, "watchers   {:>9}", self.watchers)?;
        writeln!(f, "follows    {:>9}   changed", self.edges)?;
        write!(
            f,
            "peak       {:>9}   operations in one second; the last at {:.1} s",
            self.peak,
            self.last.as_secs_f64()
        )
    }
}
