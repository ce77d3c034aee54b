//! Waits until everything is at rest: nothing sent, nothing on its way.

use std::time::Duration;

use anyhow::Context;
use database::Pool;

use crate::deliveries::Source;
use crate::run::Shared;

/// Between two looks at the account.
const EVERY: Duration = Duration::from_millis(400);

/// What was not delivered in time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unsettled {
    /// Acknowledged posts without a delivery.
    pub posts: usize,
    /// Events of posts, deletions included, that no ledger has as delivered. Known from Postgres.
    pub events: i64,
}

impl Unsettled {
    /// Whether everything is delivered.
    pub const fn is_settled(&self) -> bool {
        self.posts == 0 && self.events == 0
    }
}

/// Waits at most so long.
///
/// # Errors
/// When Postgres or the API does not answer.
pub async fn settle(
    shared: &Shared,
    source: &Source,
    pool: Option<&Pool>,
    patience: Duration,
) -> anyhow::Result<Unsettled> {
    let deadline = shared.clock.now() + patience;
    let posts = source.finish(shared, deadline).await;
    let Some(pool) = pool else {
        return Ok(Unsettled { posts, events: 0 });
    };
    loop {
        let events = undelivered(pool).await?;
        if events == 0 || shared.clock.now() >= deadline {
            return Ok(Unsettled { posts, events });
        }
        tokio::time::sleep(EVERY).await;
    }
}

/// Events of posts that the account does not have as delivered (D-9). Other runs on the same
/// deployment count too: it is at rest as a whole or not.
async fn undelivered(pool: &Pool) -> anyhow::Result<i64> {
    const SQL: &str = "with delivered as (
            select coalesce(range_agg(r), '{}') as ids
            from tideline.delivery_ledger l, unnest(l.ids) as r where l.stage = 'delivered'
        )
        select count(*) from tideline.outbox o, delivered
        where o.aggregatetype = 'post' and not delivered.ids @> o.id
            and not exists (select from tideline.dead_letters d where d.event_id = o.id)";
    let client = pool.get().await.context("looking at the account")?;
    let row = client
        .query_one(SQL, &[])
        .await
        .context("looking at the account")?;
    Ok(row.try_get(0)?)
}
