//! A client of write-api that writes down what it sends and what it is told.
//!
//! Promise: an outcome that is unknown (no answer, 5xx, 429) is asked for again with the same key,
//! so every operation ends as acknowledged or fails the run.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, bail};
use bytes::Bytes;
use events::{PostId, UserId};
use http_api::token::{Claims, Key, mint};
use judge::{Change, Journal, PostRef};
use reqwest::{RequestBuilder, StatusCode};
use serde::Deserialize;

/// How long one request may take.
const TIMEOUT: Duration = Duration::from_secs(10);

/// How long an operation is repeated.
const PATIENCE: Duration = Duration::from_secs(60);

/// How long tokens are good for, in seconds.
const TOKEN_SECONDS: u64 = 24 * 60 * 60;

/// The client, and the journal of all it did.
#[derive(Debug)]
pub(crate) struct Api {
    http: reqwest::Client,
    base: String,
    key: Key,
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

#[derive(Deserialize)]
struct PostAnswer {
    id: PostId,
}

impl Api {
    /// A client of the write-api at `base`, with tokens signed by `key`.
    pub(crate) fn new(base: String, key: Key, journal: Journal) -> anyhow::Result<Self> {
        let http = reqwest::Client::builder()
            .timeout(TIMEOUT)
            .build()
            .context("making an HTTP client")?;
        Ok(Self {
            http,
            base,
            key,
            journal: Mutex::new(journal),
            next_key: AtomicU64::new(1),
            retries: AtomicU64::new(0),
            deleted: AtomicU64::new(0),
            edges_changed: AtomicU64::new(0),
        })
    }

    /// A token that lets its bearer act as `user`.
    pub(crate) fn token(&self, user: UserId) -> anyhow::Result<String> {
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .context("the clock is before 1970")?
            .as_secs();
        let claims = Claims {
            sub: user.to_string(),
            exp: now + TOKEN_SECONDS,
            scope: None,
        };
        mint(&self.key, &claims).context("signing a token")
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
        let token = self.token(author)?;
        let body = serde_json::json!({"client_post_id": key, "body": text});
        let request = || {
            self.http
                .post(format!("{}/v1/posts", self.base))
                .bearer_auth(&token)
                .json(&body)
        };
        let mut id = None;
        for _ in 0..=usize::from(repeat) {
            let answer = self
                .send(request)
                .await
                .with_context(|| format!("posting as {author}"))?;
            let answer: PostAnswer =
                serde_json::from_slice(&answer).context("reading the answer to a post")?;
            self.journal().post_acked(entry, answer.id);
            id = id.or(Some(answer.id));
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
        let token = self.token(author)?;
        let request = || {
            self.http
                .delete(format!("{}/v1/posts/{id}", self.base))
                .bearer_auth(&token)
        };
        let _empty = self
            .send(request)
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
        let token = self.token(follower)?;
        let url = format!("{}/v1/users/{followee}/follow", self.base);
        let request = || match change {
            Change::Follow => self.http.put(&url).bearer_auth(&token),
            Change::Unfollow => self.http.delete(&url).bearer_auth(&token),
        };
        let _empty = self
            .send(request)
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

    async fn send(&self, request: impl Fn() -> RequestBuilder) -> anyhow::Result<Bytes> {
        let begun = Instant::now();
        let mut pause = Duration::from_millis(50);
        loop {
            let fault = match attempt(request()).await {
                Ok((status, body)) if status.is_success() => return Ok(body),
                Ok((status, body)) if !may_repeat(status) => {
                    bail!(
                        "write-api answered {status}: {}",
                        String::from_utf8_lossy(&body)
                    )
                }
                Ok((status, _)) => format!("the answer was {status}"),
                Err(error) => error.to_string(),
            };
            if begun.elapsed() + pause > PATIENCE {
                bail!("write-api gave no good answer within {PATIENCE:?}: {fault}");
            }
            self.retries.fetch_add(1, Ordering::Relaxed);
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(Duration::from_secs(1));
        }
    }
}

async fn attempt(request: RequestBuilder) -> reqwest::Result<(StatusCode, Bytes)> {
    let answer = request.send().await?;
    Ok((answer.status(), answer.bytes().await?))
}

/// Whether the outcome is unknown, or the server asks to come again.
fn may_repeat(status: StatusCode) -> bool {
    status.is_server_error()
        || status == StatusCode::TOO_MANY_REQUESTS
        || status == StatusCode::REQUEST_TIMEOUT
}
