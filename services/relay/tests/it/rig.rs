//! A deployment, relays that run on it in this process, and what Kafka has of it.

use std::{collections::BTreeMap, time::Duration};

use rdkafka::{
    ClientConfig, Message as _, Offset, TopicPartitionList,
    consumer::{BaseConsumer, Consumer as _},
    message::Headers as _,
};
use relay::config::Config;
use runtime::{
    Shutdown,
    config::{Sources, load},
    exit::Exit,
};
use testkit::{Deployment, eventually, free_address};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    task::JoinHandle,
};
use tokio_postgres::Client;

/// A deployment with an open SQL connection.
pub(crate) struct Rig {
    pub(crate) sql: Client,
    pub(crate) deployment: Deployment,
}

/// A relay that runs.
pub(crate) struct Running {
    admin: String,
    shutdown: Shutdown,
    task: JoinHandle<Result<(), Exit>>,
}

/// A record as Kafka has it.
#[derive(Clone, Debug)]
pub(crate) struct Stored {
    pub(crate) partition: i32,
    pub(crate) key: Option<Vec<u8>>,
    pub(crate) payload: Option<Vec<u8>>,
    pub(crate) headers: BTreeMap<String, String>,
}

impl Stored {
    pub(crate) fn id(&self) -> i64 {
        self.headers["ce_id"].parse().unwrap()
    }
}

impl Rig {
    pub(crate) async fn new() -> Self {
        Self::of(Deployment::new().await).await
    }

    pub(crate) async fn of(deployment: Deployment) -> Self {
        Self {
            sql: deployment.sql().await,
            deployment,
        }
    }

    /// Starts a relay and does not wait for it.
    pub(crate) fn spawn(&self, options: &[(&str, &str)]) -> Running {
        let admin = free_address();
        let mut env = self.deployment.env();
        env.push(("TIDELINE_RELAY__ADMIN".to_owned(), admin.clone()));
        env.extend(
            options
                .iter()
                .map(|(key, value)| ((*key).to_owned(), (*value).to_owned())),
        );
        let config: Config = load(&Sources::of_variables(env)).unwrap();
        let shutdown = Shutdown::new();
        let task = tokio::spawn(relay::run(config, shutdown.clone()));
        Running {
            admin,
            shutdown,
            task,
        }
    }

    /// Starts a relay and waits until records flow.
    pub(crate) async fn start(&self) -> Running {
        let running = self.spawn(&[]);
        running.reaches("streaming").await;
        running
    }

    /// Inserts posts as rows of one transaction; answers their ids.
    pub(crate) async fn insert(&mut self, keys: &[&str]) -> Vec<i64> {
        let txn = self.sql.transaction().await.unwrap();
        let mut ids = Vec::new();
        for key in keys {
            let row = txn
                .query_one(
                    "insert into tideline.outbox (aggregatetype, aggregateid, partition_key, type, payload, traceparent)
                     values ('post', '77', $1, 'tideline.post.created.v1', '{\"post_id\": \"77\"}', '00-1-2-01')
                     returning id",
                    &[key],
                )
                .await
                .unwrap();
            ids.push(row.get(0));
        }
        txn.commit().await.unwrap();
        ids
    }

    /// Inserts one row with this payload; answers its id.
    pub(crate) async fn insert_payload(&self, payload: &str) -> i64 {
        let sql =
            "insert into tideline.outbox (aggregatetype, aggregateid, partition_key, type, payload)
             values ('post', '77', '5', 'tideline.post.created.v1', $1::text::json) returning id";
        self.sql.query_one(sql, &[&payload]).await.unwrap().get(0)
    }

    pub(crate) fn topic(&self, suffix: &str) -> String {
        format!("{}.{suffix}", self.deployment.namespace())
    }

    /// Reads a topic from its start until it has given at least `count` records.
    pub(crate) async fn records(&self, topic: &str, count: usize) -> Vec<Stored> {
        let brokers = self.deployment.servers().kafka_brokers();
        let topic = topic.to_owned();
        let read = tokio::task::spawn_blocking(move || read(&brokers, &topic, count));
        read.await.unwrap()
    }

    /// Everything the topic has now.
    pub(crate) async fn all_records(&self, topic: &str) -> Vec<Stored> {
        let ends = kafka::Admin::new(&self.deployment.kafka_config())
            .unwrap()
            .end_offsets(topic)
            .await
            .unwrap();
        self.records(topic, usize::try_from(ends.values().sum::<i64>()).unwrap())
            .await
    }

