//! A deployment whose database fails over or is restored: what was there before, in Kafka and in
//! the timelines, and what has to be there afterwards.
//!
//! Owns: posts in the background that no failover stops ([`Poster`]), the three views of one
//! deployment's posts ([`View`]), and the comparison at rest ([`Aftermath`]). A *ghost* is a post
//! that was acknowledged and published, and that the database does not have any more.
//!
//! Does not own: the servers (`testkit::Cluster`) and what happens to them (`tests/it`).

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use anyhow::Context;
use database::{
    account::{self, Account},
    epoch::{self, Epoch},
};
use events::{Event, EventId, PostId, Stage, UserId, envelope, topic::TopicKind};
use testkit::{Deployment, eventually_within};
use timeline_store::{ScannedRow, TimelineStore};
use tokio::{task::JoinSet, time::sleep};

use crate::{Client, Flow};

const CLIENTS: i64 = 4;
const PACE: Duration = Duration::from_millis(40);
/// At most so many posts each: a run that cannot be stopped ends by itself.
const MOST: u32 = 2_000;
/// Longer than a promotion, a new slot and a sweep of everything take together.
const REST: Duration = Duration::from_secs(120);

/// Clients that post one after another until they are stopped.
#[derive(Debug)]
pub struct Poster {
    clients: JoinSet<anyhow::Result<()>>,
    stop: Arc<AtomicBool>,
    acknowledged: Arc<Mutex<BTreeSet<PostId>>>,
}

impl Poster {
    /// Starts posting as the authors 1 to 4; `name` tells its keys from those of another one.
    pub fn start(client: &Client, name: &'static str) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let acknowledged = Arc::new(Mutex::new(BTreeSet::new()));
        let mut clients = JoinSet::new();
        for author in 1..=CLIENTS {
            let (client, stop, acknowledged) = (client.clone(), stop.clone(), acknowledged.clone());
            let _task = clients.spawn(async move {
                for number in 0..MOST {
                    if stop.load(Ordering::Relaxed) {
                        break;
                    }
                    let key = format!("{name}-{author}-{number}");
                    let posted = client.post(UserId(author), &key).await?;
                    let _new = locked(&acknowledged).insert(posted.id);
                    sleep(PACE).await;
                }
                Ok(())
            });
        }
        Self {
            clients,
            stop,
            acknowledged,
        }
    }

    /// What was acknowledged up to now.
    pub fn acknowledged(&self) -> BTreeSet<PostId> {
        locked(&self.acknowledged).clone()
    }

    /// Waits until so many more posts are acknowledged.
    ///
    /// # Panics
    /// When they are not within 90 s.
    pub async fn wait_for_more(&self, posts: usize) {
        let goal = self.acknowledged().len() + posts;
        eventually_within(Duration::from_secs(90), "posting goes on", async || {
            (self.acknowledged().len() >= goal).then_some(())
        })
        .await;
    }

    /// Stops and hands over what was acknowledged.
    ///
    /// # Errors
    /// When a post was refused or given up.
    pub async fn stop(mut self) -> anyhow::Result<BTreeSet<PostId>> {
        self.stop.store(true, Ordering::Relaxed);
        while let Some(outcome) = self.clients.join_next().await {
            outcome.context("a client panicked")??;
        }
        Ok(self.acknowledged())
    }
}

fn locked(ids: &Mutex<BTreeSet<PostId>>) -> MutexGuard<'_, BTreeSet<PostId>> {
    ids.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A record of the posts topic that is about a new post.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// `ce_id`
    pub event: EventId,
    /// The post.
    pub post: PostId,
    /// `ce_source`
    pub source: String,
    /// `tideline-path`
    pub path: String,
}

/// Where one deployment's posts are looked for.
#[derive(Clone, Copy, Debug)]
pub struct View<'a>(pub &'a Flow);

impl<'a> View<'a> {
    /// Posts in this database, which may be a copy, with the id of their outbox row.
    ///
    /// # Errors
    /// When it does not answer.
    pub async fn posts_at(url: &str) -> anyhow::Result<BTreeMap<PostId, EventId>> {
        const SQL: &str = "select p.id, o.id from tideline.posts p join tideline.outbox o
            on o.aggregateid = p.id::text and o.type = 'tideline.post.created.v1'";
        let pool = database::Pool::new(url, 1, "chaos")?;
        let rows = pool.get().await?.query(SQL, &[]).await?;
        let pairs = rows.iter();
        Ok(pairs
            .map(|row| (PostId(row.get(0)), EventId(row.get(1))))
            .collect())
    }

    /// Posts in the deployment's database.
    ///
    /// # Errors
    /// When it does not answer.
    pub async fn posts(self) -> anyhow::Result<BTreeMap<PostId, EventId>> {
        Self::posts_at(&self.deployment().database_url()).await
    }

    /// New posts in Kafka, repeats included.
    ///
    /// # Errors
    /// When the broker does not answer.
    pub async fn records(self) -> anyhow::Result<Vec<Record>> {
        let config = self.deployment().kafka_config();
        let topic = config.namespace.topic(TopicKind::Posts);
        let take = |consumed: kafka::Consumed| {
            let header = |name| consumed.header(name).unwrap_or_default().to_owned();
            let (event, about) = consumed.event().ok()?;
            let Event::PostCreated(created) = about else {
                return None;
            };
            Some(Record {
                event,
                post: created.post_id,
                source: header(envelope::SOURCE),
                path: header(envelope::PATH),
            })
        };
        Ok(kafka::snapshot::read(&config, &topic, take).await?)
    }

