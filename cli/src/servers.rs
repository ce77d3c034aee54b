//! The way to the servers of the deployment.

use database::Pool;
use kafka::KafkaConfig;
use runtime::exit::Exit;
use timeline_store::{CqlConfig, CqlTimelines, StoreError};

use crate::{config::Config, error::Error};

/// Connections of one command: it asks one thing after the other, and writes beside its reads.
const CONNECTIONS: usize = 2;

/// A pool of few connections.
///
/// # Errors
/// [`Exit::Config`] with a URL that is none.
pub(crate) fn pool(config: &Config) -> Result<Pool, Exit> {
    Pool::new(config.postgres.url.expose(), CONNECTIONS, "tideline-cli").map_err(Exit::config)
}

/// Where Kafka is.
///
/// # Errors
/// [`Exit::Config`] with a namespace that is none.
pub(crate) fn kafka(config: &Config) -> Result<KafkaConfig, Exit> {
    let kafka = &config.kafka;
    KafkaConfig::new(&kafka.brokers, &kafka.namespace, kafka.replication_factor)
        .map_err(Exit::config)
}

/// The timeline store.
///
/// # Errors
/// When it does not answer, or has not the schema.
pub(crate) async fn store(config: &Config) -> Result<CqlTimelines, StoreError> {
    CqlTimelines::connect(&CqlConfig::at(&config.cql.nodes, &config.cql.keyspace)).await
}

/// The contact points of the CQL store.
pub(crate) fn nodes(config: &Config) -> Vec<String> {
    timeline_store::contact_points(&config.cql.nodes)
}

/// A connection to a database that has the schema, or the way out of the process.
pub(crate) async fn client(pool: &Pool) -> Result<database::Client, Exit> {
    database::migrations::verify(pool)
        .await
        .map_err(|error| Error::from(error).into_exit())?;
    pool.get()
        .await
        .map_err(|error| Error::from(error).into_exit())
}
