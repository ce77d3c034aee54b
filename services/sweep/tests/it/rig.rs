//! A deployment, sweeps that run on it in this process, and what Kafka has of it.

use std::{collections::BTreeMap, time::Duration};

use events::{EventId, Stage, topic::TopicKind};
use kafka::KafkaConfig;
use runtime::{
    Shutdown,
    config::{Sources, load},
    exit::Exit,
};
use sweep::{Command, Config, summary::Summary};
use testkit::{
    Deployment, Pipeline, Service, ServiceProcess, eventually, free_address, http_get, ready,
};
use tokio::task::JoinHandle;
use tokio_postgres::{Client, types::FromSql};

/// Short waits: what is waited for in hours takes a moment in a test.
const QUICK: [(&str, &str); 7] = [
    ("TIDELINE_SWEEP__INTERVAL", "200ms"),
    ("TIDELINE_SWEEP__DISPATCH_INTERVAL", "50ms"),
    ("TIDELINE_SWEEP__POLL", "100ms"),
    ("TIDELINE_SWEEP__GRACE", "500ms"),
    ("TIDELINE_SWEEP__BLOCKED_AFTER", "3s"),
    ("TIDELINE_SWEEP__HOUSEKEEPING", "500ms"),
    ("TIDELINE_STARTUP__BUDGET", "30s"),
];

/// For tests that count what the sweep sends: a relay, a fan-out or a disk that stands still for
/// seconds may enter late what it has dealt with, and is not taken for one that lost it.
pub(crate) const PATIENT: (&str, &str) = ("TIDELINE_SWEEP__GRACE", "10s");

/// A deployment with an open SQL connection.
pub(crate) struct Rig {
    pub(crate) sql: Client,
    pub(crate) pool: database::Pool,
    pub(crate) kafka: KafkaConfig,
    pub(crate) slot: String,
    /// Ends last.
    pipeline: Pipeline,
}

/// A sweep that runs.
pub(crate) struct Running {
    admin: String,
    shutdown: Shutdown,
    task: JoinHandle<Result<(), Exit>>,
}

/// A record as Kafka has it.
#[derive(Clone, Debug)]
pub(crate) struct Stored {
    pub(crate) key: Option<Vec<u8>>,
    pub(crate) headers: BTreeMap<String, String>,
}

impl Stored {
    pub(crate) fn id(&self) -> i64 {
        self.headers["ce_id"].parse().unwrap()
    }
}

impl Rig {
    /// Postgres and Kafka.
    pub(crate) async fn new() -> Self {
        Self::of(Pipeline::of(Deployment::without_timelines().await)).await
    }

    /// The timelines too, for fan-out.
    pub(crate) async fn whole() -> Self {
        Self::of(Pipeline::new().await).await
    }

    async fn of(pipeline: Pipeline) -> Self {
        let deployment = pipeline.deployment();
        let pool = database::Pool::new(&deployment.database_url(), 4, "test").unwrap();
        let days = database::outbox::ensure_days(&pool.get().await.unwrap(), 7)
            .await
            .unwrap();
        assert_eq!((days.busy, days.blocked), (0, 0));
        Self {
            sql: deployment.sql().await,
            pool,
            kafka: deployment.kafka_config(),
            slot: deployment.slot(),
            pipeline,
        }
    }

    /// Starts a service as a process and waits until it is ready.
    pub(crate) async fn process(
        &self,
        service: Service,
        options: &[(&str, &str)],
    ) -> ServiceProcess {
        ready(self.spawn(service, options)).await
    }

    /// Starts a service as a process and does not wait.
    pub(crate) fn spawn(&self, service: Service, options: &[(&str, &str)]) -> ServiceProcess {
        let quick: Vec<_> = QUICK.iter().chain(options).copied().collect();
        self.pipeline.spawn(service, &quick)
    }

    /// A configuration with short waits and an admin port of its own, and its address.
    pub(crate) fn config(&self, options: &[(&str, &str)]) -> (Config, String) {
        let admin = free_address();
        let mut env = self.pipeline.env().to_vec();
        let own = [("TIDELINE_SWEEP__ADMIN", admin.as_str())];
        env.extend(
            QUICK
                .iter()
                .chain(&own)
                .chain(options)
                .map(|(key, value)| ((*key).to_owned(), (*value).to_owned())),
        );
        (load(&Sources::of_variables(env)).unwrap(), admin)
    }

    /// Starts a sweep in this process and waits until it is ready.
    pub(crate) async fn start(&self, options: &[(&str, &str)]) -> Running {
        let (config, admin) = self.config(options);
        let shutdown = Shutdown::new();
        let task = tokio::spawn(sweep::run(config, shutdown.clone()));
        let running = Running {
            admin,
            shutdown,
            task,
        };
        eventually("the sweep is started", async || {
            assert!(!running.task.is_finished(), "the sweep ended at its start");
            running
                .get("/startupz")
                .await
                .filter(|(status, _)| *status == 200)
        })
        .await;
        running
    }

    /// One round in this process.
    pub(crate) async fn once(&self, command: &Command, options: &[(&str, &str)]) -> Summary {
        let (config, _) = self.config(options);
        sweep::once(config, command.clone(), Shutdown::new())
            .await
            .unwrap()
    }

