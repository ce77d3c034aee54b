//! Who has the post in the timeline, and who should.

use database::{Client, clock, follows, follows::Direction, posts::Post};
use events::{Micros, UserId};
use serde::Serialize;
use timeline_store::{CqlTimelines, ScannedRow};

use crate::{
    audience::{Claim, Pair, claim},
    config::Config,
    error::Error,
    point_reads,
};

use super::postgres;

/// Followers read at once.
const PAGE: usize = 500;
/// Followers looked at without `--full`, and former ones.
const SAMPLE: u64 = 1_000;
/// Timelines named at most.
const NAMED: usize = 10;

/// What was found.
#[derive(Debug, Default, Serialize)]
pub(super) struct Timelines {
    /// Present followers that were looked at.
    pub(super) followers: u64,
    /// Former followers that were looked at.
    pub(super) former: u64,
    /// Whether there are more of them.
    pub(super) sampled: bool,
    /// Whether the post is past retention, so that nobody must have it any more.
    pub(super) past_retention: bool,
    /// Followers that must have it: the edge is older than the post.
    pub(super) must: u64,
    /// Those of them that have it.
    pub(super) must_have: u64,
    /// Others that have it and may.
    pub(super) may_have: u64,
    /// Former followers that have it and must not.
    pub(super) must_not_have: u64,
    /// Some that must have it and have not; for a deleted post, some that still have it.
    pub(super) wrong: Vec<UserId>,
    /// One of the rows.
    pub(super) example: Option<Row>,
}

/// A row of the store.
#[derive(Debug, Serialize)]
pub(super) struct Row {
    /// Whose timeline.
    pub(super) owner: UserId,
    /// Its write timestamp.
    pub(super) write_us: Micros,
    /// Seconds that are left of it.
    pub(super) ttl_seconds: Option<i32>,
}

/// Looks at the timelines of present and former followers.
///
/// # Errors
/// When Postgres or the store does not answer.
pub(super) async fn look(
    client: &Client,
    store: &CqlTimelines,
    post: &Post,
    config: &Config,
    full: bool,
) -> Result<Timelines, Error> {
    let limit = if full { u64::MAX } else { SAMPLE };
    let expires_us = post.created_us.plus(config.timelines.retention.micros());
    let mut found = Timelines {
        past_retention: expires_us <= clock::now(client).await?,
        ..Timelines::default()
    };
    let mut after = None;
    while found.followers < limit {
        let page = follows::list(client, post.author, Direction::Followers, after, size()).await?;
        let pairs = page.iter().map(|follower| {
            let pair = Pair {
                edge_us: Some(follower.edge_us),
                unfollow_us: None,
            };
            (follower.user, pair)
        });
        found.followers += page.len() as u64;
        found.take(store, post, pairs.collect()).await?;
        if page.len() < PAGE {
            break;
        }
        after = page.last().map(|follower| follower.user);
    }
    found.sampled = found.followers >= limit;
    after = None;
    while found.former < limit {
        let page = postgres::ends(client, post.author, after, size()).await?;
        let pairs = page.iter().map(|(user, unfollow_us)| {
            let pair = Pair {
                edge_us: None,
                unfollow_us: Some(*unfollow_us),
            };
            (*user, pair)
        });
        found.former += page.len() as u64;
        found.take(store, post, pairs.collect()).await?;
        if page.len() < PAGE {
            break;
        }
        after = page.last().map(|(user, _)| *user);
    }
    found.sampled |= found.former >= limit;
    Ok(found)
}

fn size() -> i64 {
    i64::try_from(PAGE).unwrap_or(i64::MAX)
}

impl Timelines {
    async fn take(
        &mut self,
        store: &CqlTimelines,
        post: &Post,
        pairs: Vec<(UserId, Pair)>,
    ) -> Result<(), Error> {
        let keys = pairs.iter().map(|(owner, _)| (*owner, post.id)).collect();
        let rows = point_reads::rows(store, keys).await?;
        for ((owner, pair), row) in pairs.into_iter().zip(rows) {
            self.count(post, owner, pair, row);
        }
        Ok(())
    }

    fn count(&mut self, post: &Post, owner: UserId, pair: Pair, row: Option<ScannedRow>) {
        let is_gone = post.deleted_us.is_some();
        let claim = match claim(pair, post.created_us) {
            Claim::Must if is_gone || self.past_retention => Claim::May,
            other => other,
        };
        let has = row.is_some();
        let counted = match (claim, has) {
            (Claim::Must, true) => Some(&mut self.must_have),
            (Claim::May, true) => Some(&mut self.may_have),
            (Claim::MustNot, true) => Some(&mut self.must_not_have),
            (_, false) => None,
        };
        if let Some(counted) = counted {
            *counted += 1;
        }
        self.must += u64::from(claim == Claim::Must);
        let is_wrong = if is_gone {
            has
        } else {
            claim == Claim::Must && !has
        };
        if is_wrong && self.wrong.len() < NAMED {
            self.wrong.push(owner);
        }
        if let (None, Some(row)) = (&self.example, row) {
            self.example = Some(Row {
                owner,
                write_us: row.write_us,
                ttl_seconds: row.ttl_seconds,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use events::PostId;

    use super::*;

    fn post(deleted_us: Option<i64>) -> Post {
        Post {
            id: PostId(1),
            author: UserId(2),
            client_post_id: String::new(),
            body: String::new(),
            created_us: Micros(100_000_000),
            deleted_us: deleted_us.map(Micros),
        }
    }

    fn row(owner: i64) -> ScannedRow {
        ScannedRow {
            owner: UserId(owner),
            post: PostId(1),
            author: UserId(2),
            write_us: Micros(100_000_000),
            ttl_seconds: Some(5),
        }
    }

    fn counted(post: &Post, past_retention: bool) -> Timelines {
        let mut found = Timelines {
            past_retention,
            ..Timelines::default()
        };
        let edge = |us| Pair {
            edge_us: Some(Micros(us)),
            unfollow_us: None,
        };
        found.count(post, UserId(3), edge(50), Some(row(3)));
        found.count(post, UserId(4), edge(50), None);
        found.count(post, UserId(5), edge(150_000_000), Some(row(5)));
        let ended = Pair {
            edge_us: None,
            unfollow_us: Some(Micros(60)),
        };
        found.count(post, UserId(6), ended, Some(row(6)));
        found
    }

    #[test]
    fn timelines_are_counted_by_what_the_promise_says() {
        let found = counted(&post(None), false);
        assert_eq!((found.must, found.must_have), (2, 1));
        assert_eq!((found.may_have, found.must_not_have), (1, 1));
        assert_eq!(found.wrong, [UserId(4)]);
        assert_eq!(found.example.map(|row| row.owner), Some(UserId(3)));
    }

    #[test]
    fn nobody_must_have_what_is_deleted_or_past_retention() {
        let found = counted(&post(None), true);
        assert_eq!((found.must, found.may_have, found.wrong.len()), (0, 2, 0));
        let found = counted(&post(Some(200_000_000)), false);
        assert_eq!(found.must, 0);
        assert_eq!(found.wrong, [UserId(3), UserId(5), UserId(6)]);
    }
}
