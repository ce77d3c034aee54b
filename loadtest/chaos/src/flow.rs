//! One deployment with its services, a follow graph, and the way to its end state.

use std::{collections::HashMap, ops::Range, time::Duration};

use anyhow::Context;
use events::{PostId, Stage, UserId, topic::TopicKind};
use judge::{Journal, Walker, compare_walk, judge_at_rest};
use testkit::{Pipeline, Service, ServiceProcess, eventually_within};
use timeline_store::{CqlTimelines, TimelineStore};

use crate::{Client, Load, Verdict, load::PACE};

/// Longer than any catch-up after a restart takes here.
const REST: Duration = Duration::from_secs(120);
/// Static membership: a worker that was killed gets its partitions back at once.
const INSTANCE: (&str, &str) = ("TIDELINE_FANOUT__INSTANCE_ID", "fanout-0");

/// A deployment under test.
#[derive(Debug)]
pub struct Flow {
    pipeline: Pipeline,
    client: Client,
    sql: database::Pool,
    pub(crate) store: CqlTimelines,
    authors: i64,
    followers: i64,
}

impl Flow {
    /// A deployment with `authors` accounts, ids from 1, each followed by the same `followers`
    /// accounts. Starts no service.
    ///
    /// # Errors
    /// When a server refuses.
    pub async fn new(authors: i64, followers: i64) -> anyhow::Result<Self> {
        Self::of(Pipeline::new().await, authors, followers).await
    }

    /// As [`Flow::new`], with this deployment.
    ///
    /// # Errors
    /// When a server refuses.
    pub async fn of(pipeline: Pipeline, authors: i64, followers: i64) -> anyhow::Result<Self> {
        let deployment = pipeline.deployment();
        let secret_file = setting(&pipeline, "TIDELINE_AUTH__SECRET_FILE")?;
        let secret = std::fs::read_to_string(&secret_file).context("read the secret")?;
        let mut journal = Journal::new();
        let all = FIRST_FOLLOWER..FIRST_FOLLOWER + followers;
        journal.know_users((1..=authors).chain(all.clone()).map(UserId));
        for author in 1..=authors {
            journal.bulk_follows(UserId(author), all.clone().map(UserId));
        }
        let client = Client::new(pipeline.url(Service::WriteApi), secret.trim_end(), journal)?;
        let sql = database::Pool::new(&deployment.database_url(), 4, "chaos")?;
        let store = deployment.timelines().await;
        let flow = Self {
            pipeline,
            client,
            sql,
            store,
            authors,
            followers,
        };
        flow.populate().await?;
        Ok(flow)
    }

    /// Starts a service and waits until it is ready.
    pub async fn start(&self, service: Service, extra: &[(&str, &str)]) -> ServiceProcess {
        self.pipeline.start(service, &with_instance(extra)).await
    }

    /// Starts one of several processes of a service, with a log of its own, without waiting.
    pub fn spawn_as(&self, service: Service, name: &str, extra: &[(&str, &str)]) -> ServiceProcess {
        self.pipeline.spawn_as(service, name, &with_instance(extra))
    }

    /// Starts write-api, relay and fanout.
    pub async fn start_all(&self) -> [ServiceProcess; 3] {
        [
            self.start(Service::WriteApi, &[]).await,
            self.start(Service::Relay, &[]).await,
            self.start(Service::Fanout, &[]).await,
        ]
    }

    /// Starts load that follows from `seed`.
    pub fn load(&self, seed: u64) -> Load {
        self.load_at(seed, PACE)
    }

    /// Starts load that follows from `seed`, with so long a break between two posts of a client.
    pub fn load_at(&self, seed: u64, pace: Duration) -> Load {
        Load::start(&self.client, seed, self.followers(), pace)
    }

    /// Connections to the deployment's database.
    pub const fn sql(&self) -> &database::Pool {
        &self.sql
    }

    /// The deployment's processes and names.
    pub const fn pipeline(&self) -> &Pipeline {
        &self.pipeline
    }

