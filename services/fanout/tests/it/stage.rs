//! A deployment, members of the lane inside this process, and records made by hand.

use std::time::Duration;

use bytes::Bytes;
use database::{Client, Pool, follows, posts, users};
use events::{
    Event, EventId, PostCreated, PostDeleted, PostId, Stage as LedgerStage, UserId, envelope,
    topic::TopicKind,
};
use fanout::Config;
use kafka::{Admin, Header, Producer, Record, producer::Position};
use runtime::{
    Shutdown,
    config::{self, Sources},
    exit::Exit,
};
use testkit::{Deployment, eventually, free_address, unique};
use timeline_store::{CqlTimelines, ScannedRow, TimelineStore};
use tokio::task::JoinHandle;

/// A deployment without services.
pub(crate) struct Stage {
    pub(crate) deployment: Deployment,
    pub(crate) pool: Pool,
    pub(crate) store: CqlTimelines,
    pub(crate) admin: Admin,
    pub(crate) producer: Producer,
}

/// A running fan-out.
pub(crate) struct Member {
    shutdown: Shutdown,
    task: JoinHandle<Result<(), Exit>>,
    pub(crate) admin: String,
}

impl Stage {
    pub(crate) async fn new() -> Self {
        let deployment = Deployment::new().await;
        let kafka = deployment.kafka_config();
        Self {
            pool: Pool::new(&deployment.database_url(), 4, "test").expect("a pool"),
            store: deployment.timelines().await,
            admin: Admin::new(&kafka).expect("an admin client"),
            producer: Producer::new(&kafka, "test").expect("a producer").0,
            deployment,
        }
    }

    /// Starts a member; small pages, so that a handful of followers makes several.
    pub(crate) fn start(&self) -> Member {
        self.start_as("")
    }

    /// Starts a member with an instance id.
    pub(crate) fn start_as(&self, instance_id: &str) -> Member {
        let mut env = self.deployment.env();
        env.push((
            "TIDELINE_FANOUT__INSTANCE_ID".to_owned(),
            instance_id.to_owned(),
        ));
        let admin = free_address();
        env.push(("TIDELINE_FANOUT__ADMIN".to_owned(), admin.clone()));
        env.push(("TIDELINE_FANOUT__PAGE_ROWS".to_owned(), "3".to_owned()));
        env.push((
            "TIDELINE_FANOUT__VISIBLE_WITHIN".to_owned(),
            "1s".to_owned(),
        ));
        let config: Config = config::load(&Sources::of_variables(env)).expect("a configuration");
        let shutdown = Shutdown::new();
        let task = tokio::spawn(fanout::run(config, shutdown.clone()));
        Member {
            shutdown,
            task,
            admin,
        }
    }

    pub(crate) async fn client(&self) -> Client {
        self.pool.get().await.expect("a connection")
    }

    pub(crate) async fn user(&self) -> UserId {
        match users::create(&self.client().await, &unique("u"))
            .await
            .expect("a user")
        {
            users::CreateUser::Created(user) | users::CreateUser::Exists(user) => user.id,
        }
    }

    /// An author with so many followers.
    pub(crate) async fn author(&self, followers: usize) -> (UserId, Vec<UserId>) {
        let author = self.user().await;
        let mut all = Vec::new();
        for _ in 0..followers {
            let follower = self.user().await;
            let _followed = follows::follow(&mut self.client().await, follower, author, None)
                .await
                .expect("a follow");
            all.push(follower);
        }
        (author, all)
    }

    /// A post as it is in Postgres, and its event with the outbox id.
    pub(crate) async fn post(&self, author: UserId) -> (EventId, PostCreated) {
        let new = posts::NewPost {
            author,
            client_post_id: &unique("c"),
            fingerprint: b"f",
            body: "text",
            traceparent: None,
        };
        let posts::Create::Created(post) = posts::create(&mut self.client().await, &new)
            .await
            .expect("a post")
        else {
            panic!("a new post");
        };
        let created = PostCreated {
            post_id: post.id,
            author_id: author,
            post_us: post.created_us,
        };
        (
            self.event_of(post.id, "tideline.post.created.v1").await,
            created,
        )
    }

    /// Deletes a post in Postgres; its event as the outbox has it.
    pub(crate) async fn delete(&self, author: UserId, post: PostId) -> (EventId, PostDeleted) {
        let _deleted = posts::delete(&mut self.client().await, author, post, None)
            .await
            .expect("a delete");
        let id = self.event_of(post, "tideline.post.deleted.v1").await;
        let sql = "select payload::text from tideline.outbox where id = $1";
        let row = self
            .deployment
            .sql()
            .await
            .query_one(sql, &[&id.0])
            .await
            .expect("the event");
        let Ok(Event::PostDeleted(deleted)) = Event::decode(
            "tideline.post.deleted.v1",
            row.get::<_, String>(0).as_bytes(),
        ) else {
            panic!("the event of a delete")
        };
        (id, deleted)
    }

