//! Follower pages from Postgres: edges, the post's state and Postgres's time in one snapshot.

use std::time::Instant;

use database::{Pool, follows};
use events::UserId;

use crate::core::{
    delivery::{Page, PostState},
    plan::Post,
    row::Edge,
};

/// Reads follower pages by keyset.
#[derive(Clone, Debug)]
pub(crate) struct Followers {
    pool: Pool,
    page_rows: i64,
}

/// A page and the instant at which Postgres's time in it was read (D-7).
#[derive(Debug)]
pub(crate) struct ReadPage {
    pub(crate) page: Page,
    pub(crate) read_at: Instant,
}

impl Followers {
    pub(crate) fn new(pool: Pool, page_rows: usize) -> Self {
        Self {
            pool,
            page_rows: i64::try_from(page_rows).unwrap_or(i64::MAX),
        }
    }

    /// The page of the post's followers behind `after`.
    pub(crate) async fn page(
        &self,
        post: &Post,
        after: Option<UserId>,
    ) -> Result<ReadPage, database::Error> {
        let client = self.pool.get().await?;
        let found = follows::follower_page(&client, post.id, after, self.page_rows).await?;
        let read_at = Instant::now();
        let state = found
            .post
            .map(|post| (post.author, post.post_us, post.deleted));
        let edges = found
            .edges
            .iter()
            .map(|edge| Edge {
                follower: edge.follower,
                edge_us: edge.edge_us,
            })
            .collect();
        let page = Page {
            post: PostState::judge(post, state),
            pg_now: found.pg_now,
            edges,
        };
        Ok(ReadPage { page, read_at })
    }
}
