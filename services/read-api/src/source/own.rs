//! The reader's own posts, from Postgres: seen at once, without waiting for any delivery.

use database::{Error, Pool, posts};
use events::{Micros, UserId};

use crate::core::{
    fill::Load,
    merge::{Entry, Window},
};

/// One load of the reader's own posts made at or after `cut`.
pub(crate) async fn window(
    pool: &Pool,
    reader: UserId,
    load: Load,
    cut: Micros,
) -> Result<Window, Error> {
    let client = pool.get().await?;
    let limit = i64::try_from(load.rows).unwrap_or(i64::MAX);
    let posts = posts::by_author(&client, reader, load.before, cut, limit).await?;
    let exhausted = posts.len() < load.rows;
    let entries = posts
        .into_iter()
        .map(|post| Entry {
            post: post.id,
            author: post.author,
        })
        .collect();
    Ok(Window { entries, exhausted })
}
