//! The topics on the brokers: made, compared with what is declared, removed.
//!
//! Promise: [`create`] changes nothing that exists; [`verify`] names the first difference.

use std::time::Duration;

use rdkafka::{
    admin::{
        AdminClient, AdminOptions, ConfigResource, NewTopic, ResourceSpecifier, TopicReplication,
    },
    error::RDKafkaErrorCode,
};

use super::{Topic, declared};
use crate::{
    Error, KafkaConfig,
    log::LogContext,
    settings::{self, REQUEST_TIMEOUT},
};

/// Topic setting: see [`min_in_sync`].
const MIN_IN_SYNC: &str = "min.insync.replicas";

/// How long [`create`] waits for brokers that are joining their cluster.
const JOINING_WITHIN: Duration = Duration::from_secs(30);

/// What [`create`] did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Topics that were made.
    pub created: Vec<String>,
    /// Topics that were there.
    pub existing: Vec<String>,
}

/// Makes the topics that are missing. Safe to repeat and to run twice at once. Rides over brokers
/// that are still joining their cluster, for at most half a minute.
///
/// # Errors
/// When the broker does not answer or refuses a topic.
pub async fn create(config: &KafkaConfig) -> Result<Report, Error> {
    let deadline = tokio::time::Instant::now() + JOINING_WITHIN;
    loop {
        let error = match create_once(config).await {
            Ok(report) => return Ok(report),
            Err(error) => error,
        };
        // A cluster has too few brokers for any replication factor while they are joining.
        let is_joining = matches!(
            error,
            Error::Topic {
                code: RDKafkaErrorCode::InvalidReplicationFactor,
                ..
            }
        );
        if !(is_joining || error.class().is_retried()) || tokio::time::Instant::now() >= deadline {
            return Err(error);
        }
        tokio::time::sleep(Duration::from_millis(250)).await;
    }
}

async fn create_once(config: &KafkaConfig) -> Result<Report, Error> {
    let client = admin(config)?;
    let topics = declared(&config.namespace);
    let texts: Vec<_> = topics
        .iter()
        .map(|t| (retention_ms(t.retention), t.max_message_bytes.to_string()))
        .collect();
    let in_sync = min_in_sync(config.replication_factor).to_string();
    let wanted: Vec<_> = topics
        .iter()
        .zip(&texts)
        .map(|(topic, (retention, max_bytes))| {
            NewTopic::new(
                &topic.name,
                topic.partitions,
                TopicReplication::Fixed(config.replication_factor),
            )
            .set("cleanup.policy", "delete")
            .set("message.timestamp.type", "LogAppendTime")
            .set("retention.ms", retention)
            .set("max.message.bytes", max_bytes)
            .set(MIN_IN_SYNC, &in_sync)
        })
        .collect();
    let results = client
        .create_topics(&wanted, &options())
        .await
        .map_err(|source| Error::Request {
            what: "new topics".into(),
            source,
        })?;
    let mut report = Report::default();
    for result in results {
        match result {
            Ok(name) => report.created.push(name),
            Err((name, RDKafkaErrorCode::TopicAlreadyExists)) => report.existing.push(name),
            Err((topic, code)) => {
                return Err(Error::Topic {
                    what: "creating",
                    topic,
                    code,
                });
            }
        }
    }
    visible(config, &topics).await?;
    Ok(report)
}

