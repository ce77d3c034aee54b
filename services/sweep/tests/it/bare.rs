//! A deployment without timelines: most of the sweep's tests need none, and making a keyspace is
//! by far the slowest part of a deployment.

use database::migrations;
use events::Namespace;
use kafka::KafkaConfig;
use testkit::{Servers, free_address, unique};

/// A fresh database, topics and slot. Dropping it drops slot and topics.
pub(crate) struct Bare {
    name: String,
    servers: &'static Servers,
}

impl Bare {
    pub(crate) async fn new() -> Self {
        let bare = Self {
            name: unique("s"),
            servers: Servers::get().await,
        };
        let (url, slot) = (bare.database_url(), bare.slot());
        let options = migrations::Options {
            url: &url,
            slot: &slot,
            publication: "tideline_outbox",
        };
        let _report = migrations::migrate(&options).await.unwrap();
        let _report = kafka::topics::create(&bare.kafka()).await.unwrap();
        bare
    }

    pub(crate) fn database_url(&self) -> String {
        self.servers.postgres_url(&self.name)
    }

    pub(crate) fn slot(&self) -> String {
        format!("{}_relay", self.name)
    }

    pub(crate) fn kafka(&self) -> KafkaConfig {
        KafkaConfig {
            brokers: self.servers.kafka_brokers(),
            namespace: Namespace::new(&self.name).unwrap(),
            replication_factor: 1,
        }
    }

    /// The configuration for relay and sweep.
    pub(crate) fn env(&self) -> Vec<(String, String)> {
        let own = [
            ("TIDELINE_POSTGRES__URL", self.database_url()),
            ("TIDELINE_POSTGRES__SLOT", self.slot()),
            ("TIDELINE_KAFKA__BROKERS", self.servers.kafka_brokers()),
            ("TIDELINE_KAFKA__NAMESPACE", self.name.clone()),
            ("TIDELINE_RELAY__ADMIN", free_address()),
            ("TIDELINE_SWEEP__ADMIN", free_address()),
        ];
        own.into_iter()
            .map(|(key, value)| (key.to_owned(), value))
            .collect()
    }
}

impl Drop for Bare {
    fn drop(&mut self) {
        let (url, slot, kafka) = (self.database_url(), self.slot(), self.kafka());
        // The test's runtime may be ending, so this one is its own.
        let tear_down = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .ok()?;
            runtime.block_on(async {
                let _outcome = kafka::topics::remove(&kafka).await;
                let pool = database::Pool::new(&url, 1, "test").ok()?;
                let client = pool.get().await.ok()?;
                database::slots::drop_slot(&client, &slot).await.ok()
            })
        });
        // What stays is told by the server itself when it runs out of it.
        let _outcome = tear_down.join();
    }
}
