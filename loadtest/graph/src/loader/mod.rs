//! Loads an edge list into Postgres: accounts and follows, and nothing else.
//!
//! Owns the form of lists, what becomes of bad lines, and the order of the work. Does not own the
//! API's way of following: a bulk load writes no outbox row, so there are no follow events, and
//! timelines get no earlier posts.
//!
//! ```text
//! lines ──▶ staged (temporary, by COPY) ──▶ accounts ──▶ edges (sorted, distinct) ──▶ follows
//!   │                                                                     batch by batch
//!   └─ a bad line: nothing is loaded, unless told to go on
//! ```
//!
//! Promise: nothing is loaded from a list with a bad line; loading the same list again changes
//! nothing; after a failure in the middle, loading it again completes it. Memory is a few
//! megabytes, however long the list is. An edge that was ended before begins above its end.

mod edge;
mod feed;
mod line;
mod tables;

use std::{fmt, io, path::PathBuf};

use crate::Graph;

pub use tables::load;

/// Where edges come from.
#[derive(Debug)]
pub enum Input {
    /// A file of lines.
    File(PathBuf),
    /// Lines from standard input.
    Stdin,
    /// A generated graph; accounts have to be [`Accounts::Ids`].
    Graph(Box<Graph>),
}

/// What the two fields of a line are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Accounts {
    /// Handles: accounts that are not there are made, with ids of the database's choice. On an
    /// empty database that is by length and then by alphabet, so the numbers 1 … n get ids 1 … n.
    Handles,
    /// Ids: accounts that are not there are made, and named by the prefix and their id.
    Ids {
        /// Is added to each number.
        add: u64,
        /// First part of the handles of new accounts.
        prefix: String,
    },
}

/// How to load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// What the fields are.
    pub accounts: Accounts,
    /// Lines are `followee follower`.
    pub followee_first: bool,
    /// Follows made in one transaction. The slot's walsender decodes each of them as a whole, so
    /// a list in one piece would spill to its disk.
    pub batch: u64,
    /// Leave bad lines out and go on.
    pub skip_bad: bool,
    /// How many bad lines are told; all are counted.
    pub show_bad: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            accounts: Accounts::Handles,
            followee_first: false,
            batch: 500_000,
            skip_bad: false,
            show_bad: 20,
        }
    }
}

/// A line that is not an edge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadLine {
    /// From 1.
    pub number: u64,
    /// What is wrong with it.
    pub fault: String,
}

impl fmt::Display for BadLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.number, self.fault)
    }
}

/// The bad lines of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BadLines {
    /// All of them.
    pub count: u64,
    /// The first.
    pub first: Vec<BadLine>,
}

impl fmt::Display for BadLines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for line in &self.first {
            write!(f, "{separator}{line}")?;
            separator = "\n";
        }
        let more = self.count - self.first.len() as u64;
        if more > 0 {
            write!(f, "{separator}and {more} more bad lines")?;
        }
        Ok(())
    }
}

/// How far a load is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Progress {
    /// Edges are read and staged.
    Reading {
        /// So many.
        edges: u64,
        /// Of the whole list, from 0 to 1; `None` while nobody knows how long it is.
        share: Option<f64>,
    },
    /// Accounts are looked up and made.
    Accounts,
    /// Edges are sorted, and repeated ones dropped.
    Sorting,
    /// Follows are made.
    Following {
        /// Edges that are done.
        edges: u64,
        /// Edges to do.
        of: u64,
    },
}

/// What a load did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Edges in the list.
    pub edges: u64,
    /// Lines that were left out because they are bad.
    pub bad: BadLines,
    /// Edges of somebody to themselves, left out.
    pub self_follows: u64,
    /// Edges that the list had before, left out.
    pub duplicates: u64,
    /// Edges that the database had before.
    pub already: u64,
    /// Follows made.
    pub follows_made: u64,
    /// Accounts made.
    pub accounts_made: u64,
}

/// Why nothing, or not all, was loaded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The list has bad lines; nothing was loaded.
    #[error("{0}\nnothing was loaded; --skip-bad leaves bad lines out")]
    Bad(BadLines),
    /// The list cannot be read.
    #[error("cannot read {name}")]
    Read {
        /// The file.
        name: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The database refused, or did not answer.
    #[error("cannot {doing}")]
    Database {
        /// What was being done.
        doing: &'static str,
        /// Why.
        #[source]
        source: tokio_postgres::Error,
    },
    /// No connection, or no schema.
    #[error(transparent)]
    Connect(#[from] database::Error),
    /// An account cannot be made, because its handle belongs to somebody else.
    #[error(
        "account {id} cannot be made: the handle {handle} belongs to another account; choose \
         another --prefix"
    )]
    HandleTaken {
        /// The account.
        id: i64,
        /// Its handle.
        handle: String,
    },
    /// A generated graph has numbers, which are no handles.
    #[error("a generated graph is loaded by ids, not by handles")]
    GraphByHandles,
    /// The thread that reads ended by itself.
    #[error("the reader ended early")]
    Reader(#[source] tokio::task::JoinError),
}
