//! A client of both APIs: one request, one outcome, nothing remembered.
//!
//! Owns requests, tokens and what an answer means. An unknown outcome is told
//! as such, and [`insist`] asks again. Does not own journals, nor when something is sent. Connections stay open between requests.

mod insist;
mod tokens;

use std::time::Duration;

use anyhow::Context;
use events::{Micros, PostId, UserId};
use judge::Change;
use reqwest::{RequestBuilder, StatusCode};
use serde::Deserialize;

pub use insist::insist;
pub use tokens::Tokens;

/// How long one request may take.
pub const TIMEOUT: Duration = Duration::from_secs(10);

/// Idle connections are kept for longer than a quiet stretch of a scenario.
const IDLE: Duration = Duration::from_secs(60);

/// Characters of an answer that are told.
const TOLD: usize = 300;

/// Acts as any account.
#[derive(Clone, Debug)]
pub struct Client {
    http: reqwest::Client,
    write: String,
    read: String,
    tokens: Tokens,
}

/// Why there is no good answer.
#[derive(Debug)]
pub enum Failure {
    /// The outcome is unknown, or the server asks to come again: the same may be sent again.
    Again(String),
    /// The server refused it; so it will every time.
    Refused(StatusCode, String),
    /// The request could not be made.
    Broken(anyhow::Error),
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Again(why) => f.write_str(why),
            Self::Refused(status, body) => write!(f, "the answer was {status}: {body}"),
            Self::Broken(error) => write!(f, "{error:#}"),
        }
    }
}

impl std::error::Error for Failure {}

/// A post that was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct Created {
    /// Its id.
    pub id: PostId,
    /// Its time, by Postgres's clock.
    pub created_us: Micros,
}

/// One page of a timeline.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Page {
    /// The posts, newest first.
    pub posts: Vec<Item>,
    /// Where the next page begins; none at the end.
    #[serde(default)]
    pub next_cursor: Option<String>,
}

/// One post of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct Item {
    /// Its id.
    pub id: PostId,
    /// Its author.
    pub author_id: UserId,
}

/// How far the delivery of a post has come.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Delivery {
    /// Everything is written.
    pub delivered: Option<bool>,
    /// Why it never will be, if so.
    pub dead_letter_reason: Option<String>,
    /// Rows that were written.
    pub rows: Option<i64>,
    /// When the first row was written.
    pub first_row_us: Option<Micros>,
    /// When the last one was.
    pub last_row_us: Option<Micros>,
}

#[derive(Deserialize)]
struct UserAnswer {
    id: UserId,
}

impl Client {
    /// A client of the APIs at these bases (`http://host:port`).
    ///
    /// # Errors
    /// When no HTTP client can be made.
    pub fn new(
        write: impl Into<String>,
        read: impl Into<String>,
        tokens: Tokens,
    ) -> anyhow::Result<Self> {
        let http = reqwest::Client::builder()
            .timeout(TIMEOUT)
            .pool_idle_timeout(IDLE)
            .tcp_nodelay(true)
            .build()
            .context("making an HTTP client")?;
        Ok(Self {
            http,
            write: write.into(),
            read: read.into(),
            tokens,
        })
    }

    /// Its tokens.
    pub const fn tokens(&self) -> &Tokens {
        &self.tokens
    }

    /// Posts once.
    ///
    /// # Errors
    /// [`Failure`].
    pub async fn post(&self, author: UserId, key: &str, text: &str) -> Result<Created, Failure> {
        let body = serde_json::json!({"client_post_id": key, "body": text});
        let request = self.http.post(format!("{}/v1/posts", self.write));
        let answer = self.send(request.json(&body), author).await?;
        read(&answer)
    }

    /// Deletes a post once.
    ///
    /// # Errors
    /// [`Failure`].
    pub async fn delete(&self, author: UserId, post: PostId) -> Result<(), Failure> {
        let request = self.http.delete(format!("{}/v1/posts/{post}", self.write));
        self.send(request, author).await.map(drop)
    }

    /// Follows or unfollows once.
    ///
    /// # Errors
    /// [`Failure`].
    pub async fn change(
        &self,
        change: Change,
        follower: UserId,
        followee: UserId,
    ) -> Result<(), Failure> {
        let url = format!("{}/v1/users/{followee}/follow", self.write);
        let request = match change {
            Change::Follow => self.http.put(url),
            Change::Unfollow => self.http.delete(url),
        };
        self.send(request, follower).await.map(drop)
    }

    /// One page of the reader's own timeline.
    ///
    /// # Errors
    /// [`Failure`].
    pub async fn page(
        &self,
        reader: UserId,
        cursor: Option<&str>,
        limit: u32,
    ) -> Result<Page, Failure> {
        let mut url = format!("{}/v1/timelines/home?limit={limit}", self.read);
        if let Some(cursor) = cursor {
            url.push_str("&cursor=");
            url.push_str(cursor);
        }
        read(&self.send(self.http.get(url), reader).await?)
    }

    /// Where a post is on its way.
    ///
    /// # Errors
    /// [`Failure`].
    pub async fn delivery(&self, asking: UserId, post: PostId) -> Result<Delivery, Failure> {
        let url = format!("{}/v1/posts/{post}/delivery", self.read);
        read(&self.send(self.http.get(url), asking).await?)
    }

    /// Makes an account, or finds the one that has this handle.
    ///
    /// # Errors
    /// [`Failure`].
    pub async fn create_user(&self, handle: &str) -> Result<UserId, Failure> {
        let body = serde_json::json!({ "handle": handle });
        let request = self
            .http
            .post(format!("{}/v1/users", self.write))
            .json(&body);
        let token = self.tokens.admin().map_err(Failure::Broken)?;
        let answer: UserAnswer = read(&attempt(request.bearer_auth(token)).await?)?;
        Ok(answer.id)
    }

    async fn send(&self, request: RequestBuilder, user: UserId) -> Result<Vec<u8>, Failure> {
        let token = self.tokens.user(user).map_err(Failure::Broken)?;
        attempt(request.bearer_auth(token)).await
    }
}

async fn attempt(request: RequestBuilder) -> Result<Vec<u8>, Failure> {
    let again = |error: reqwest::Error| Failure::Again(told(&error));
    let answer = request.send().await.map_err(again)?;
    let status = answer.status();
    let body = answer.bytes().await.map_err(again)?;
    if status.is_success() {
        return Ok(body.into());
    }
    let text: String = String::from_utf8_lossy(&body).chars().take(TOLD).collect();
    Err(if may_repeat(status) {
        Failure::Again(format!("the answer was {status}: {text}"))
    } else {
        Failure::Refused(status, text)
    })
}

/// The error and what is behind it: the outer text alone says only that something failed.
fn told(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        text.push_str(": ");
        text.push_str(&inner.to_string());
        source = inner.source();
    }
    text
}

fn read<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T, Failure> {
    serde_json::from_slice(body).map_err(|error| {
        let text: String = String::from_utf8_lossy(body).chars().take(TOLD).collect();
        Failure::Broken(anyhow::Error::from(error).context(format!("reading the answer {text}")))
    })
}

/// Whether the outcome is unknown, or the server asks to come again.
fn may_repeat(status: StatusCode) -> bool {
    status.is_server_error()
        || status == StatusCode::TOO_MANY_REQUESTS
        || status == StatusCode::REQUEST_TIMEOUT
}
