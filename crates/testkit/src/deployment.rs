//! One deployment of Tideline with names of its own on the shared servers.

use database::migrations;
use events::Namespace;
use kafka::KafkaConfig;
use tokio_postgres::NoTls;

use crate::{Cluster, Servers, names::unique};

/// A fresh database, topics, keyspace and slot. Dropping it drops slot, topics and keyspace, so
/// that the servers do not run out of them; the database goes with the instance's data.
#[derive(Debug)]
pub struct Deployment {
    name: String,
    servers: &'static Servers,
    /// URL of the database `postgres` where its own is.
    maintenance_url: String,
}

impl Deployment {
    /// Makes one, schema and topics included.
    ///
    /// # Panics
    /// When a server refuses.
    pub async fn new() -> Self {
        let maintenance_url = Servers::get().await.postgres_url("postgres");
        Self::at(maintenance_url).await
    }

    /// Makes one with its database on another server than the shared one.
    ///
    /// # Panics
    /// When a server refuses.
    pub async fn on(cluster: &Cluster) -> Self {
        Self::at(cluster.url("postgres")).await
    }

    async fn at(maintenance_url: String) -> Self {
        let servers = Servers::get().await;
        let deployment = Self {
            name: unique("t"),
            servers,
            maintenance_url,
        };
        let url = deployment.database_url();
        let slot = deployment.slot();
        let options = migrations::Options {
            url: &url,
            slot: &slot,
            publication: "tideline_outbox",
        };
        let _report = migrations::migrate(&options)
            .await
            .expect("migrate Postgres");
        let _report = kafka::topics::create(&deployment.kafka_config())
            .await
            .expect("create the topics");
        let nodes = [servers.cql_node()];
        let _migrated = timeline_store::schema::migrate(&nodes, &deployment.keyspace(), 1)
            .await
            .expect("migrate the CQL store");
        deployment
    }

    /// The servers it lives on.
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
            brokers: self.servers.kafka_brokers(),
            namespace: self.namespace(),
            replication_factor: 1,
        }
    }

    /// The configuration for its services: every address and name, but no listen addresses.
    pub fn env(&self) -> Vec<(String, String)> {
        let own = [
            ("TIDELINE_POSTGRES__URL", self.database_url()),
            ("TIDELINE_KAFKA__BROKERS", self.servers.kafka_brokers()),
            ("TIDELINE_KAFKA__NAMESPACE", self.name.clone()),
            ("TIDELINE_CQL__NODES", self.servers.cql_node()),
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
        let kafka = self.kafka_config();
        let (nodes, keyspace) = ([self.servers.cql_node()], self.keyspace());
        // The test's runtime may be ending, so this one is its own.
        let tear_down = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .ok()?;
            runtime.block_on(async {
                let _outcome = kafka::topics::remove(&kafka).await;
                let _outcome = timeline_store::schema::remove(&nodes, &keyspace).await;
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
