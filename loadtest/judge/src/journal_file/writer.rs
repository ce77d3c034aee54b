//! Writes the journal, line by line, as the operations happen.

use std::{
    fs::{File, OpenOptions},
    io::{self, Write},
    ops::RangeInclusive,
    path::Path,
    sync::{Mutex, PoisonError},
};

use events::{Micros, PostId, UserId};
use graph::Shape;
use serde::{Deserialize, Serialize};

use super::{Line, VERSION};
use crate::audience::Change;

/// Names one operation of a journal: a post with its deletion, or one change of one edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Op(pub(super) u64);

/// Writes a journal. Many may write at once: the order of the lines is the order of the calls.
#[derive(Debug)]
pub struct JournalWriter {
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    file: File,
    last: u64,
}

impl JournalWriter {
    /// A new journal in this file.
    ///
    /// # Errors
    /// When the file is there already, or cannot be made.
    pub fn create(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new()
            .append(true)
            .create_new(true)
            .open(path)?;
        let inner = Mutex::new(Inner { file, last: 0 });
        let writer = Self { inner };
        writer.line(&Line::Journal { version: VERSION })?;
        Ok(writer)
    }

    /// Notes accounts that exist.
    ///
    /// # Errors
    /// When the file cannot be written, as in all that follow.
    pub fn users(&self, users: RangeInclusive<UserId>) -> io::Result<()> {
        let (first, last) = users.into_inner();
        self.line(&Line::Users { first, last })
    }

    /// Notes that the follows of a generated graph are there; account `n` of it has the id
    /// `n + add`. Its accounts need no other note.
    ///
    /// # Errors
    /// See [`JournalWriter::users`].
    pub fn graph(&self, shape: &Shape, add: u64) -> io::Result<()> {
        let shape = shape.clone();
        self.line(&Line::Graph { shape, add })
    }

    /// Notes follows that are there.
    ///
    /// # Errors
    /// See [`JournalWriter::users`].
    pub fn follows(&self, followee: UserId, followers: &[UserId]) -> io::Result<()> {
        let followers = followers.to_vec();
        self.line(&Line::Follows {
            followee,
            followers,
        })
    }

    /// Notes that those follows are there that Postgres has with times up to `before`. The judge
    /// reads them when it looks; an edge that is changed in between is exact only when
    /// [`JournalWriter::follows`] has noted it too.
    ///
    /// # Errors
    /// See [`JournalWriter::users`].
    pub fn follows_in_postgres(&self, before: Micros) -> io::Result<()> {
        self.line(&Line::FollowsInPostgres { before })
    }

    /// Notes that others use the deployment too: posts up to this one, and everything of accounts
    /// that are not noted here, are not judged.
    ///
    /// # Errors
    /// See [`JournalWriter::users`].
    pub fn beside_others(&self, posts_up_to: PostId) -> io::Result<()> {
        self.line(&Line::BesideOthers { posts_up_to })
    }

    /// Notes that a post is about to be sent for the first time.
    ///
    /// # Errors
    /// See [`JournalWriter::users`]; then it must not be sent.
    pub fn post_sent(&self, author: UserId, client_post_id: &str) -> io::Result<Op> {
        let key = client_post_id.to_owned();
        self.numbered(|op| Line::Post { op, author, key })
    }

    /// Notes the answer to a post, or to a repeat of it.
    ///
    /// # Errors
    /// See [`JournalWriter::users`].
    pub fn post_acked(&self, op: Op, id: PostId) -> io::Result<()> {
        self.line(&Line::PostAcked { op, id })
    }

    /// Notes that the deletion of a post is about to be sent.
    ///
    /// # Errors
    /// See [`JournalWriter::users`]; then it must not be sent.
    pub fn delete_sent(&self, op: Op) -> io::Result<()> {
        self.line(&Line::Delete { op })
    }

    /// Notes that the deletion of a post was acknowledged.
    ///
    /// # Errors
    /// See [`JournalWriter::users`].
    pub fn delete_acked(&self, op: Op) -> io::Result<()> {
        self.line(&Line::DeleteAcked { op })
    }

    /// Notes that a follow or an unfollow is about to be sent. Changes of one edge have to be sent
    /// one after the other.
    ///
    /// # Errors
    /// See [`JournalWriter::users`]; then it must not be sent.
    pub fn edge_sent(&self, change: Change, follower: UserId, followee: UserId) -> io::Result<Op> {
        self.numbered(|op| match change {
            Change::Follow => Line::Follow {
                op,
                follower,
                followee,
            },
            Change::Unfollow => Line::Unfollow {
                op,
                follower,
                followee,
            },
        })
    }

    /// Notes that a follow or an unfollow was acknowledged.
    ///
    /// # Errors
    /// See [`JournalWriter::users`].
    pub fn edge_acked(&self, op: Op) -> io::Result<()> {
        self.line(&Line::EdgeAcked { op })
    }

    /// Notes that the generator ended in order: nothing was sent after this.
    ///
    /// # Errors
    /// See [`JournalWriter::users`].
    pub fn end(&self) -> io::Result<()> {
        self.line(&Line::End {})?;
        self.sync()
    }

    /// Brings everything to the disk.
    ///
    /// # Errors
    /// See [`JournalWriter::users`].
    pub fn sync(&self) -> io::Result<()> {
        self.locked(|inner| inner.file.sync_data())
    }

    fn numbered(&self, line: impl FnOnce(Op) -> Line) -> io::Result<Op> {
        self.locked(|inner| {
            let op = Op(inner.last + 1);
            inner.write(&line(op))?;
            inner.last += 1;
            Ok(op)
        })
    }

    fn line(&self, line: &Line) -> io::Result<()> {
        self.locked(|inner| inner.write(line))
    }

    fn locked<T>(&self, work: impl FnOnce(&mut Inner) -> io::Result<T>) -> io::Result<T> {
        work(&mut self.inner.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Inner {
    /// In one piece, so that a process that ends at any moment tears at most the last line.
    fn write(&mut self, line: &Line) -> io::Result<()> {
        let mut text = serde_json::to_vec(line)?;
        text.push(b'\n');
        self.file.write_all(&text)
    }
}
