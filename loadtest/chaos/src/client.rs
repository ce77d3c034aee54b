//! A client of write-api: the same operation until there is an answer, and a journal of all of
//! them.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use anyhow::{Context, bail, ensure};
use events::{PostId, UserId};
use http_api::token::{Claims, Key, mint};
use judge::{Change, Journal, PostRef};
use reqwest::{RequestBuilder, Response, StatusCode};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

/// Longer than any restart of a server takes here.
const PATIENCE: Duration = Duration::from_secs(90);
const PAUSE: Duration = Duration::from_millis(100);

/// Acts as any account, and notes in the journal what it sends and what it is told.
#[derive(Clone, Debug)]
pub struct Client {
    http: reqwest::Client,
    url: String,
    key: Key,
    journal: Arc<Mutex<Journal>>,
}

/// A post that was acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Posted {
    /// Its id.
    pub id: PostId,
    /// Its author.
    pub author: UserId,
    /// How many attempts had no answer or a 5xx.
    pub failures: u32,
    /// Whether the answer said 200: an earlier attempt had made the post.
    pub replayed: bool,
    entry: PostRef,
}

impl Client {
    /// A client of the API at `url`, whose tokens are signed with `secret`. The journal knows what
    /// was loaded before.
    ///
    /// # Errors
    /// When the secret is too short or the client cannot be made.
    pub fn new(url: String, secret: &str, journal: Journal) -> anyhow::Result<Self> {
        let http = reqwest::Client::builder()
            .timeout(Duration::from_secs(10))
            .build()?;
        Ok(Self {
            http,
            url,
            key: Key::new(secret.as_bytes())?,
            journal: Arc::new(Mutex::new(journal)),
        })
    }

    /// The journal; not to be held over an await.
    pub fn journal(&self) -> MutexGuard<'_, Journal> {
        self.journal.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Posts as `author`, again and again with the same key, until it is acknowledged.
    ///
    /// # Errors
    /// When it is refused, or not acknowledged in 90 s.
    pub async fn post(&self, author: UserId, client_post_id: &str) -> anyhow::Result<Posted> {
        let entry = self.journal().post_sent(author, client_post_id);
        let request = self.request_post(author, client_post_id)?;
        let (response, failures) = insist(client_post_id, request).await?;
        let replayed = response.status() == StatusCode::OK;
        let id = post_id(response).await?;
        self.journal().post_acked(entry, id);
        Ok(Posted {
            id,
            author,
            failures,
            replayed,
            entry,
        })
    }

    /// One attempt to post, which the journal does not learn of.
    ///
    /// # Errors
    /// When there is no answer.
    pub async fn attempt(&self, author: UserId, client_post_id: &str) -> anyhow::Result<Response> {
        Ok(self.request_post(author, client_post_id)?.send().await?)
    }

    /// Deletes a post, again and again until that is acknowledged.
    ///
    /// # Errors
    /// When it is refused, or not acknowledged in 90 s.
    pub async fn delete(&self, posted: Posted) -> anyhow::Result<()> {
        self.journal().delete_sent(posted.entry);
        let url = format!("{}/v1/posts/{}", self.url, posted.id);
        let request = self.http.delete(url);
        let request = request.bearer_auth(self.token(posted.author)?);
        let _empty = insist("the end of a post", request).await?;
        self.journal().delete_acked(posted.entry);
        Ok(())
    }

    /// Follows or unfollows, again and again until that is acknowledged. Changes of one edge have
    /// to be made one after the other.
    ///
    /// # Errors
    /// When it is refused, or not acknowledged in 90 s.
    pub async fn change(
        &self,
        change: Change,
        follower: UserId,
        followee: UserId,
    ) -> anyhow::Result<()> {
        let edge = self.journal().edge_sent(change, follower, followee);
        let url = format!("{}/v1/users/{followee}/follow", self.url);
        let request = match change {
            Change::Follow => self.http.put(url),
            Change::Unfollow => self.http.delete(url),
        };
        let request = request.bearer_auth(self.token(follower)?);
        let _empty = insist("another edge", request).await?;
        self.journal().edge_acked(edge);
        Ok(())
    }

    /// A token that lets its bearer act as `user`.
    ///
    /// # Errors
    /// When it cannot be signed.
    pub fn token(&self, user: UserId) -> anyhow::Result<String> {
        // 2100-01-01: no test outlives it.
        let claims = Claims {
            sub: user.to_string(),
            exp: 4_102_444_800,
            scope: None,
        };
        mint(&self.key, &claims).context("mint a token")
    }

    fn request_post(&self, author: UserId, client_post_id: &str) -> anyhow::Result<RequestBuilder> {
        let body = json!({ "client_post_id": client_post_id, "body": format!("text of {client_post_id}") });
        let request = self.http.post(format!("{}/v1/posts", self.url));
        Ok(request.bearer_auth(self.token(author)?).json(&body))
    }
}

/// Sends until there is an answer that says what happened; tells how many said nothing.
async fn insist(what: &str, request: RequestBuilder) -> anyhow::Result<(Response, u32)> {
    let deadline = Instant::now() + PATIENCE;
    let mut failures = 0;
    loop {
        let attempt = request.try_clone().context("a request can be repeated")?;
        match attempt.send().await {
            Ok(response) if response.status().is_success() => return Ok((response, failures)),
            Ok(response) if !response.status().is_server_error() => {
                bail!(
                    "{what} was refused: {} {}",
                    response.status(),
                    response.text().await?
                );
            }
            _ => failures += 1,
        }
        ensure!(
            Instant::now() < deadline,
            "{what} was not acknowledged in {PATIENCE:?}"
        );
        sleep(PAUSE).await;
    }
}

async fn post_id(response: Response) -> anyhow::Result<PostId> {
    let body: Value = response.json().await?;
    let id = body
        .get("id")
        .and_then(Value::as_str)
        .with_context(|| format!("no id in {body}"))?;
    Ok(id.parse()?)
}
