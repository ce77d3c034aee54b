//! Who there is to draw from: the authors by the size of their audience, and the celebrities.

use std::ops::Range;

use anyhow::{Context, ensure};
use fastrand::Rng;
use graph::Graph;

use super::Account;
use crate::audience::Audience;

/// The first followers of an author are left alone by churn, so that they can be watchers.
const WATCHERS: usize = 8;

/// A graph, and its authors sorted by audience: four bytes an account.
#[derive(Debug)]
pub struct Population {
    graph: Graph,
    /// Authors with followers, by class.
    classes: [Vec<u32>; 5],
    /// The celebrities who may post; fillers have no audience.
    celebrities: Vec<Account>,
    /// One account outside of the graph that follows very many, and nobody else posts to.
    hot_reader: Option<Account>,
}

impl Population {
    /// Sorts the accounts of a graph. `hot_reader` is an account behind the graph's.
    ///
    /// # Errors
    /// When the graph has more accounts than four bytes can number.
    pub fn new(graph: Graph, hot_reader: bool) -> anyhow::Result<Self> {
        let ordinary = graph.shape().users;
        ensure!(
            u32::try_from(graph.accounts() + 1).is_ok(),
            "{} accounts are too many",
            graph.accounts()
        );
        let mut classes: [Vec<u32>; 5] = Default::default();
        for account in 1..=ordinary {
            let followers = graph.follower_count(account);
            let number = u32::try_from(account).context("numbering the accounts")?;
            if followers > 0
                && let Some(class) = classes.get_mut(Audience::of(followers).index())
            {
                class.push(number);
            }
        }
        let celebrities = graph.celebrities();
        Ok(Self {
            celebrities: celebrities
                .filter(|&account| graph.follower_count(account) > 0)
                .collect(),
            hot_reader: hot_reader.then(|| graph.accounts() + 1),
            graph,
            classes,
        })
    }

    /// The graph.
    pub const fn graph(&self) -> &Graph {
        &self.graph
    }

    /// Every account, the hot reader included.
    pub fn accounts(&self) -> Range<Account> {
        1..self.graph.accounts() + 1 + u64::from(self.hot_reader.is_some())
    }

    /// The hot reader.
    pub const fn hot_reader(&self) -> Option<Account> {
        self.hot_reader
    }

    /// The celebrity with this index.
    pub fn celebrity(&self, index: u64) -> Option<Account> {
        let index = usize::try_from(index).ok()?;
        self.celebrities.get(index).copied()
    }

    /// All celebrities.
    pub fn celebrities(&self) -> &[Account] {
        &self.celebrities
    }

    /// How many ordinary authors a class has.
    pub fn authors(&self, class: Audience) -> usize {
        self.classes.get(class.index()).map_or(0, Vec::len)
    }

    /// An ordinary author of a class.
    pub(super) fn author_of(&self, class: Audience, rng: &mut Rng) -> Option<Account> {
        let class = self.classes.get(class.index())?;
        rng.choice(class).map(|&account| u64::from(account))
    }

    /// An ordinary author, each as likely as any other.
    pub(super) fn author(&self, rng: &mut Rng) -> Option<Account> {
        let total: usize = self.classes.iter().map(Vec::len).sum();
        let mut index = (total > 0).then(|| rng.usize(..total))?;
        for class in &self.classes {
            match class.get(index) {
                Some(&account) => return Some(u64::from(account)),
                None => index -= class.len(),
            }
        }
        None
    }

    /// An ordinary account, whether or not it has followers.
    pub(super) fn anybody(&self, rng: &mut Rng) -> Account {
        rng.u64(1..=self.graph.shape().users)
    }

    /// A follower whose follow never changes; none when the audience is too small to have one.
    pub(super) fn watcher(&self, author: Account, rng: &mut Rng) -> Option<Account> {
        self.graph.followers(author).nth(rng.usize(..WATCHERS))
    }

    /// Followers whose follows may change, at most so many.
    pub(super) fn may_leave(&self, author: Account, most: usize) -> Vec<Account> {
        let followers = self.graph.followers(author);
        followers.skip(WATCHERS).take(most).collect()
    }

    /// The authors whom the hot reader follows: the first with followers, so many.
    pub fn hot_follows(&self, count: u64) -> impl Iterator<Item = Account> + '_ {
        let authors = 1..=self.graph.shape().users;
        let authors = authors.filter(|&account| self.graph.follower_count(account) > 0);
        authors.take(usize::try_from(count).unwrap_or(usize::MAX))
    }
}
