//! The judge at the end of a run: stores when their addresses are known, and walks through the API.

use std::collections::BTreeSet;

use anyhow::Context;
use database::Pool;
use events::UserId;
use fastrand::Rng;
use futures::{StreamExt, TryStreamExt, stream};
use judge::{Journal, Verdict, Walker, compare_walk, judge_at_rest};
use timeline_store::CqlTimelines;

use crate::accounts::Accounts;
use crate::client::Tokens;
use crate::plan::Population;

/// Readers picked at random.
const RANDOM_READERS: usize = 40;

/// Of those whose follows changed, so many more.
const CHANGED_READERS: usize = 40;

/// Authors, who see their own posts too.
const AUTHORS: usize = 10;

/// Walks at once.
const AT_ONCE: usize = 4;

/// Posts a page.
const PAGE: usize = 100;

/// Where the judge looks.
#[derive(Debug)]
pub struct Places<'a> {
    /// Posts, if the address is known.
    pub pool: Option<&'a Pool>,
    /// Rows, if the address is known.
    pub store: Option<&'a CqlTimelines>,
    /// `http://host:port` of read-api.
    pub read_api: String,
    /// Tokens of any reader.
    pub tokens: &'a Tokens,
}

/// Judges what is at rest, and walks of a sample of readers.
///
/// # Errors
/// When a store or the API does not answer.
pub async fn judge(
    journal: &mut Journal,
    places: Places<'_>,
    population: &Population,
    accounts: &Accounts,
    rng: &mut Rng,
) -> anyhow::Result<Verdict> {
    let mut verdict = match (places.pool, places.store) {
        (Some(pool), Some(store)) => judge_at_rest(journal, pool, store)
            .await
            .context("judging the stores")?,
        _ => Verdict {
            posts: journal.accepted() as u64,
            ..Verdict::default()
        },
    };
    let readers = readers(journal, population, accounts, rng);
    let walker = Walker::new(places.read_api, PAGE)?;
    let walks = stream::iter(readers).map(|reader| {
        let (walker, tokens) = (&walker, places.tokens);
        async move { walker.walk(reader, &tokens.user(reader)?).await }
    });
    let mut walks = walks.buffer_unordered(AT_ONCE);
    while let Some(walk) = walks.try_next().await? {
        compare_walk(journal, &walk, &mut verdict);
    }
    Ok(verdict)
}

fn readers(
    journal: &Journal,
    population: &Population,
    accounts: &Accounts,
    rng: &mut Rng,
) -> BTreeSet<UserId> {
    let ordinary = population.graph().shape().users;
    let mut readers: BTreeSet<UserId> = (0..RANDOM_READERS)
        .map(|_| accounts.id(rng.u64(1..=ordinary)))
        .collect();
    readers.extend(rng.choose_multiple(journal.changed_readers(), CHANGED_READERS));
    let authors: BTreeSet<UserId> = journal.posts().iter().map(|post| post.author).collect();
    readers.extend(rng.choose_multiple(authors, AUTHORS));
    readers.extend(population.hot_reader().map(|hot| accounts.id(hot)));
    readers
}