    async fn event_of(&self, post: PostId, event_type: &str) -> EventId {
        let sql = "select id from tideline.outbox where aggregateid = $1 and type = $2";
        let row = self
            .deployment
            .sql()
            .await
            .query_one(sql, &[&post.to_string(), &event_type])
            .await;
        EventId(row.expect("the event").get(0))
    }

    /// Produces an event as the relay does.
    pub(crate) async fn produce(&self, id: EventId, event: &Event) -> Position {
        self.send(self.record(id, event)).await
    }

    pub(crate) fn record(&self, id: EventId, event: &Event) -> Record {
        let headers = [
            (
                envelope::SPEC_VERSION,
                envelope::SPEC_VERSION_1_0.to_owned(),
            ),
            (envelope::ID, id.to_string()),
            (envelope::SOURCE, envelope::source("test", 1)),
            (envelope::TYPE, event.event_type().as_str().to_owned()),
            (envelope::SUBJECT, event.subject()),
        ];
        Record {
            topic: self.topic(),
            key: Some(Bytes::from(event.partition_key().to_string())),
            payload: Some(Bytes::from(event.encode())),
            headers: headers
                .map(|(name, value)| Header::text(name, value))
                .to_vec(),
        }
    }

    pub(crate) async fn send(&self, record: Record) -> Position {
        self.producer
            .send(record, Duration::from_secs(20))
            .await
            .expect("acknowledged")
    }

    pub(crate) fn topic(&self) -> String {
        self.deployment.namespace().topic(TopicKind::Posts)
    }

    /// Every row there is of a post, by owner.
    pub(crate) async fn rows(&self, post: PostId) -> Vec<ScannedRow> {
        let mut rows = Vec::new();
        let visit =
            |page: Vec<ScannedRow>| rows.extend(page.into_iter().filter(|row| row.post == post));
        let _count = self.store.scan(1_000, visit).await.expect("a scan");
        rows.sort_by_key(|row| row.owner);
        rows
    }

    /// Waits until the ledger has the event as delivered.
    pub(crate) async fn delivered(&self, id: EventId) {
        eventually("the event is in the ledger", || async {
            let client = self.pool.get().await.ok()?;
            let there = database::delivery_ledger::contains(&client, LedgerStage::Delivered, id)
                .await
                .ok()?;
            there.then_some(())
        })
        .await;
    }

    /// Waits until everything before this position is committed, and it too.
    pub(crate) async fn committed(&self, position: Position) {
        let group = self.deployment.namespace().fanout_posts_group();
        let topic = self.topic();
        eventually("the offset is committed", || async {
            let committed = self.admin.committed(&group, &topic).await.ok()?;
            (committed[&position.partition]? > position.offset).then_some(())
        })
        .await;
    }
}

impl Member {
    /// The value of a series.
    pub(crate) async fn metric(&self, series: &str) -> f64 {
        let answer = reqwest::get(format!("http://{}/metrics", self.admin))
            .await
            .expect("metrics");
        let text = answer.text().await.expect("text");
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
        let value = line.unwrap_or_else(|| panic!("no series {series}"));
        value.parse().expect("a number")
    }

    /// Ends it at whatever it is doing: nothing is drained, answered or flushed.
    pub(crate) async fn crash(self) {
        self.task.abort();
        assert!(self.task.await.expect_err("was running").is_cancelled());
    }

    /// Waits until it ends by itself.
    pub(crate) async fn ended(self) -> Result<(), Exit> {
        let outcome = tokio::time::timeout(Duration::from_secs(60), self.task).await;
        outcome.expect("ends in time").expect("does not panic")
    }

    /// Asks it to stop and waits for it.
    pub(crate) async fn stop(self) {
        self.shutdown.trigger();
        let outcome = tokio::time::timeout(Duration::from_secs(20), self.task)
            .await
            .expect("stops in time");
        outcome
            .expect("does not panic")
            .expect("stops because it was asked to");
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        let config = self.deployment.kafka_config();
        // The test's runtime may be ending, so this one is its own.
        let removal = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .ok()?;
            runtime.block_on(kafka::topics::remove(&config)).ok()
        });
        // Topics that stay are only a burden to the broker.
        let _outcome = removal.join();
    }
}
