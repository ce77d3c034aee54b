//! A full walk through a reader's home timeline, as a client would make it: page by page, by
//! cursor, until there is none.
//!
//! Promise: a broken cursor does not keep the walk going for ever. It ends when a cursor comes
//! again, or after a fixed number of posts.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use events::{PostId, UserId};
use serde::Deserialize;

/// How long one answer may take.
const TIMEOUT: Duration = Duration::from_secs(10);

/// How long a page of a walk is asked for again.
const PATIENCE: Duration = Duration::from_secs(30);

/// Between two attempts.
const PAUSE: Duration = Duration::from_millis(100);

/// A walk ends after so many posts.
const MAX_POSTS: usize = 200_000;

/// One post on a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// The post.
    pub post: PostId,
    /// Who wrote it.
    pub author: UserId,
}

/// How a walk ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// At the end of the timeline.
    Complete,
    /// A cursor came again, or there was no end.
    GivenUp,
}

/// What one reader saw.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Walk {
    /// Whose timeline.
    pub reader: UserId,
    /// In the order the pages gave them.
    pub seen: Vec<Seen>,
    /// How it ended.
    pub ending: Ending,
}

/// Walks through timelines.
#[derive(Clone, Debug)]
pub struct Walker {
    http: reqwest::Client,
    base: String,
    limit: usize,
}

#[derive(Deserialize)]
struct Page {
    posts: Vec<Item>,
    #[serde(default)]
    next_cursor: Option<String>,
}

#[derive(Deserialize)]
struct Item {
    id: PostId,
    author_id: UserId,
}

/// Why a page did not come.
struct Missed {
    why: anyhow::Error,
    /// The next attempt may get it.
    passes: bool,
}

impl Walker {
    /// A walker on the read API at `base` (`http://host:port`), `limit` posts a page.
    ///
    /// # Errors
    /// When no HTTP client can be made.
    pub fn new(base: impl Into<String>, limit: usize) -> anyhow::Result<Self> {
        let http = reqwest::Client::builder()
            .timeout(TIMEOUT)
            .build()
            .context("making an HTTP client")?;
        Ok(Self {
            http,
            base: base.into(),
            limit,
        })
    }

    /// Walks from the newest post of `reader`, whose bearer token this is, to the last. A page that
    /// is answered with a 5xx, or not in time, is asked for again for 30 s: a server behind the API
    /// may stand still for a moment, and by the same cursor the walk shows the same.
    ///
    /// # Errors
    /// When nobody listens, a page does not come, or is not what a page looks like.
    pub async fn walk(&self, reader: UserId, token: &str) -> anyhow::Result<Walk> {
        let mut met = Vec::new();
        let mut cursors = HashSet::new();
        let mut cursor: Option<String> = None;
        loop {
            let page = self
                .awaited_page(token, cursor.as_deref())
                .await
                .with_context(|| format!("walking through the timeline of {reader}"))?;
            met.extend(seen(&page));
            let Some(next) = page.next_cursor else {
                return Ok(Walk {
                    reader,
                    seen: met,
                    ending: Ending::Complete,
                });
            };
            if !cursors.insert(next.clone()) || met.len() > MAX_POSTS {
                return Ok(Walk {
                    reader,
                    seen: met,
                    ending: Ending::GivenUp,
                });
            }
            cursor = Some(next);
        }
    }

    /// The newest posts of the bearer of this token, asked for once.
    ///
    /// # Errors
    /// When they do not come, or are not what a page looks like.
    pub async fn first_page(&self, token: &str) -> anyhow::Result<Vec<Seen>> {
        let page = self.page(token, None).await;
        Ok(seen(&page.map_err(|missed| missed.why)?).collect())
    }

    async fn awaited_page(&self, token: &str, cursor: Option<&str>) -> anyhow::Result<Page> {
        let begun = Instant::now();
        loop {
            match self.page(token, cursor).await {
                Err(missed) if missed.passes && begun.elapsed() < PATIENCE => {
                    tokio::time::sleep(PAUSE).await;
                }
                page => return page.map_err(|missed| missed.why),
            }
        }
    }

    async fn page(&self, token: &str, cursor: Option<&str>) -> Result<Page, Missed> {
        let mut url = format!("{}/v1/timelines/home?limit={}", self.base, self.limit);
        if let Some(cursor) = cursor {
            url.push_str("&cursor=");
            url.push_str(cursor);
        }
        let asked = self.http.get(&url).bearer_auth(token).send().await;
        // Where nobody listens, nobody answers the next time either.
        let answer = asked.map_err(|error| Missed {
            passes: !error.is_connect(),
            why: anyhow!(error).context("asking for a page"),
        })?;
        let status = answer.status();
        let body = answer.bytes().await.map_err(|error| Missed {
            passes: true,
            why: anyhow!(error).context("reading a page"),
        })?;
        if !status.is_success() {
            let said = String::from_utf8_lossy(&body);
            return Err(Missed {
                passes: status.is_server_error(),
                why: anyhow!("{url} answered {status}: {said}"),
            });
        }
        serde_json::from_slice(&body).map_err(|error| Missed {
            passes: false,
            why: anyhow!(error).context(format!("reading the page of {url}")),
        })
    }
}

fn seen(page: &Page) -> impl Iterator<Item = Seen> + '_ {
    page.posts.iter().map(|item| Seen {
        post: item.id,
        author: item.author_id,
    })
}
