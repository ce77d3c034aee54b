//! Begins each operation when it is due.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use tokio::task::{JoinError, JoinSet};

use super::{Shared, operations};
use crate::plan::Planned;

/// How the arrivals ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrived {
    /// The plan came to its end.
    All,
    /// Somebody asked to stop.
    Stopped,
}

/// Begins everything that the plan holds, until `stop`, and waits for what is under way.
///
/// # Errors
/// When the journal cannot be written, or a task panicked.
///
/// # Cancel safety
/// Dropping the future aborts what is under way.
pub async fn dispatch(
    plan: impl Iterator<Item = Planned>,
    shared: &Arc<Shared>,
    stop: impl Future<Output = ()>,
) -> anyhow::Result<Arrived> {
    let mut tasks = JoinSet::new();
    let arrived = {
        let arrivals = arrivals(plan, shared, &mut tasks);
        tokio::select! {
            outcome = arrivals => outcome.map(|()| Arrived::All)?,
            () = stop => Arrived::Stopped,
        }
    };
    while let Some(done) = tasks.join_next().await {
        outcome(done)?;
    }
    Ok(arrived)
}

async fn arrivals(
    plan: impl Iterator<Item = Planned>,
    shared: &Arc<Shared>,
    tasks: &mut JoinSet<anyhow::Result<()>>,
) -> anyhow::Result<()> {
    for (number, planned) in (1_u64..).zip(plan) {
        if shared.clock.now() < planned.at {
            tokio::time::sleep_until(shared.clock.moment(planned.at)).await;
        }
        begin(number, planned, shared, tasks);
        // Finished tasks are taken as they come, or their outcomes would pile up.
        while let Some(done) = tasks.try_join_next() {
            outcome(done)?;
        }
    }
    Ok(())
}

fn begin(
    number: u64,
    planned: Planned,
    shared: &Arc<Shared>,
    tasks: &mut JoinSet<anyhow::Result<()>>,
) {
    {
        let mut tally = shared.tally();
        tally.counts.planned += 1;
        tally.planned.add(planned.at, 1);
    }
    let Ok(permit) = Arc::clone(&shared.permits).try_acquire_owned() else {
        return shared.tally().shed(shared.clock.now());
    };
    let shared = Arc::clone(shared);
    let Planned { at, op } = planned;
    tasks.spawn(async move {
        // Here, not at the spawn: a runtime that is busy delays the request as much as a late loop.
        let late = shared.clock.now().saturating_sub(at);
        shared.tally().begun(at, late);
        operations::perform(number, at, op, permit, &shared).await
    });
}

fn outcome(done: Result<anyhow::Result<()>, JoinError>) -> anyhow::Result<()> {
    done.context("a task of the load panicked")?
}

/// Time that nobody waits for.
pub(super) async fn pause(shared: &Shared, span: Duration) -> Duration {
    let due = shared.clock.now() + span;
    tokio::time::sleep_until(shared.clock.moment(due)).await;
    due
}
