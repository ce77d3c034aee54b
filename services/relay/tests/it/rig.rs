//! A deployment, relays that run on it in this process, and what Kafka has of it.

use std::{collections::BTreeMap, time::Duration};

use relay::config::Config;
use runtime::{
    Shutdown,
    config::{Sources, load},
    exit::Exit,
};
use testkit::{Deployment, answered, eventually, eventually_within, free_address, http_get};
use tokio::task::JoinHandle;
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
        Self::of(Deployment::without_timelines().await).await
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

    /// Waits until a topic has at least `count` records; answers all it has.
    pub(crate) async fn records(&self, topic: &str, count: usize) -> Vec<Stored> {
        let what = format!("{count} records in {topic}");
        eventually_within(Duration::from_secs(60), &what, async || {
            let all = self.all_records(topic).await;
            (all.len() >= count).then_some(all)
        })
        .await
    }

    /// Everything the topic has now, as soon as all of it can be read.
    pub(crate) async fn all_records(&self, topic: &str) -> Vec<Stored> {
        let kafka = self.deployment.kafka_config();
        answered(|| kafka::snapshot::read(&kafka, topic, |record| Some(stored(record)))).await
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
        http_get(&self.admin, path).await
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

/// A record with its headers as text.
fn stored(record: kafka::Consumed) -> Stored {
    let text = |value: Option<bytes::Bytes>| {
        String::from_utf8(value.unwrap_or_default().to_vec()).unwrap()
    };
    let headers = record.headers.into_iter();
    Stored {
        partition: record.partition,
        key: record.key.map(|key| key.to_vec()),
        payload: record.payload.map(|payload| payload.to_vec()),
        headers: headers
            .map(|header| (header.name.into_owned(), text(header.value)))
            .collect(),
    }
}