    pub(crate) async fn one<T: for<'a> tokio_postgres::types::FromSql<'a>>(&self, sql: &str) -> T {
        self.sql.query_one(sql, &[]).await.unwrap().get(0)
    }

    /// How often the sweep was asked to look for this reason.
    pub(crate) async fn requests(&self, reason: &str) -> i64 {
        let sql = format!("select count(*) from tideline.sweep_request where reason = '{reason}'");
        self.one(&sql).await
    }

    /// Waits until the topic has a record of this event; answers it.
    pub(crate) async fn record_of(&self, topic: &str, id: i64) -> Stored {
        eventually("the record is in the topic", async || {
            let all = self.all_records(topic).await;
            all.into_iter().find(|record| record.id() == id)
        })
        .await
    }

    /// Waits until the slot has confirmed everything there is now.
    pub(crate) async fn confirmed_all(&self) {
        let now: String = self.one("select pg_current_wal_lsn()::text").await;
        let sql = format!(
            "select confirmed_flush_lsn >= '{now}'::pg_lsn from pg_replication_slots where slot_name = '{}'",
            self.deployment.slot()
        );
        eventually("the slot confirms everything", async || {
            self.one::<bool>(&sql).await.then_some(())
        })
        .await;
    }
}

impl Running {
    /// Waits until the relay says that it is in this state.
    pub(crate) async fn reaches(&self, state: &str) {
        let wanted = format!("tideline_relay_state{{state=\"{state}\"}} 1");
        eventually(state, async || {
            assert!(
                !self.task.is_finished(),
                "the relay ended on its way to {state}"
            );
            self.get("/metrics")
                .await
                .filter(|(_, text)| text.contains(&wanted))
                .map(drop)
        })
        .await;
    }

    /// The value of a series.
    pub(crate) async fn metric(&self, series: &str) -> f64 {
        let (_, text) = self.get("/metrics").await.unwrap();
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("no series {series}"))
            .parse()
            .unwrap()
    }

    /// Status and body of the admin port, if it answers.
    pub(crate) async fn get(&self, path: &str) -> Option<(u16, String)> {
        get(&self.admin, path).await
    }

    /// Asks the relay to stop and waits until it has.
    pub(crate) async fn stop(self) {
        self.shutdown.trigger();
        tokio::time::timeout(Duration::from_secs(30), self.task)
            .await
            .unwrap()
            .unwrap()
            .unwrap();
    }

    /// Ends it without a word, as a kill does.
    pub(crate) async fn kill(self) {
        self.task.abort();
        let _aborted = self.task.await;
    }
}

/// Status and body of an admin port, if it answers.
pub(crate) async fn get(address: &str, path: &str) -> Option<(u16, String)> {
    let mut stream = TcpStream::connect(address).await.ok()?;
    let request = format!("GET {path} HTTP/1.1\r\nhost: relay\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.ok()?;
    let status = answer.split(' ').nth(1)?.parse().ok()?;
    Some((status, answer))
}

fn read(brokers: &str, topic: &str, count: usize) -> Vec<Stored> {
    let consumer: BaseConsumer = ClientConfig::new()
        .set("bootstrap.servers", brokers)
        .set("group.id", "relay-test")
        .set("enable.auto.commit", "false")
        .set("fetch.wait.max.ms", "50")
        .create()
        .unwrap();
    let metadata = consumer
        .fetch_metadata(Some(topic), Duration::from_secs(10))
        .unwrap();
    let mut assignment = TopicPartitionList::new();
    for partition in metadata.topics()[0].partitions() {
        assignment
            .add_partition_offset(topic, partition.id(), Offset::Beginning)
            .unwrap();
    }
    consumer.assign(&assignment).unwrap();
    let deadline = std::time::Instant::now() + Duration::from_secs(60);
    let mut found = Vec::new();
    while found.len() < count {
        assert!(
            std::time::Instant::now() < deadline,
            "{} of {count} records in {topic}",
            found.len()
        );
        let Some(message) = consumer.poll(Duration::from_millis(100)) else {
            continue;
        };
        let message = message.unwrap();
        let headers = message.headers().map_or_else(BTreeMap::new, |headers| {
            let text = |value: Option<&[u8]>| {
                String::from_utf8(value.unwrap_or_default().to_vec()).unwrap()
            };
            headers
                .iter()
                .map(|header| (header.key.to_owned(), text(header.value)))
                .collect()
        });
        found.push(Stored {
            partition: message.partition(),
            key: message.key().map(<[u8]>::to_vec),
            payload: message.payload().map(<[u8]>::to_vec),
            headers,
        });
    }
    found
}
