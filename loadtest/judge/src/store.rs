//! What the timeline store holds: every row, in a form small enough to compare at once.

use std::collections::HashMap;

use anyhow::Context;
use events::{PostId, UserId};
use timeline_store::{ScannedRow, TimelineStore};

/// Rows fetched at once.
const PAGE_ROWS: usize = 5_000;

/// Every row of the store, by post.
#[derive(Clone, Debug, Default)]
pub struct Rows {
    owners: HashMap<PostId, Vec<UserId>>,
    /// Author named by the first row of the post, and rows that name another one.
    authors: HashMap<PostId, UserId>,
    torn: Vec<(UserId, PostId, UserId)>,
    total: u64,
}

impl Rows {
    /// Takes rows in any order.
    pub fn add(&mut self, rows: impl IntoIterator<Item = ScannedRow>) {
        for row in rows {
            self.total += 1;
            self.owners.entry(row.post).or_default().push(row.owner);
            let author = *self.authors.entry(row.post).or_insert(row.author);
            if author != row.author {
                self.torn.push((row.owner, row.post, row.author));
            }
        }
    }

    /// Makes lookups possible; to be called after the last [`Rows::add`].
    pub fn seal(&mut self) {
        for owners in self.owners.values_mut() {
            owners.sort_unstable();
        }
    }

    /// How many rows there are.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// The posts that have rows, each with the author that its first row names.
    pub(crate) fn posts(&self) -> impl Iterator<Item = (PostId, UserId)> + '_ {
        self.authors.iter().map(|(&post, &author)| (post, author))
    }

    /// The owners of the rows of one post, in ascending order.
    pub(crate) fn owners(&self, post: PostId) -> &[UserId] {
        self.owners.get(&post).map_or(&[], Vec::as_slice)
    }

    /// Rows that name another author than the first row of their post.
    pub(crate) fn torn(&self) -> &[(UserId, PostId, UserId)] {
        &self.torn
    }
}

/// Reads every row.
///
/// # Errors
/// When the store does not answer.
pub async fn read<S: TimelineStore>(store: &S) -> anyhow::Result<Rows> {
    let mut rows = Rows::default();
    store
        .scan(PAGE_ROWS, |page| rows.add(page))
        .await
        .context("reading every timeline row")?;
    rows.seal();
    Ok(rows)
}

/// Counts the rows of one post by reading the whole store.
///
/// # Errors
/// When the store does not answer.
pub async fn count_of_post<S: TimelineStore>(store: &S, post: PostId) -> anyhow::Result<u64> {
    let mut count = 0;
    let add =
        |page: Vec<ScannedRow>| count += page.iter().filter(|row| row.post == post).count() as u64;
    store
        .scan(PAGE_ROWS, add)
        .await
        .context("counting the rows of a post")?;
    Ok(count)
}
