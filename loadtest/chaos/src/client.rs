//! A client of write-api: same key until there is an answer.

use std::time::Duration;

use anyhow::{Context, ensure};
use events::{PostId, UserId};
use http_api::token::{Claims, Key, mint};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

/// Longer than any restart of a server takes here.
const PATIENCE: Duration = Duration::from_secs(90);
const PAUSE: Duration = Duration::from_millis(100);

/// Sends posts with a bearer token of their author.
#[derive(Clone, Debug)]
pub struct Client {
    http: reqwest::Client,
    url: String,
    key: Key,
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
}

impl Client {
    /// A client of the API at `url`, whose tokens are signed with `secret`.
    ///
    /// # Errors
    /// When the secret is too short or the client cannot be made.
    pub fn new(url: String, secret: &str) -> anyhow::Result<Self> {
        let http = reqwest::Client::builder()
            .timeout(Duration::from_secs(10))
            .build()?;
        Ok(Self {
            http,
            url,
            key: Key::new(secret.as_bytes())?,
        })
    }

    /// Posts as `author`, again and again with the same key, until it is acknowledged.
    ///
    /// # Errors
    /// When it is refused, or not acknowledged in 90 s.
    pub async fn post(&self, author: UserId, client_post_id: &str) -> anyhow::Result<Posted> {
        let deadline = Instant::now() + PATIENCE;
        let mut failures = 0;
        loop {
            match self.attempt(author, client_post_id).await {
                Ok(response) if response.status().is_success() => {
                    let replayed = response.status() == reqwest::StatusCode::OK;
                    return Ok(Posted {
                        id: post_id(response).await?,
                        author,
                        failures,
                        replayed,
                    });
                }
                Ok(response) if !response.status().is_server_error() => {
                    anyhow::bail!("refused: {} {}", response.status(), response.text().await?);
                }
                _ => failures += 1,
            }
            ensure!(
                Instant::now() < deadline,
                "{client_post_id} was not acknowledged in {PATIENCE:?}"
            );
            sleep(PAUSE).await;
        }
    }

    /// One attempt.
    ///
    /// # Errors
    /// When there is no answer.
    pub async fn attempt(
        &self,
        author: UserId,
        client_post_id: &str,
    ) -> anyhow::Result<reqwest::Response> {
        let body = json!({ "client_post_id": client_post_id, "body": format!("text of {client_post_id}") });
        let request = self
            .http
            .post(format!("{}/v1/posts", self.url))
            .bearer_auth(self.token(author)?)
            .json(&body);
        Ok(request.send().await?)
    }

    /// Deletes a post.
    ///
    /// # Errors
    /// When it is not acknowledged.
    pub async fn delete(&self, posted: Posted) -> anyhow::Result<()> {
        let url = format!("{}/v1/posts/{}", self.url, posted.id);
        let response = self
            .http
            .delete(url)
            .bearer_auth(self.token(posted.author)?)
            .send()
            .await?;
        ensure!(
            response.status().is_success(),
            "delete was answered with {}",
            response.status()
        );
        Ok(())
    }

    fn token(&self, user: UserId) -> anyhow::Result<String> {
        // 2100-01-01: no test outlives it.
        let claims = Claims {
            sub: user.to_string(),
            exp: 4_102_444_800,
            scope: None,
        };
        mint(&self.key, &claims).context("mint a token")
    }
}

async fn post_id(response: reqwest::Response) -> anyhow::Result<PostId> {
    let body: Value = response.json().await?;
    let id = body
        .get("id")
        .and_then(Value::as_str)
        .with_context(|| format!("no id in {body}"))?;
    Ok(id.parse()?)
}
