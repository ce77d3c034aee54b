//! What Postgres says about rows now: their bodies, and which of them the reader may see.

use std::collections::{BTreeSet, HashMap};

use database::{
    Error, Pool, follows,
    posts::{self, Post},
};
use events::{Micros, PostId, UserId};

use crate::core::merge::Entry;

/// The posts of these rows that are there, not deleted (D-8), made at or after `cut`, and by the
/// reader or somebody the reader follows now.
pub(crate) async fn visible(
    pool: &Pool,
    reader: UserId,
    entries: &[Entry],
    cut: Micros,
) -> Result<HashMap<PostId, Post>, Error> {
    if entries.is_empty() {
        return Ok(HashMap::new());
    }
    let client = pool.get().await?;
    let ids: Vec<PostId> = entries.iter().map(|entry| entry.post).collect();
    let mut posts = posts::get_many(&client, &ids).await?;
    posts.retain(|post| post.deleted_us.is_none() && post.created_us >= cut);

    let others: BTreeSet<UserId> = posts
        .iter()
        .map(|post| post.author)
        .filter(|&author| author != reader)
        .collect();
    let others: Vec<UserId> = others.into_iter().collect();
    let followed = if others.is_empty() {
        Vec::new()
    } else {
        follows::followed_among(&client, reader, &others).await?
    };
    posts.retain(|post| post.author == reader || followed.contains(&post.author));
    Ok(posts.into_iter().map(|post| (post.id, post)).collect())
}
