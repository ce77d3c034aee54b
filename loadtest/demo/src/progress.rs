//! How far the run has come, as Postgres, Kafka, the services and one reader see it.
//!
//! At rest is when the account is closed: every event is in the ledger (D-9). Entries that died with
//! a killed process, which are never in the path of a position or an offset, are found missing by
//! the sweep, which has those events delivered again.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use database::Pool;
use events::topic::TopicKind;
use judge::Walker;
use kafka::KafkaConfig;
use kafka::admin::Admin;
use sandbox::Service;

use crate::api::{Api, Sent};
use crate::fleet::Fleet;
use crate::view::View;

/// Time between two looks.
const EVERY: Duration = Duration::from_millis(400);

/// Looks in a row that have to find everything delivered.
const STABLE: u32 = 3;

/// One look.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Snapshot {
    pub(crate) sent: Sent,
    /// Events in the outbox.
    pub(crate) events: i64,
    pub(crate) unpublished: i64,
    /// Events that have to be delivered.
    pub(crate) post_events: i64,
    pub(crate) undelivered: i64,
    /// Records of the topic of posts that the workers have not finished.
    pub(crate) lag: i64,
    /// Age of the oldest event that is not delivered.
    pub(crate) oldest: Duration,
    pub(crate) dead_letters: i64,
    /// Events that the sweep has sent again.
    pub(crate) redelivered: i64,
    /// Rows written by all workers.
    pub(crate) rows: u64,
    /// How long a reader's first page took; `None` without an answer.
    pub(crate) page: Option<Duration>,
    pub(crate) relay_up: bool,
    pub(crate) fanout_up: bool,
}

/// Looks at the run.
#[derive(Debug)]
pub(crate) struct Progress {
    pub(crate) fleet: Arc<Fleet>,
    pub(crate) api: Arc<Api>,
    pub(crate) pool: Pool,
    pub(crate) topics: Topics,
    /// Reads the first page of this reader, by its token.
    pub(crate) walker: Walker,
    pub(crate) token: String,
}

impl Progress {
    /// Shows how the run goes on, until the future is dropped or a service ends by itself.
    pub(crate) async fn show(&self, view: &View) -> anyhow::Result<()> {
        loop {
            self.fleet.check()?;
            view.show(&self.look().await?);
            tokio::time::sleep(EVERY).await;
        }
    }

    /// Waits until every event is delivered and stays so, for at most `limit`. To be called when
    /// nothing is sent any more. Answers how many events the sweep has sent again.
    pub(crate) async fn settle(&self, limit: Duration) -> anyhow::Result<i64> {
        let begun = Instant::now();
        let mut settled = 0;
        loop {
            let now = self.look().await?;
            if now.dead_letters > 0 {
                bail!(
                    "the promise is broken: {} events are dead letters",
                    now.dead_letters
                );
            }
            let closed = now.unpublished == 0 && now.undelivered == 0;
            settled = if closed { settled + 1 } else { 0 };
            if settled == STABLE {
                return Ok(now.redelivered);
            }
            if begun.elapsed() > limit {
                bail!(
                    "the promise is broken: {limit:?} after the last post, {} of {} post events are not delivered \
                     (not published: {}, lag in Kafka: {})",
                    now.undelivered,
                    now.post_events,
                    now.unpublished,
                    now.lag
                );
            }
            tokio::time::sleep(EVERY).await;
        }
    }

    async fn look(&self) -> anyhow::Result<Snapshot> {
        const SQL: &str = "with
            passed as (
                select coalesce(range_agg(r), '{}') as ids from tideline.delivery_ledger l, unnest(l.ids) as r
            ),
            delivered as (
                select coalesce(range_agg(r), '{}') as ids from tideline.delivery_ledger l, unnest(l.ids) as r
                where l.stage = 'delivered'
            ),
            account as (
                select o.created_at, passed.ids @> o.id as published,
                    o.aggregatetype = 'post' as wanted, delivered.ids @> o.id as delivered
                from tideline.outbox o, passed, delivered
            )
            select count(*),
                count(*) filter (where not published),
                count(*) filter (where wanted),
                count(*) filter (where wanted and not delivered),
                coalesce(tideline.clock_us() - tideline.micros(min(created_at) filter (where wanted and not delivered)), 0),
                (select count(*) from tideline.dead_letters where state = 'open'),
                (select count(distinct event_id) from tideline.redelivery)
            from account";
        let client = self.pool.get().await.context("looking at the run")?;
        let row = client
            .query_one(SQL, &[])
            .await
            .context("looking at the run")?;
        drop(client);
        let page = self.page().await;
        let unpublished: i64 = row.try_get(1)?;
        let lag = self.topics.lag().await?;
        let oldest = Duration::from_micros(u64::try_from(row.try_get::<_, i64>(4)?).unwrap_or(0));
        Ok(Snapshot {
            sent: self.api.sent(),
            events: row.try_get(0)?,
            unpublished,
            post_events: row.try_get(2)?,
            undelivered: row.try_get(3)?,
            lag,
            oldest,
            dead_letters: row.try_get(5)?,
            redelivered: row.try_get(6)?,
            rows: self.fleet.look_at_rows().await,
            page,
            relay_up: self.fleet.is_up(Service::Relay),
            fanout_up: self.fleet.is_up(Service::Fanout),
        })
    }

    async fn page(&self) -> Option<Duration> {
        let begun = Instant::now();
        self.walker
            .first_page(&self.token)
            .await
            .ok()
            .map(|_| begun.elapsed())
    }
}

/// The topic of posts and the group that reads it.
#[derive(Debug)]
pub(crate) struct Topics {
    admin: Admin,
    topic: String,
    group: String,
}

impl Topics {
    /// Those of a deployment.
    pub(crate) fn new(config: KafkaConfig) -> anyhow::Result<Self> {
        let topic = config.namespace.topic(TopicKind::Posts);
        let group = config.namespace.fanout_posts_group();
        Ok(Self {
            admin: Admin::new(&config)?,
            topic,
            group,
        })
    }

    /// How many records the group has not committed.
    async fn lag(&self) -> anyhow::Result<i64> {
        let marks = self.admin.watermarks(&self.topic).await?;
        let committed = self.admin.committed(&self.group, &self.topic).await?;
        let open = |(partition, (first, end)): (&i32, &(i64, i64))| {
            end - committed
                .get(partition)
                .copied()
                .flatten()
                .unwrap_or(*first)
        };
        Ok(marks.iter().map(open).sum())
    }
}