    /// The client of its write-api.
    pub const fn client(&self) -> &Client {
        &self.client
    }

    /// Posts of this author are in the database.
    ///
    /// # Errors
    /// When Postgres does not answer.
    pub async fn posts_of(&self, author: UserId) -> anyhow::Result<Vec<PostId>> {
        let sql = self.sql.get().await?;
        let rows = sql
            .query(
                "select id from tideline.posts where author_id = $1 order by id",
                &[&author.0],
            )
            .await?;
        Ok(rows.iter().map(|row| PostId(row.get(0))).collect())
    }

    /// Records in the posts topic, repeats included.
    ///
    /// # Errors
    /// When the broker does not answer.
    pub async fn records(&self) -> anyhow::Result<i64> {
        let config = self.pipeline.deployment().kafka_config();
        let topic = config.namespace.topic(TopicKind::Posts);
        Ok(kafka::admin::Admin::new(&config)?
            .end_offsets(&topic)
            .await?
            .values()
            .sum())
    }

    /// How many rows each post has.
    ///
    /// # Errors
    /// When the store does not answer.
    pub async fn rows_by_post(&self) -> anyhow::Result<HashMap<PostId, usize>> {
        let mut found = HashMap::new();
        let count = |rows: Vec<timeline_store::ScannedRow>| {
            for row in rows {
                *found.entry(row.post).or_insert(0) += 1;
            }
        };
        let _total = self.store.scan(5_000, count).await?;
        Ok(found)
    }

    /// Makes one more author, who is followed by this many accounts of their own, ids from
    /// `FIRST_FAN`.
    ///
    /// # Errors
    /// When Postgres refuses, or there is such an author already.
    pub async fn add_author(&self, fans: i64) -> anyhow::Result<UserId> {
        let author = UserId(self.authors + 1);
        let all = FIRST_FAN..FIRST_FAN + fans;
        {
            let mut journal = self.client.journal();
            journal.know_users(all.clone().map(UserId).chain([author]));
            journal.bulk_follows(author, all.map(UserId));
        }
        let sql = self.sql.get().await?;
        let _count = sql.execute(USERS, &[&author.0, &author.0]).await?;
        let last = FIRST_FAN + fans - 1;
        let _count = sql.execute(USERS, &[&FIRST_FAN, &last]).await?;
        let _count = sql
            .execute(EDGES, &[&author.0, &author.0, &FIRST_FAN, &last])
            .await?;
        Ok(author)
    }

    /// Makes so many accounts that follow nobody; answers the id of the first one.
    ///
    /// # Errors
    /// When Postgres refuses, or there are such accounts already.
    pub async fn add_accounts(&self, count: i64) -> anyhow::Result<i64> {
        let all = FIRST_NEWCOMER..FIRST_NEWCOMER + count;
        self.client.journal().know_users(all.map(UserId));
        let sql = self.sql.get().await?;
        let last = FIRST_NEWCOMER + count - 1;
        let _count = sql.execute(USERS, &[&FIRST_NEWCOMER, &last]).await?;
        Ok(FIRST_NEWCOMER)
    }

    /// How many owners have this post.
    ///
    /// # Errors
    /// When the store does not answer.
    pub async fn rows_of(&self, post: PostId) -> anyhow::Result<i64> {
        let mut found = 0;
        let count = |rows: Vec<timeline_store::ScannedRow>| {
            found += rows.iter().filter(|row| row.post == post).count();
        };
        let _total = self.store.scan(5_000, count).await?;
        Ok(i64::try_from(found)?)
    }

    /// The slot's confirmed position.
    ///
    /// # Errors
    /// When Postgres does not answer or the slot is missing.
    pub async fn confirmed_lsn(&self) -> anyhow::Result<u64> {
        let sql = self.sql.get().await?;
        let slot = database::slots::get(&sql, &self.pipeline.deployment().slot()).await?;
        slot.and_then(|slot| slot.confirmed_flush_lsn)
            .context("the slot is missing")
    }

