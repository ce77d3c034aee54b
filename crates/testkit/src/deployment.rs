//! One deployment of Tideline with names of its own on the shared servers.

use std::time::Duration;

use database::migrations;
use events::Namespace;
use kafka::KafkaConfig;
use timeline_store::{CqlConfig, CqlTimelines};
use tokio_postgres::NoTls;

use crate::{
    Cluster, Servers, ThreeNodes, answered::answered, names::unique, nodes::COPIES,
    wait::eventually_within,
};

/// Nodes that have just been started take their time to find each other, and the lock of a
/// migration that broke off in the middle is held for two minutes.
const FOUND_WITHIN: Duration = Duration::from_secs(300);

/// A fresh database, topics, keyspace and slot. Dropping it drops slot, topics and keyspace, so
/// that the servers do not run out of them; the database goes with the instance's data.
#[derive(Debug)]
pub struct Deployment {
    name: String,
    servers: &'static Servers,
    /// URL of the database `postgres` where its own is.
    maintenance_url: String,
    /// Its own brokers, if they are not the shared one.
    brokers: Option<ThreeNodes>,
    /// Its own CQL nodes, if they are not the shared one.
    nodes: Option<ThreeNodes>,
    /// Whether it has a keyspace.
    has_timelines: bool,
}

impl Deployment {
    /// Makes one, schema and topics included.
    ///
    /// # Panics
    /// When a server refuses.
    pub async fn new() -> Self {
        Self::planned().await.made().await
    }

    /// Makes one without a keyspace, for tests that need no timelines: making a keyspace and
    /// dropping it takes as long as everything else about a deployment twice over.
    ///
    /// # Panics
    /// When a server refuses.
    pub async fn without_timelines() -> Self {
        let mut planned = Self::planned().await;
        planned.has_timelines = false;
        planned.made().await
    }

    /// Makes one whose topics are on three brokers of its own, with three copies each.
    ///
    /// # Panics
    /// When a server refuses.
    pub async fn on_three_brokers() -> Self {
        let mut planned = Self::planned().await;
        planned.brokers = Some(ThreeNodes::brokers().await);
        planned.made().await
    }

    /// Makes one whose timelines are on three CQL nodes of its own, with three copies of each.
    ///
    /// # Panics
    /// When a server refuses.
    pub async fn on_three_cql_nodes() -> Self {
        let mut planned = Self::planned().await;
        planned.nodes = Some(ThreeNodes::cql().await);
        planned.made().await
    }

    /// Makes one with its database on another server than the shared one.
    ///
    /// # Panics
    /// When a server refuses.
    pub async fn on(cluster: &Cluster) -> Self {
        let mut planned = Self::planned().await;
        planned.maintenance_url = cluster.url("postgres");
        planned.made().await
    }

    /// A name on the shared servers; nothing is made yet.
    async fn planned() -> Self {
        let servers = Servers::get().await;
        Self {
            name: unique("t"),
            servers,
            maintenance_url: servers.postgres_url("postgres"),
            brokers: None,
            nodes: None,
            has_timelines: true,
        }
    }

    async fn made(self) -> Self {
        let (url, slot) = (self.database_url(), self.slot());
        let options = migrations::Options {
            url: &url,
            slot: &slot,
            publication: "tideline_outbox",
        };
        let kafka = self.kafka_config();
        let _report = answered(|| migrations::migrate(&options)).await;
        let _report = answered(|| kafka::topics::create(&kafka)).await;
        if self.has_timelines {
            eventually_within(FOUND_WITHIN, "the CQL store is migrated", async || {
                self.migrate_cql().await
            })
            .await;
        }
        self
    }

    /// Nothing when the server timed out, or its own nodes have not found each other yet.
    async fn migrate_cql(&self) -> Option<()> {
        let (nodes, keyspace) = (self.cql_nodes(), self.keyspace());
        let migrated = timeline_store::schema::migrate(&nodes, &keyspace, self.cql_copies()).await;
        match migrated {
            Ok(_migrated) => Some(()),
            Err(error) if self.nodes.is_some() || error.class().is_retried() => {
                eprintln!("the CQL store is not migrated yet: {error:?}");
                None
            }
            Err(error) => panic!("migrate the CQL store: {error}"),
        }
    }

