//! Questions to the broker that change nothing.

use std::{collections::BTreeMap, sync::Arc};

use rdkafka::{
    TopicPartitionList,
    consumer::{BaseConsumer, Consumer as _},
    metadata::MetadataPartition,
    topic_partition_list::Offset,
};

use crate::{
    Error, KafkaConfig,
    log::LogContext,
    producer::blocking,
    settings::{self, REQUEST_TIMEOUT},
};

type Observer = BaseConsumer<LogContext>;

/// Asks about topics, groups and the brokers' health. Cheap to clone.
#[derive(Clone)]
pub struct Admin {
    config: Arc<KafkaConfig>,
    client: Arc<Observer>,
}

impl Admin {
    /// A client that joins no group. Connects in the background.
    ///
    /// # Errors
    /// When librdkafka refuses the settings.
    pub fn new(config: &KafkaConfig) -> Result<Self, Error> {
        let client = settings::admin_config(config)
            .create_with_context(LogContext::default())
            .map_err(|source| Error::Client {
                client: "admin",
                source,
            })?;
        Ok(Self {
            config: Arc::new(config.clone()),
            client: Arc::new(client),
        })
    }

    /// Whether a broker answers.
    ///
    /// # Errors
    /// When none does within the request timeout.
    pub async fn ping(&self) -> Result<(), Error> {
        let client = Arc::clone(&self.client);
        // One topic keeps the answer small, whatever the cluster holds.
        blocking("metadata", move || {
            client
                .fetch_metadata(Some("__consumer_offsets"), REQUEST_TIMEOUT)
                .map(drop)
                .map_err(|source| request("metadata", source))
        })
        .await
    }

    /// The offset behind the last record of each partition.
    ///
    /// # Errors
    /// When the broker does not answer or the topic does not exist.
    pub async fn end_offsets(&self, topic: &str) -> Result<BTreeMap<i32, i64>, Error> {
        Ok(self
            .watermarks(topic)
            .await?
            .into_iter()
            .map(|(partition, (_, end))| (partition, end))
            .collect())
    }

    /// First offset and the offset behind the last record, of each partition.
    ///
    /// # Errors
    /// When the broker does not answer or the topic does not exist.
    pub async fn watermarks(&self, topic: &str) -> Result<BTreeMap<i32, (i64, i64)>, Error> {
        let (client, topic) = (Arc::clone(&self.client), topic.to_owned());
        blocking("watermarks", move || {
            partitions(&client, &topic)?
                .into_iter()
                .map(|partition| {
                    client
                        .fetch_watermarks(&topic, partition, REQUEST_TIMEOUT)
                        .map(|marks| (partition, marks))
                        .map_err(|source| request("offsets", source))
                })
                .collect()
        })
        .await
    }

    /// How many partitions `topic` has.
    ///
    /// # Errors
    /// When the broker does not answer or the topic does not exist.
    pub async fn partition_count(&self, topic: &str) -> Result<i32, Error> {
        let (client, topic) = (Arc::clone(&self.client), topic.to_owned());
        blocking("metadata", move || {
            partitions(&client, &topic).map(|found| i32::try_from(found.len()).unwrap_or(i32::MAX))
        })
        .await
    }

    /// How many copies of each partition are in sync with its leader, which counts as one.
    ///
    /// # Errors
    /// When the broker does not answer or the topic does not exist.
    pub async fn copies_in_sync(&self, topic: &str) -> Result<BTreeMap<i32, usize>, Error> {
        let (client, topic) = (Arc::clone(&self.client), topic.to_owned());
        blocking("metadata", move || {
            let copies = |partition: &MetadataPartition| (partition.id(), partition.isr().len());
            of_partitions(&client, &topic, copies)
        })
        .await
    }

    /// What `group` has committed of each partition of `topic`; `None` where it has nothing.
    ///
    /// # Errors
    /// When the broker does not answer or the topic does not exist.
    pub async fn committed(
        &self,
        group: &str,
        topic: &str,
    ) -> Result<BTreeMap<i32, Option<i64>>, Error> {
        let config = settings::observer_config(&self.config, group);
        let (client, topic) = (Arc::clone(&self.client), topic.to_owned());
        blocking("committed offsets", move || {
            let mut wanted = TopicPartitionList::new();
            for partition in partitions(&client, &topic)? {
                wanted.add_partition(&topic, partition);
            }
            let observer: Observer =
                config
                    .create_with_context(LogContext::default())
                    .map_err(|source| Error::Client {
                        client: "admin",
                        source,
                    })?;
            let found = observer
                .committed_offsets(wanted, REQUEST_TIMEOUT)
                .map_err(|source| request("committed offsets", source))?;
            Ok(found
                .elements()
                .iter()
                .map(|element| match element.offset() {
                    Offset::Offset(offset) => (element.partition(), Some(offset)),
                    _ => (element.partition(), None),
                })
                .collect())
        })
        .await
    }
}

impl std::fmt::Debug for Admin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Admin")
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}

fn partitions(client: &Observer, topic: &str) -> Result<Vec<i32>, Error> {
    of_partitions(client, topic, MetadataPartition::id)
}

fn of_partitions<T, C: FromIterator<T>>(
    client: &Observer,
    topic: &str,
    ask: impl Fn(&MetadataPartition) -> T,
) -> Result<C, Error> {
    let metadata = client
        .fetch_metadata(Some(topic), REQUEST_TIMEOUT)
        .map_err(|source| request("metadata", source))?;
    let found = metadata.topics().iter().find(|found| found.name() == topic);
    match found {
        Some(found) if found.error().is_none() && !found.partitions().is_empty() => {
            Ok(found.partitions().iter().map(ask).collect())
        }
        _ => Err(Error::TopicMissing {
            topic: topic.to_owned(),
        }),
    }
}

fn request(what: &'static str, source: rdkafka::error::KafkaError) -> Error {
    Error::Request {
        what: what.to_owned(),
        source,
    }
}