    /// Waits until every one of `posts` is in Kafka.
    ///
    /// # Panics
    /// When they are not within 120 s.
    pub async fn await_published(self, posts: &BTreeSet<PostId>) {
        eventually_within(REST, "the posts are in Kafka", async || {
            // Reading them all is dear: not before there are enough.
            let count = usize::try_from(self.0.records().await.ok()?).ok()?;
            if count < posts.len() {
                return None;
            }
            let records = self.records().await.ok()?;
            let there: BTreeSet<PostId> = records.iter().map(|record| record.post).collect();
            posts.is_subset(&there).then_some(())
        })
        .await;
    }

    /// Who has which post in the timeline.
    ///
    /// # Errors
    /// When the store does not answer.
    pub async fn owners(self) -> anyhow::Result<BTreeMap<PostId, BTreeSet<UserId>>> {
        let mut owners: BTreeMap<PostId, BTreeSet<UserId>> = BTreeMap::new();
        let take = |rows: Vec<ScannedRow>| {
            for row in rows {
                let _new = owners.entry(row.post).or_default().insert(row.owner);
            }
        };
        let _total = self.0.store.scan(5_000, take).await?;
        Ok(owners)
    }

    /// The newest epoch of its database.
    ///
    /// # Errors
    /// When it does not answer.
    pub async fn epoch(self) -> anyhow::Result<Epoch> {
        Ok(epoch::current(&self.0.sql().get().await?).await?)
    }

    /// Its names and addresses.
    pub const fn deployment(self) -> &'a Deployment {
        self.0.pipeline().deployment()
    }
}

/// What is there when the system has come to rest behind a failover or a restore.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Aftermath {
    /// The accounts of both stages (D-9).
    pub accounts: [Account; 2],
    /// Posts of the database whose followers do not all have it.
    pub lost: usize,
    /// Ghosts that somebody has in the timeline.
    pub haunted: BTreeSet<PostId>,
    /// Acknowledged posts that the database does not have.
    pub ghosts: BTreeSet<PostId>,
    /// Posts from before that were sent again by the sweep, under the new epoch.
    pub again: usize,
    /// Records of posts from afterwards that carry another `ce_source` than the new epoch's.
    pub old_source: usize,
    /// Highest id in the outbox.
    pub highest: EventId,
    /// Dead letters; good records never belong there (D-12).
    pub dead_letters: i64,
}

impl Aftermath {
    /// Waits until both stages have everything, and looks. `before` was in the database when its
    /// new life began, `acknowledged` is all that clients were told.
    ///
    /// # Errors
    /// When a server does not answer.
    ///
    /// # Panics
    /// When the system does not come to rest in 120 s.
    pub async fn of(
        flow: &Flow,
        before: &BTreeMap<PostId, EventId>,
        acknowledged: &BTreeSet<PostId>,
        followers: i64,
    ) -> anyhow::Result<Self> {
        let accounts = eventually_within(REST, "both stages have everything", async || {
            let published = account(flow, Stage::Published).await.ok()?;
            let delivered = account(flow, Stage::Delivered).await.ok()?;
            let at_rest = published.is_balanced() && delivered.is_balanced();
            at_rest.then_some([published, delivered])
        })
        .await;
        let view = View(flow);
        let (posts, owners) = (view.posts().await?, view.owners().await?);
        let records = view.records().await?;
        let epoch = view.epoch().await?.epoch;
        let source = envelope::source(&view.deployment().keyspace(), epoch);
        let again = before.keys().filter(|post| {
            let mut of_post = records.iter().filter(|record| record.post == **post);
            of_post.any(|record| record.source == source && record.path == "sweep")
        });
        let old_source = records.iter().filter(|record| {
            let new = posts.contains_key(&record.post) && !before.contains_key(&record.post);
            new && record.source != source
        });
        let followers = usize::try_from(followers)?;
        let everybody = |post: &PostId| owners.get(post).is_some_and(|all| all.len() == followers);
        let sql = flow.sql().get().await?;
        let count = "select count(*) from tideline.dead_letters";
        Ok(Self {
            accounts,
            lost: posts.keys().filter(|post| !everybody(post)).count(),
            haunted: absent(owners.keys(), &posts),
            ghosts: absent(acknowledged, &posts),
            again: again.count(),
            old_source: old_source.count(),
            highest: posts.values().max().copied().context("no posts at all")?,
            dead_letters: sql.query_one(count, &[]).await?.get(0),
        })
    }
}

async fn account(flow: &Flow, stage: Stage) -> anyhow::Result<Account> {
    let client = flow.sql().get().await?;
    Ok(account::of_stage(&client, stage).await?)
}

/// Those of `wanted` that the database does not have.
pub fn absent<'a>(
    wanted: impl IntoIterator<Item = &'a PostId>,
    posts: &BTreeMap<PostId, EventId>,
) -> BTreeSet<PostId> {
    let wanted = wanted.into_iter().copied();
    wanted.filter(|post| !posts.contains_key(post)).collect()
}
