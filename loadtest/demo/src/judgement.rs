//! Everything that is looked at when the run is at rest.

use anyhow::Context;
use database::Pool;
use events::UserId;
use fastrand::Rng;
use futures::{StreamExt, TryStreamExt, stream};
use judge::{Verdict, Walker, compare_walk, judge_at_rest};
use timeline_store::CqlTimelines;

use crate::api::Api;
use crate::graph::Graph;

/// Readers picked at random who are followed through the API.
const RANDOM_READERS: usize = 40;

/// Of those whose follows changed, so many more.
const CHANGED_READERS: usize = 40;

/// Authors, who see their own posts too.
const AUTHORS: usize = 10;

/// Walks at once.
const CONCURRENT: usize = 4;

/// What delivery cost and took.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Cost {
    /// Rows that can have been written for posts that were deleted later.
    pub(crate) rows_of_deleted: u64,
    /// Post → last follower, in seconds: median and 99th percentile.
    pub(crate) to_last_follower: Option<(f64, f64)>,
}

/// Judges the stores and the walks of a sample of readers.
pub(crate) async fn judge(
    api: &Api,
    pool: &Pool,
    store: &CqlTimelines,
    graph: &Graph,
    walker: &Walker,
    rng: &mut Rng,
) -> anyhow::Result<Verdict> {
    // Nothing is sent any more, so the copy is the whole journal.
    let mut journal = api.journal().clone();
    let mut verdict = judge_at_rest(&mut journal, pool, store).await?;
    let mut readers = sample(graph.users(), RANDOM_READERS, rng);
    readers.extend(sample(journal.changed_readers(), CHANGED_READERS, rng));
    readers.extend(sample(graph.authors.iter().copied(), AUTHORS, rng));
    readers.sort_unstable();
    readers.dedup();
    let walks = stream::iter(readers)
        .map(|reader| async move { walker.walk(reader, &api.token(reader)?).await });
    let mut walks = walks.buffer_unordered(CONCURRENT);
    while let Some(walk) = walks.try_next().await? {
        compare_walk(&journal, &walk, &mut verdict);
    }
    Ok(verdict)
}

/// Reads what delivery cost and took.
pub(crate) async fn cost(api: &Api, pool: &Pool) -> anyhow::Result<Cost> {
    const SQL: &str = "select percentile_cont(array[0.5, 0.99]) within group
            (order by (d.last_row_us - tideline.micros(p.created_at)) / 1e6)
        from tideline.post_delivery d
        join tideline.posts p on p.id = d.post_id
        join tideline.outbox o on o.id = d.event_id and o.type = 'tideline.post.created.v1'";
    let client = pool.get().await.context("reading what delivery cost")?;
    let row = client
        .query_one(SQL, &[])
        .await
        .context("reading what delivery cost")?;
    let quantiles: Option<Vec<Option<f64>>> = row.try_get(0)?;
    let to_last_follower = match quantiles.as_deref() {
        Some(&[Some(median), Some(high)]) => Some((median, high)),
        _ => None,
    };
    let journal = api.journal();
    let deleted = journal
        .posts()
        .iter()
        .filter(|post| post.delete_sent.is_some());
    let rows_of_deleted = deleted
        .map(|post| journal.largest_audience(post.author) as u64)
        .sum();
    Ok(Cost {
        rows_of_deleted,
        to_last_follower,
    })
}

fn sample(from: impl IntoIterator<Item = UserId>, count: usize, rng: &mut Rng) -> Vec<UserId> {
    rng.choose_multiple(from, count)
}
