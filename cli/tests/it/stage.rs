//! A deployment with one author and one follower, and the steps of a post's way, one by one.

use std::time::{Duration, Instant};

use database::{
    Client, Pool, delivery_ledger, follows, outbox,
    post_delivery::{self, Delivery},
    posts::{self, Post},
    users,
};
use events::{Event, EventId, Micros, PostCreated, PostId, Stage as LedgerStage, UserId, envelope};
use kafka::{Header, Producer, Record};
use testkit::{Deployment, answered};
use timeline_store::{CqlTimelines, PgNow, TimelineRow, TimelineStore as _};

use crate::tideline;

/// What the binary said.
pub(crate) struct Said {
    pub(crate) code: Option<i32>,
    pub(crate) text: String,
    pub(crate) failure: String,
    /// A run before this one was cut short by a server.
    pub(crate) again: bool,
}

impl Said {
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.text)
            .unwrap_or_else(|error| panic!("{error}\n{}\n{}", self.text, self.failure))
    }

    #[track_caller]
    pub(crate) fn has(&self, part: &str) {
        let (text, failure) = (&self.text, &self.failure);
        assert!(
            text.contains(part),
            "{part:?} is missing in:\n{text}\n{failure}"
        );
    }

    /// That it repaired so many. What a run has repaired that was cut short, no run tells.
    #[track_caller]
    pub(crate) fn repaired(&self, count: u64) {
        if !self.again {
            self.has(&format!("repaired by this run: {count}"));
        }
    }

    /// A server has stalled for longer than the command waits, which asks once.
    fn met_a_stall(&self) -> bool {
        self.code == Some(69)
            || self.text.contains("timelines\n  unknown ")
            || serde_json::from_str(&self.text)
                .is_ok_and(|json: serde_json::Value| json["timelines"]["error"].is_string())
    }
}

/// The deployment.
pub(crate) struct Stage {
    pub(crate) deployment: Deployment,
    pub(crate) pool: Pool,
    pub(crate) store: CqlTimelines,
    pub(crate) author: UserId,
    pub(crate) follower: UserId,
    pub(crate) stranger: UserId,
    producer: Producer,
}

impl Stage {
    /// Makes it; the one event there is, of the follow, is published.
    pub(crate) async fn new() -> Self {
        let deployment = Deployment::new().await;
        let pool = Pool::new(&deployment.database_url(), 2, "cli-it").unwrap();
        let store = deployment.timelines().await;
        let (producer, _reports) = Producer::new(&deployment.kafka_config(), "cli-it").unwrap();
        let mut client = pool.get().await.unwrap();
        let mut people = Vec::new();
        for handle in ["author", "follower", "stranger"] {
            match users::create(&client, handle).await.unwrap() {
                users::CreateUser::Created(user) => people.push(user.id),
                users::CreateUser::Exists(user) => panic!("{user:?}"),
            }
        }
        let [author, follower, stranger] = people[..] else {
            panic!("three accounts")
        };
        let followed = follows::follow(&mut client, follower, author, None).await;
        assert!(matches!(followed.unwrap(), follows::Follow::Created { .. }));
        let row = client
            .query_one("select id from tideline.outbox", &[])
            .await;
        let event = EventId(row.unwrap().get(0));
        drop(client);
        let stage = Self {
            deployment,
            pool,
            store,
            author,
            follower,
            stranger,
            producer,
        };
        stage.enter(LedgerStage::Published, event).await;
        stage
    }

    pub(crate) async fn client(&self) -> Client {
        self.pool.get().await.unwrap()
    }

    /// Runs one statement and answers the number of rows it changed.
    pub(crate) async fn sql(&self, text: &str) -> u64 {
        self.client().await.execute(text, &[]).await.unwrap()
    }

    /// A post and its event, as write-api makes them.
    pub(crate) async fn post(&self, key: &str) -> (Post, EventId) {
        let new = posts::NewPost {
            author: self.author,
            client_post_id: key,
            fingerprint: b"f",
            body: "text",
            traceparent: None,
        };
        let mut client = self.client().await;
        let posts::Create::Created(post) = posts::create(&mut client, &new).await.unwrap() else {
            panic!("not made");
        };
        let event = outbox::event_of_post(&client, post.id).await.unwrap();
        (post, event.unwrap())
    }