/// Waits until the brokers tell of every topic: creation is acknowledged before all know of it.
async fn visible(config: &KafkaConfig, topics: &[Topic]) -> Result<(), Error> {
    let observer = crate::Admin::new(config)?;
    let deadline = tokio::time::Instant::now() + REQUEST_TIMEOUT;
    for topic in topics {
        while let Err(error) = observer.partition_count(&topic.name).await {
            if tokio::time::Instant::now() >= deadline {
                return Err(error);
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
    Ok(())
}

/// Deletes every topic of the deployment, records and all: for tearing a test deployment down, so
/// that a shared broker does not fill up with partitions. What is missing is no error.
///
/// # Errors
/// When the broker does not answer.
pub async fn remove(config: &KafkaConfig) -> Result<(), Error> {
    let topics = declared(&config.namespace);
    let names: Vec<_> = topics.iter().map(|topic| topic.name.as_str()).collect();
    let _outcome_by_topic = admin(config)?
        .delete_topics(&names, &options())
        .await
        .map_err(|source| Error::Request {
            what: "the end of topics".into(),
            source,
        })?;
    Ok(())
}

/// Compares the live topics with the declared ones.
///
/// # Errors
/// [`Error::TopicMissing`] and [`Error::TopicDiffers`] name the first difference; others when the
/// broker does not answer.
pub async fn verify(config: &KafkaConfig) -> Result<(), Error> {
    let client = admin(config)?;
    let topics = declared(&config.namespace);
    let observer = crate::Admin::new(config)?;
    for topic in &topics {
        let found = observer.partition_count(&topic.name).await?;
        if found < topic.partitions {
            return Err(differs(
                topic,
                "partitions",
                topic.partitions.to_string(),
                found.to_string(),
            ));
        }
    }
    let names: Vec<_> = topics.iter().map(|topic| topic.name.as_str()).collect();
    let in_sync = min_in_sync(config.replication_factor);
    for (topic, live) in topics.iter().zip(describe(&client, &names).await?) {
        let found = setting(&live, MIN_IN_SYNC);
        if found.parse().is_ok_and(|found: i32| found < in_sync) {
            let at_least = format!("{in_sync} or more");
            return Err(differs(topic, MIN_IN_SYNC, at_least, found));
        }
        let expected = [
            ("message.timestamp.type", "LogAppendTime".to_owned()),
            ("cleanup.policy", "delete".to_owned()),
            ("retention.ms", retention_ms(topic.retention)),
            ("max.message.bytes", topic.max_message_bytes.to_string()),
        ];
        for (name, value) in expected {
            let found = setting(&live, name);
            if found != value {
                return Err(differs(topic, name, value, found));
            }
        }
    }
    Ok(())
}

/// The live limit of one topic.
pub(crate) async fn max_message_bytes(config: &KafkaConfig, topic: &str) -> Result<usize, Error> {
    let live = describe(&admin(config)?, &[topic]).await?;
    live.first()
        .and_then(|live| setting(live, "max.message.bytes").parse().ok())
        .ok_or_else(|| Error::TopicMissing {
            topic: topic.to_owned(),
        })
}

/// A client that changes things, topics and groups.
pub(crate) fn admin(config: &KafkaConfig) -> Result<AdminClient<LogContext>, Error> {
    settings::admin_config(config)
        .create_with_context(LogContext::default())
        .map_err(|source| Error::Client {
            client: "admin",
            source,
        })
}

pub(crate) fn options() -> AdminOptions {
    AdminOptions::new()
        .request_timeout(Some(REQUEST_TIMEOUT))
        .operation_timeout(Some(REQUEST_TIMEOUT))
}

async fn describe(
    client: &AdminClient<LogContext>,
    topics: &[&str],
) -> Result<Vec<ConfigResource>, Error> {
    let wanted: Vec<_> = topics
        .iter()
        .map(|topic| ResourceSpecifier::Topic(topic))
        .collect();
    let results = client
        .describe_configs(&wanted, &options())
        .await
        .map_err(|source| Error::Request {
            what: "topic settings".into(),
            source,
        })?;
    results
        .into_iter()
        .zip(topics)
        .map(|(result, topic)| match result {
            Ok(live) => Ok(live),
            Err(RDKafkaErrorCode::UnknownTopicOrPartition) => Err(Error::TopicMissing {
                topic: (*topic).to_owned(),
            }),
            Err(code) => Err(Error::Topic {
                what: "describing",
                topic: (*topic).to_owned(),
                code,
            }),
        })
        .collect()
}

/// The live value; empty when the broker does not tell it.
fn setting(live: &ConfigResource, name: &str) -> String {
    let entry = live.get(name);
    entry
        .and_then(|entry| entry.value.clone())
        .unwrap_or_default()
}

/// How many replicas must have a record before it counts as acknowledged. Two wherever one more
/// may be away: with one, `acks=all` would acknowledge what a single broker has, and its loss
/// would take the record with it.
fn min_in_sync(replication_factor: i32) -> i32 {
    (replication_factor - 1).clamp(1, 2)
}

fn differs(topic: &Topic, setting: &'static str, expected: String, found: String) -> Error {
    Error::TopicDiffers {
        topic: topic.name.clone(),
        setting,
        expected,
        found,
    }
}

fn retention_ms(retention: Option<Duration>) -> String {
    retention.map_or_else(|| "-1".to_owned(), |kept| kept.as_millis().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_replica_may_be_away_and_one_broker_is_never_enough_where_there_are_three() {
        let wanted = [1, 2, 3, 5].map(|factor| (factor, min_in_sync(factor)));
        assert_eq!(wanted, [(1, 1), (2, 1), (3, 2), (5, 2)]);
    }
}