    /// Events that the ledger does not have in `stage`.
    ///
    /// # Errors
    /// When Postgres does not answer.
    pub async fn missing(&self, stage: Stage) -> anyhow::Result<i64> {
        let sql = self.sql.get().await?;
        Ok(database::delivery_ledger::missing_count(&sql, stage).await?)
    }

    /// Waits until every event is delivered, then judges every post and every timeline row.
    ///
    /// # Errors
    /// When a server does not answer.
    ///
    /// # Panics
    /// When the system does not come to rest in 120 s.
    pub async fn verdict(&self) -> anyhow::Result<Verdict> {
        eventually_within(REST, "every event is delivered", async || {
            let missing = self.missing(Stage::Delivered).await.ok()?;
            (missing == 0).then_some(())
        })
        .await;
        self.judge().await
    }

    /// Judges every post and every timeline row as they are now.
    ///
    /// # Errors
    /// When a server does not answer.
    pub async fn judge(&self) -> anyhow::Result<Verdict> {
        // Nothing is sent any more, so the copy is the whole journal.
        let mut journal = self.client.journal().clone();
        let judged = judge_at_rest(&mut journal, &self.sql, &self.store).await?;
        let sql = self.sql.get().await?;
        let row = sql
            .query_one("select count(*) from tideline.dead_letters", &[])
            .await?;
        Ok(Verdict {
            judged,
            dead_letters: row.get(0),
            dead_letters_expected: 0,
        })
    }

    /// Adds to a verdict what every author and `readers` followers see through read-api, which has
    /// to run.
    ///
    /// # Errors
    /// When a server does not answer.
    pub async fn walk(&self, verdict: &mut Verdict, readers: usize) -> anyhow::Result<()> {
        const PAGE: usize = 50;
        let journal = self.client.journal().clone();
        let walker = Walker::new(self.pipeline.url(Service::ReadApi), PAGE)?;
        let authors = (1..=self.authors).map(UserId);
        // Those that may leave come first, so both ends are looked at.
        let followers = self.followers().step_by(2).chain(self.followers().rev());
        for reader in authors.chain(followers.take(readers).map(UserId)) {
            let walk = walker.walk(reader, &self.client.token(reader)?).await?;
            compare_walk(&journal, &walk, &mut verdict.judged);
        }
        Ok(())
    }

    fn followers(&self) -> Range<i64> {
        FIRST_FOLLOWER..FIRST_FOLLOWER + self.followers
    }

    async fn populate(&self) -> anyhow::Result<()> {
        let authors = self.authors;
        let sql = self.sql.get().await?;
        let last = FIRST_FOLLOWER + self.followers - 1;
        let _count = sql.execute(USERS, &[&1_i64, &authors]).await?;
        let _count = sql.execute(USERS, &[&FIRST_FOLLOWER, &last]).await?;
        let _count = sql
            .execute(EDGES, &[&1_i64, &authors, &FIRST_FOLLOWER, &last])
            .await?;
        Ok(())
    }
}

/// Authors have lower ids.
const FIRST_FOLLOWER: i64 = 1_000_000;
/// The followers of an author who has followers of their own.
pub(crate) const FIRST_FAN: i64 = 2_000_000;
/// Accounts that follow nobody at first.
const FIRST_NEWCOMER: i64 = 3_000_000;

const USERS: &str = "insert into tideline.users (id, handle) overriding system value
    select id, 'user' || id from generate_series($1::bigint, $2::bigint) as id";
const EDGES: &str = "insert into tideline.follows (followee_id, follower_id, edge_us)
    select author, follower, 1 from generate_series($1::bigint, $2::bigint) as author,
    generate_series($3::bigint, $4::bigint) as follower";

fn with_instance<'a>(extra: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    std::iter::once(INSTANCE)
        .chain(extra.iter().copied())
        .collect()
}

fn setting(pipeline: &Pipeline, key: &str) -> anyhow::Result<String> {
    let found = pipeline.env().iter().find(|(name, _)| name == key);
    found
        .map(|(_, value)| value.clone())
        .with_context(|| format!("{key} is not set"))
}
