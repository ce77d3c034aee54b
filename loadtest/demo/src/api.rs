//! A client of write-api that writes down what it sends and what it is told.
//!
//! Promise: an outcome that is unknown (no answer, 5xx, 429) is asked for again with the same key,
//! so every operation ends as acknowledged or fails the run.

use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::Context;
use events::{PostId, UserId};
use judge::{Change, Journal, PostRef};
use load::client::{Client, Failure, insist};

/// How long an operation is repeated.
const PATIENCE: Duration = Duration::from_secs(60);

/// The client, and the journal of all it did.
#[derive(Debug)]
pub(crate) struct Api {
    client: Client,
    journal: Mutex<Journal>,
    next_key: AtomicU64,
    retries: AtomicU64,
    deleted: AtomicU64,
    edges_changed: AtomicU64,
}

/// Counts for the live view.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sent {
    pub(crate) accepted: u64,
    pub(crate) deleted: u64,
    pub(crate) edges_changed: u64,
    pub(crate) retries: u64,
}

impl Api {
    /// Sends through this client, and notes it in the journal.
    pub(crate) fn new(client: Client, journal: Journal) -> Self {
        Self {
            client,
            journal: Mutex::new(journal),
            next_key: AtomicU64::new(1),
            retries: AtomicU64::new(0),
            deleted: AtomicU64::new(0),
            edges_changed: AtomicU64::new(0),
        }
    }

    /// A token that lets its bearer act as `user`.
    pub(crate) fn token(&self, user: UserId) -> anyhow::Result<String> {
        self.client.tokens().user(user)
    }

    /// The journal; not to be held over an await.
    pub(crate) fn journal(&self) -> MutexGuard<'_, Journal> {
        self.journal.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Posts, and when `repeat` is set posts the same again with the same key.
    pub(crate) async fn post(
        &self,
        author: UserId,
        text: &str,
        repeat: bool,
    ) -> anyhow::Result<(PostRef, PostId)> {
        let key = format!("demo-{}", self.next_key.fetch_add(1, Ordering::Relaxed));
        let entry = self.journal().post_sent(author, key.as_str());
        let mut id = None;
        for _ in 0..=usize::from(repeat) {
            let created = self
                .send(|| self.client.post(author, &key, text))
                .await
                .with_context(|| format!("posting as {author}"))?;
            self.journal().post_acked(entry, created.id);
            id = id.or(Some(created.id));
        }
        id.map(|id| (entry, id))
            .context("a post is sent at least once")
    }

    /// Deletes a post.
    pub(crate) async fn delete(
        &self,
        author: UserId,
        entry: PostRef,
        id: PostId,
    ) -> anyhow::Result<()> {
        self.journal().delete_sent(entry);
        self.send(|| self.client.delete(author, id))
            .await
            .with_context(|| format!("deleting post {id}"))?;
        self.journal().delete_acked(entry);
        self.deleted.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// Follows or unfollows.
    pub(crate) async fn change(
        &self,
        change: Change,
        follower: UserId,
        followee: UserId,
    ) -> anyhow::Result<()> {
        let edge = self.journal().edge_sent(change, follower, followee);
        self.send(|| self.client.change(change, follower, followee))
            .await
            .with_context(|| format!("{change:?} of {followee} by {follower}"))?;
        self.journal().edge_acked(edge);
        self.edges_changed.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// What was done so far.
    pub(crate) fn sent(&self) -> Sent {
        Sent {
            accepted: self.journal().accepted() as u64,
            deleted: self.deleted.load(Ordering::Relaxed),
            edges_changed: self.edges_changed.load(Ordering::Relaxed),
            retries: self.retries.load(Ordering::Relaxed),
        }
    }

    async fn send<T, F>(&self, attempt: impl Fn() -> F) -> anyhow::Result<T>
    where
        F: Future<Output = Result<T, Failure>>,
    {
        let repeated = || {
            self.retries.fetch_add(1, Ordering::Relaxed);
        };
        insist(PATIENCE, repeated, attempt)
            .await
            .context("write-api gave no good answer")
    }
}
