//! Reads a journal back, and makes the follows of its authors out of what it says about them.

use std::{
    fs::File,
    io::{self, BufRead, BufReader},
    path::Path,
};

use events::UserId;
use graph::{Graph, Shape, ShapeError};

use super::{Line, Op, VERSION};
use crate::{
    audience::Change,
    journal::{EdgeRef, Journal, PostRef},
};

/// A journal that was read.
#[derive(Clone, Debug)]
pub struct JournalFile {
    /// All operations.
    pub journal: Journal,
    /// What a reader of the verdict should know about it.
    pub notes: Vec<String>,
}

/// Why a journal cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The file cannot be read.
    #[error("cannot read the journal {path}")]
    File {
        /// Which.
        path: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A line that is none of a journal.
    #[error("{path}, line {number}: {fault}")]
    Line {
        /// Which file.
        path: String,
        /// Which line, from 1.
        number: u64,
        /// What is wrong with it.
        fault: String,
    },
}

/// Reads a journal.
///
/// # Errors
/// When the file cannot be read or is no journal.
pub fn read(path: &Path) -> Result<JournalFile, ReadError> {
    let name = path.display().to_string();
    let failed = |source| ReadError::File {
        path: name.clone(),
        source,
    };
    let mut reader = BufReader::with_capacity(1 << 18, File::open(path).map_err(failed)?);
    let mut replay = Replay::default();
    let (mut text, mut number) = (Vec::new(), 0);
    loop {
        text.clear();
        if reader.read_until(b'\n', &mut text).map_err(failed)? == 0 {
            break;
        }
        number += 1;
        if text.last() != Some(&b'\n') {
            replay.notes.push(format!(
                "line {number} of the journal is torn, as by a crash of its writer; it says nothing"
            ));
            break;
        }
        let told = serde_json::from_slice(&text)
            .map_err(|error| format!("is no line of a journal: {error}"))
            .and_then(|line| replay.line(line));
        told.map_err(|fault| ReadError::Line {
            path: name.clone(),
            number,
            fault,
        })?;
    }
    replay.finish().map_err(|fault| ReadError::Line {
        path: name,
        number,
        fault,
    })
}

/// What an operation's number stands for.
#[derive(Clone, Copy, Debug)]
enum Ref {
    Post(PostRef),
    Edge(EdgeRef),
}

#[derive(Default)]
struct Replay {
    journal: Journal,
    notes: Vec<String>,
    refs: Vec<Ref>,
    graphs: Vec<(Graph, u64)>,
    begun: bool,
    ended: bool,
}

impl Replay {
    fn line(&mut self, line: Line) -> Result<(), String> {
        if !self.begun && !matches!(line, Line::Journal { .. }) {
            return Err("a journal begins with its version".to_owned());
        }
        match line {
            Line::Journal { version: VERSION } if !self.begun => self.begun = true,
            Line::Journal { version } => {
                return Err(format!("version {version} where {VERSION} is read, once"));
            }
            Line::Users { first, last } => self.journal.know_range(first..=last),
            Line::Graph { shape, add } => self.graph(shape, add)?,
            Line::Follows {
                followee,
                followers,
            } => self.journal.bulk_follows(followee, followers),
            Line::FollowsInPostgres { before } => self.journal.base_in_postgres(before),
            Line::BesideOthers { posts_up_to } => self.journal.beside_others(posts_up_to),
            Line::Post { op, author, key } => {
                let post = self.journal.post_sent(author, key);
                self.number(op, Ref::Post(post))?;
            }
            Line::PostAcked { op, id } => {
                let post = self.post(op)?;
                self.journal.post_acked(post, id);
            }
            Line::Delete { op } => {
                let post = self.post(op)?;
                self.journal.delete_sent(post);
            }
            Line::DeleteAcked { op } => {
                let post = self.post(op)?;
                self.journal.delete_acked(post);
            }
            Line::Follow {
                op,
                follower,
                followee,
            } => self.edge(op, Change::Follow, follower, followee)?,
            Line::Unfollow {
                op,
                follower,
                followee,
            } => self.edge(op, Change::Unfollow, follower, followee)?,
            Line::EdgeAcked { op } => match self.named(op)? {
                Ref::Edge(edge) => self.journal.edge_acked(edge),
                Ref::Post(_) => return Err(format!("operation {} is a post", op.0)),
            },
            Line::End {} => self.ended = true,
        }
        Ok(())
    }

    fn graph(&mut self, shape: Shape, add: u64) -> Result<(), String> {
        let graph = Graph::new(shape).map_err(|error: ShapeError| error.to_string())?;
        let id = |number| id(number, add);
        self.journal.know_range(id(1)?..=id(graph.accounts())?);
        self.graphs.push((graph, add));
        Ok(())
    }

    fn edge(
        &mut self,
        op: Op,
        change: Change,
        follower: UserId,
        followee: UserId,
    ) -> Result<(), String> {
        let edge = self.journal.edge_sent(change, follower, followee);
        self.number(op, Ref::Edge(edge))
    }

    /// Operations are numbered in the order of their lines.
    fn number(&mut self, op: Op, stands_for: Ref) -> Result<(), String> {
        self.refs.push(stands_for);
        if op.0 == self.refs.len() as u64 {
            Ok(())
        } else {
            Err(format!(
                "operation {} where {} comes next",
                op.0,
                self.refs.len()
            ))
        }
    }

    fn named(&self, op: Op) -> Result<Ref, String> {
        let index = usize::try_from(op.0).ok().and_then(|op| op.checked_sub(1));
        index
            .and_then(|index| self.refs.get(index).copied())
            .ok_or_else(|| format!("operation {} was not sent before", op.0))
    }

    fn post(&self, op: Op) -> Result<PostRef, String> {
        match self.named(op)? {
            Ref::Post(post) => Ok(post),
            Ref::Edge(_) => Err(format!("operation {} is no post", op.0)),
        }
    }

    /// The promise is about posts, so only the followers of those who posted are made.
    fn finish(mut self) -> Result<JournalFile, String> {
        if !self.begun {
            return Err("is empty".to_owned());
        }
        for (graph, add) in &self.graphs {
            for author in self.journal.authors() {
                let number = u64::try_from(author.0).unwrap_or(0).saturating_sub(*add);
                let followers = graph.followers(number).map(|follower| id(follower, *add));
                let followers: Result<Vec<UserId>, String> = followers.collect();
                self.journal.bulk_follows(author, followers?);
            }
        }
        if !self.ended {
            let note = "the journal has no end: its writer was stopped, and what it had in flight is of unknown outcome";
            self.notes.push(note.to_owned());
        }
        Ok(JournalFile {
            journal: self.journal,
            notes: self.notes,
        })
    }
}

fn id(number: u64, add: u64) -> Result<UserId, String> {
    let id = number
        .checked_add(add)
        .and_then(|id| i64::try_from(id).ok());
    id.map(UserId)
        .ok_or_else(|| format!("account {number} + {add} is no id"))
}