    /// Deletes a post; answers the event of it.
    pub(crate) async fn delete(&self, post: PostId) -> EventId {
        let mut client = self.client().await;
        let deleted = posts::delete(&mut client, self.author, post, None).await;
        assert!(matches!(deleted.unwrap(), posts::Delete::Deleted(_)));
        let row = client
            .query_one("select max(id) from tideline.outbox", &[])
            .await;
        EventId(row.unwrap().get(0))
    }

    /// Enters an event in the ledger.
    pub(crate) async fn enter(&self, stage: LedgerStage, event: EventId) {
        let client = self.client().await;
        delivery_ledger::record(&client, stage, &[event], 1)
            .await
            .unwrap();
    }

    pub(crate) async fn has(&self, stage: LedgerStage, event: EventId) -> bool {
        let client = self.client().await;
        delivery_ledger::contains(&client, stage, event)
            .await
            .unwrap()
    }

    /// Puts the record of a post's event into Kafka as the relay, or the sweep, does.
    pub(crate) async fn produce(&self, post: &Post, event: EventId, path: envelope::Path) {
        let created = Event::PostCreated(PostCreated {
            post_id: post.id,
            author_id: post.author,
            post_us: post.created_us,
        });
        let kafka = self.deployment.kafka_config();
        let record = Record {
            topic: kafka.namespace.topic(created.event_type().entry().topic),
            key: Some(created.partition_key().to_string().into()),
            payload: Some(created.encode().into()),
            headers: vec![
                Header::text(envelope::ID, event.to_string()),
                Header::text(envelope::TYPE, created.event_type().as_str()),
                Header::text(envelope::SOURCE, "/tideline/t/outbox/1"),
                Header::text(envelope::PATH, path.as_str()),
            ],
        };
        self.producer
            .send(record, Duration::from_secs(20))
            .await
            .unwrap();
    }

    /// Writes the row of a post into a timeline.
    pub(crate) async fn write(&self, owner: UserId, post: &Post) {
        let row = TimelineRow {
            owner,
            post: post.id,
            author: post.author,
            write_us: post.created_us,
            expires_us: post.created_us.plus(30 * 24 * Micros::HOUR),
        };
        let now = PgNow::new(post.created_us, Instant::now());
        let _written = answered(async || self.store.write(&[row], &now).await).await;
    }

    /// Notes a delivery, which enters it in the ledger.
    pub(crate) async fn deliver(&self, post: PostId, event: EventId) {
        let delivery = Delivery {
            event,
            post,
            audience: 1,
            rows: 1,
            first_row_us: Some(Micros(1)),
            last_row_us: Some(Micros(2)),
        };
        let mut client = self.client().await;
        post_delivery::record_many(&mut client, 1, &[delivery])
            .await
            .unwrap();
    }

    /// A post that went all the way but for Kafka.
    pub(crate) async fn delivered(&self, key: &str) -> (Post, EventId) {
        let (post, event) = self.post(key).await;
        self.enter(LedgerStage::Published, event).await;
        self.write(self.follower, &post).await;
        self.deliver(post.id, event).await;
        (post, event)
    }

    pub(crate) fn tideline(&self, arguments: &[&str]) -> Said {
        self.tideline_with(arguments, &[])
    }

    /// Runs the command, and for a minute again while a server stalls.
    pub(crate) fn tideline_with(&self, arguments: &[&str], more: &[(&str, &str)]) -> Said {
        let mut environment = self.deployment.env();
        environment.extend(more.iter().map(|(key, value)| crate::variable(key, *value)));
        let begun = Instant::now();
        let mut again = false;
        loop {
            let output = tideline(arguments, &environment);
            let said = Said {
                code: output.status.code(),
                text: String::from_utf8(output.stdout).unwrap(),
                failure: String::from_utf8(output.stderr).unwrap(),
                again,
            };
            if !said.met_a_stall() || begun.elapsed() > Duration::from_secs(60) {
                return said;
            }
            eprintln!("again: {}{}", said.text, said.failure);
            again = true;
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}
