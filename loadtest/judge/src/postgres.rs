//! What Postgres holds: every post, deleted ones included, and the follows from before a run.

use std::collections::HashMap;

use anyhow::Context;
use database::Pool;
use events::{Micros, PostId, UserId};
use futures::TryStreamExt;

use crate::journal::Journal;

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

/// Reads every post above this one.
///
/// # Errors
/// When Postgres does not answer.
pub async fn posts(pool: &Pool, above: PostId) -> anyhow::Result<Vec<StoredPost>> {
    const SQL: &str = "select id, author_id, client_post_id, deleted_at is not null
        from tideline.posts where id > $1";
    let client = pool.get().await.context("reading every post")?;
    let rows = client
        .query_raw(SQL, [above.0])
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

/// Authors whose followers are read at once.
const AUTHORS: usize = 100;

/// Adds the follows from before the run to a journal that says that Postgres has them.
///
/// # Errors
/// When Postgres does not answer.
pub async fn add_base(journal: &mut Journal, pool: &Pool) -> anyhow::Result<()> {
    let Some(moment) = journal.base_before() else {
        return Ok(());
    };
    let authors: Vec<UserId> = journal.authors().into_iter().collect();
    let client = pool.get().await.context("reading follows")?;
    for authors in authors.chunks(AUTHORS) {
        let mut found = base_of(&client, authors, moment).await?;
        for &author in authors {
            journal.add_base(author, found.remove(&author).unwrap_or_default());
        }
    }
    Ok(())
}

async fn base_of(
    client: &database::Client,
    authors: &[UserId],
    moment: Micros,
) -> anyhow::Result<HashMap<UserId, Vec<UserId>>> {
    const SQL: &str = "select followee_id, follower_id from tideline.follows
        where followee_id = any($1) and edge_us <= $2";
    let authors: Vec<i64> = authors.iter().map(|author| author.0).collect();
    let parameters: [&(dyn tokio_postgres::types::ToSql + Sync); 2] = [&authors, &moment.0];
    let rows = client
        .query_raw(SQL, parameters)
        .await
        .context("reading follows")?;
    let mut found: HashMap<UserId, Vec<UserId>> = HashMap::new();
    let mut rows = std::pin::pin!(rows);
    while let Some(row) = rows.try_next().await.context("reading follows")? {
        let (followee, follower) = (UserId(row.try_get(0)?), UserId(row.try_get(1)?));
        found.entry(followee).or_default().push(follower);
    }
    Ok(found)
}