    /// Inserts posts and their outbox rows; answers the ids of the rows.
    pub(crate) async fn posts(&self, count: i64) -> Vec<i64> {
        let sql = "with made as (
                insert into tideline.posts (id, author_id, client_post_id, fingerprint, body, created_at)
                select tideline.next_id() + n, 1000 + n % 7, gen_random_uuid()::text, ''::bytea, 'text', clock_timestamp()
                from generate_series(1, $1::bigint) n
                returning id, author_id, created_at
            )
            insert into tideline.outbox (aggregatetype, aggregateid, partition_key, type, payload, created_at)
            select 'post', id::text, author_id::text, 'tideline.post.created.v1',
                json_build_object('post_id', id::text, 'author_id', author_id::text, 'post_us', tideline.micros(created_at)),
                created_at
            from made returning id";
        let rows = self.sql.query(sql, &[&count]).await.unwrap();
        rows.iter().map(|row| row.get(0)).collect()
    }

    /// Inserts outbox rows of follows; answers their ids.
    pub(crate) async fn follows(&self, count: i64) -> Vec<i64> {
        let sql =
            "insert into tideline.outbox (aggregatetype, aggregateid, partition_key, type, payload)
            select 'follow', '1:' || n, n::text, 'tideline.follow.created.v1',
                json_build_object('followee_id', '1', 'follower_id', n::text, 'edge_us', 1)
            from generate_series(1, $1::bigint) n returning id";
        let rows = self.sql.query(sql, &[&count]).await.unwrap();
        rows.iter().map(|row| row.get(0)).collect()
    }

    /// Drops the slot, as it is lost to an operator: then no relay is live.
    pub(crate) async fn drop_slot(&self) {
        let client = self.pool.get().await.unwrap();
        database::slots::drop_slot(&client, &self.slot)
            .await
            .unwrap();
    }

    /// Enters ids in a ledger.
    pub(crate) async fn enter(&self, stage: Stage, ids: &[i64]) {
        let client = self.pool.get().await.unwrap();
        let ids: Vec<EventId> = ids.iter().copied().map(EventId).collect();
        let epoch = database::epoch::current(&client).await.unwrap().epoch;
        database::delivery_ledger::record(&client, stage, &ids, epoch)
            .await
            .unwrap();
    }

    /// Rows that a stage accounts for and has no entry of.
    pub(crate) async fn missing(&self, stage: Stage) -> i64 {
        let client = self.pool.get().await.unwrap();
        database::delivery_ledger::missing_count(&client, stage)
            .await
            .unwrap()
    }

    /// Waits until every row is in the ledger of a stage.
    pub(crate) async fn complete(&self, stage: Stage) {
        eventually(stage.as_str(), async || {
            (self.missing(stage).await == 0).then_some(())
        })
        .await;
    }

    pub(crate) async fn one<T: for<'a> FromSql<'a>>(&self, sql: &str) -> T {
        self.sql.query_one(sql, &[]).await.unwrap().get(0)
    }

    /// How often each event is in the topic.
    pub(crate) async fn copies(&self, kind: TopicKind) -> BTreeMap<i64, usize> {
        let mut copies = BTreeMap::new();
        for record in self.records(kind).await {
            *copies.entry(record.id()).or_default() += 1;
        }
        copies
    }

    /// Everything an event topic has now.
    pub(crate) async fn records(&self, kind: TopicKind) -> Vec<Stored> {
        self.read(&self.kafka.namespace.topic(kind)).await
    }

    /// Everything a topic has now.
    pub(crate) async fn read(&self, topic: &str) -> Vec<Stored> {
        kafka::snapshot::read(&self.kafka, topic, |record| Some(stored(record)))
            .await
            .unwrap()
    }
}

impl Running {
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

    /// Waits until a series has a value that fits.
    pub(crate) async fn reaches(&self, series: &str, fits: impl Fn(f64) -> bool) {
        eventually(series, async || {
            fits(self.metric(series).await).then_some(())
        })
        .await;
    }

    /// Waits until a stage stands so.
    pub(crate) async fn stands(&self, stage: &str, standing: &str) {
        let series =
            format!("tideline_sweep_standing{{stage=\"{stage}\",standing=\"{standing}\"}}");
        self.reaches(&series, |value| value > 0.5).await;
    }

    /// Waits until looks of both stages have begun and ended from now on.
    pub(crate) async fn rounds(&self, more: f64) {
        for stage in Stage::ALL {
            let series = format!(
                "tideline_sweep_look_seconds_count{{stage=\"{}\"}}",
                stage.as_str()
            );
            let target = self.metric(&series).await + more;
            self.reaches(&series, |value| value >= target).await;
        }
    }

    /// Status and body of the admin port, if it answers.
    pub(crate) async fn get(&self, path: &str) -> Option<(u16, String)> {
        http_get(&self.admin, path).await
    }

    /// Asks the sweep to stop and waits until it has.
    pub(crate) async fn stop(self) {
        self.shutdown.trigger();
        tokio::time::timeout(Duration::from_secs(30), self.task)
            .await
            .unwrap()
            .unwrap()
            .unwrap();
    }
}

/// A command for one round of both stages.
pub(crate) fn command(stage: Stage, patience: Duration) -> Command {
    let mut command = Command::new(Some(stage.as_str()), None, None, None).unwrap();
    command.patience = patience;
    command
}

/// A record with its headers as text.
fn stored(record: kafka::Consumed) -> Stored {
    let text = |value: Option<bytes::Bytes>| {
        String::from_utf8(value.unwrap_or_default().to_vec()).unwrap()
    };
    let headers = record.headers.into_iter();
    Stored {
        key: record.key.map(|key| key.to_vec()),
        headers: headers
            .map(|header| (header.name.into_owned(), text(header.value)))
            .collect(),
    }
}