    /// The shared servers, on which it lives as far as it has none of its own.
    pub const fn servers(&self) -> &'static Servers {
        self.servers
    }

    /// URL of its database.
    pub fn database_url(&self) -> String {
        let (server, _) = self
            .maintenance_url
            .rsplit_once('/')
            .expect("a Postgres URL ends in /database");
        format!("{server}/{}", self.name)
    }

    /// First part of its topic and group names.
    ///
    /// # Panics
    /// Never: unique names are valid namespaces.
    pub fn namespace(&self) -> Namespace {
        Namespace::new(&self.name)
            .expect("unique names hold only lower-case letters, digits and '_'")
    }

    /// Its keyspace.
    pub fn keyspace(&self) -> String {
        self.name.clone()
    }

    /// Its replication slot.
    pub fn slot(&self) -> String {
        format!("{}_relay", self.name)
    }

    /// Where its topics are.
    pub fn kafka_config(&self) -> KafkaConfig {
        KafkaConfig {
            brokers: self.brokers.as_ref().map_or_else(
                || self.servers.kafka_brokers(),
                |own| own.addresses().join(","),
            ),
            namespace: self.namespace(),
            replication_factor: self.brokers.as_ref().map_or(1, |_| COPIES.cast_signed()),
        }
    }

    /// Contact points of the CQL store.
    pub fn cql_nodes(&self) -> Vec<String> {
        let own = self.nodes.as_ref().map(ThreeNodes::addresses);
        own.unwrap_or_else(|| vec![self.servers.cql_node()])
    }

    /// A session on its keyspace.
    ///
    /// # Panics
    /// When no node answers.
    pub async fn timelines(&self) -> CqlTimelines {
        let config = CqlConfig {
            nodes: self.cql_nodes(),
            keyspace: self.keyspace(),
            ..CqlConfig::default()
        };
        answered(|| CqlTimelines::connect(&config)).await
    }

    fn cql_copies(&self) -> u32 {
        self.nodes.as_ref().map_or(1, |_| COPIES)
    }

    /// Its own brokers.
    ///
    /// # Panics
    /// When it is on the shared one.
    pub fn brokers(&self) -> &ThreeNodes {
        let own = self.brokers.as_ref();
        own.expect("a test that loses brokers has a deployment on three of them")
    }

    /// Its own CQL nodes.
    ///
    /// # Panics
    /// When it is on the shared one.
    pub fn nodes(&self) -> &ThreeNodes {
        let own = self.nodes.as_ref();
        own.expect("a test that loses CQL nodes has a deployment on three of them")
    }

    /// The configuration for its services: every address and name, but no listen addresses.
    pub fn env(&self) -> Vec<(String, String)> {
        let own = [
            ("TIDELINE_POSTGRES__URL", self.database_url()),
            ("TIDELINE_KAFKA__BROKERS", self.kafka_config().brokers),
            ("TIDELINE_KAFKA__NAMESPACE", self.name.clone()),
            (
                "TIDELINE_KAFKA__REPLICATION_FACTOR",
                self.kafka_config().replication_factor.to_string(),
            ),
            ("TIDELINE_CQL__NODES", self.cql_nodes().join(",")),
            (
                "TIDELINE_CQL__REPLICATION_FACTOR",
                self.cql_copies().to_string(),
            ),
            ("TIDELINE_CQL__KEYSPACE", self.keyspace()),
            ("TIDELINE_POSTGRES__SLOT", self.slot()),
            (
                "TIDELINE_AUTH__SECRET_FILE",
                self.servers.setting("TIDELINE_AUTH__SECRET_FILE"),
            ),
        ];
        own.into_iter()
            .map(|(key, value)| (key.to_owned(), value))
            .collect()
    }

    /// A connection to its database, for what the typed queries do not offer.
    ///
    /// # Panics
    /// When Postgres does not answer.
    pub async fn sql(&self) -> tokio_postgres::Client {
        connect(&self.database_url()).await
    }
}

impl Drop for Deployment {
    fn drop(&mut self) {
        let url = self.maintenance_url.clone();
        let slot = self.slot();
        // What is on nodes of its own goes with them.
        let kafka = self.brokers.is_none().then(|| self.kafka_config());
        let cql = (self.has_timelines && self.nodes.is_none())
            .then(|| (self.cql_nodes(), self.keyspace()));
        // The test's runtime may be ending, so this one is its own.
        let tear_down = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .ok()?;
            runtime.block_on(async {
                if let Some(kafka) = kafka {
                    let _outcome = kafka::topics::remove(&kafka).await;
                }
                if let Some((nodes, keyspace)) = cql {
                    let _outcome = timeline_store::schema::remove(&nodes, &keyspace).await;
                }
                let (client, connection) = tokio_postgres::connect(&url, NoTls).await.ok()?;
                let _connection = tokio::spawn(connection);
                // The walsender of a relay that was killed may hold it for a while still.
                let end = "select pg_terminate_backend(active_pid) from pg_replication_slots \
                           where slot_name = $1 and active";
                let drop = "select pg_drop_replication_slot(slot_name) from pg_replication_slots \
                            where slot_name = $1 and not active";
                let held = "select count(*) from pg_replication_slots where slot_name = $1";
                for _attempt in 0..20 {
                    client.execute(end, &[&slot]).await.ok()?;
                    // Somebody may take it in between: then once more.
                    let _outcome = client.execute(drop, &[&slot]).await;
                    let left: i64 = client.query_one(held, &[&slot]).await.ok()?.get(0);
                    if left == 0 {
                        break;
                    }
                    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
                }
                Some(())
            })
        });
        // What stays is told by the server itself when it runs out of it.
        let _outcome = tear_down.join();
    }
}

async fn connect(url: &str) -> tokio_postgres::Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls)
        .await
        .expect("connect to Postgres");
    // Ends when the client is dropped.
    let _connection = tokio::spawn(connection);
    client
}
