//! What Postgres holds: every post, deleted ones included.

use anyhow::Context;
use database::Pool;
use events::{PostId, UserId};
use futures::TryStreamExt;

/// One row of the table of posts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredPost {
    /// Its id.
    pub id: PostId,
    /// Who wrote it.
    pub author: UserId,
    /// The client's key.
    pub client_post_id: String,
    /// Whether it is marked as deleted.
    pub deleted: bool,
}

/// Reads every post.
///
/// # Errors
/// When Postgres does not answer.
pub async fn posts(pool: &Pool) -> anyhow::Result<Vec<StoredPost>> {
    const SQL: &str =
        "select id, author_id, client_post_id, deleted_at is not null from tideline.posts";
    let client = pool.get().await.context("reading every post")?;
    let none: [&(dyn tokio_postgres::types::ToSql + Sync); 0] = [];
    let rows = client
        .query_raw(SQL, none)
        .await
        .context("reading every post")?;
    let read = |row: tokio_postgres::Row| {
        Ok(StoredPost {
            id: PostId(row.try_get(0)?),
            author: UserId(row.try_get(1)?),
            client_post_id: row.try_get(2)?,
            deleted: row.try_get(3)?,
        })
    };
    rows.and_then(|row| std::future::ready(read(row)))
        .try_collect()
        .await
        .context("reading every post")
}
