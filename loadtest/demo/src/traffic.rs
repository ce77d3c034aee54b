//! Carries out a plan: open arrivals, with a bound on what is under way at once.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::{JoinError, JoinSet};
use tokio::time::Instant;

use crate::api::Api;
use crate::plan::{Op, Plan, PlannedPost};

/// Operations under way at once; arrivals wait beyond that.
const CONCURRENT: usize = 64;

/// Sends everything, and returns when everything is acknowledged.
///
/// # Cancel safety
/// Dropping the future aborts what is under way.
pub(crate) async fn run(plan: Plan, api: Arc<Api>) -> anyhow::Result<()> {
    let permits = Arc::new(Semaphore::new(CONCURRENT));
    let begun = Instant::now();
    let mut tasks = JoinSet::new();
    for (at, op) in plan.ops {
        tokio::time::sleep_until(begun + at).await;
        let permit = permit(&permits).await?;
        let (api, permits) = (Arc::clone(&api), Arc::clone(&permits));
        tasks.spawn(async move {
            match op {
                Op::Post(post) => send_post(&api, post, permit, &permits).await,
                Op::Edge {
                    change,
                    follower,
                    followee,
                } => api.change(change, follower, followee).await,
            }
        });
        while let Some(done) = tasks.try_join_next() {
            outcome(done)?;
        }
    }
    while let Some(done) = tasks.join_next().await {
        outcome(done)?;
    }
    Ok(())
}

async fn send_post(
    api: &Api,
    post: PlannedPost,
    first: OwnedSemaphorePermit,
    permits: &Arc<Semaphore>,
) -> anyhow::Result<()> {
    let (entry, id) = api.post(post.author, &post.text, post.repeat).await?;
    // Whoever waits to delete is not under way.
    drop(first);
    if let Some(delay) = post.delete_after {
        tokio::time::sleep(delay.max(Duration::from_millis(1))).await;
        let _permit = permit(permits).await?;
        api.delete(post.author, entry, id).await?;
    }
    Ok(())
}

async fn permit(permits: &Arc<Semaphore>) -> anyhow::Result<OwnedSemaphorePermit> {
    Arc::clone(permits)
        .acquire_owned()
        .await
        .context("waiting to send")
}

fn outcome(done: Result<anyhow::Result<()>, JoinError>) -> anyhow::Result<()> {
    done.context("a task of the traffic panicked")?
}
