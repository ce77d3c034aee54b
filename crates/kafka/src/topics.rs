//! The topics of a deployment: what is declared, made and compared.
//!
//! Owns the reading of `schemas/topics.toml`. Promise: [`create`] changes nothing that exists;
//! [`verify`] names the first difference.

use std::{collections::BTreeMap, sync::LazyLock, time::Duration};

use events::{Namespace, topic::TopicKind};
use rdkafka::{
    admin::{
        AdminClient, AdminOptions, ConfigResource, NewTopic, ResourceSpecifier, TopicReplication,
    },
    error::RDKafkaErrorCode,
};
use serde::Deserialize;

use crate::{
    Error, KafkaConfig,
    log::LogContext,
    settings::{self, REQUEST_TIMEOUT},
};

/// How long [`create`] waits for brokers that are joining their cluster.
const JOINING_WITHIN: Duration = Duration::from_secs(30);

static DECLARED: LazyLock<BTreeMap<Role, Declaration>> = LazyLock::new(|| {
    let file: File = toml::from_str(include_str!("../../../schemas/topics.toml"))
        .expect("schemas/topics.toml is compiled in, and a test reads it");
    file.topic
});

/// What a topic is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Events of posts.
    Posts,
    /// Events of follows.
    Follows,
    /// What the relay could never produce to the posts topic.
    PostsRelayDeadLetters,
    /// What the relay could never produce to the follows topic.
    FollowsRelayDeadLetters,
    /// What fan-out could never deliver.
    FanoutPostsDeadLetters,
    /// Records by which the sweep learns that the broker takes records; nobody reads them.
    Probe,
}

impl Role {
    /// The topic's name in a deployment.
    pub fn name(self, namespace: &Namespace) -> String {
        match self {
            Self::Posts => namespace.topic(TopicKind::Posts),
            Self::Follows => namespace.topic(TopicKind::Follows),
            Self::PostsRelayDeadLetters => namespace.relay_dead_letters(TopicKind::Posts),
            Self::FollowsRelayDeadLetters => namespace.relay_dead_letters(TopicKind::Follows),
            Self::FanoutPostsDeadLetters => namespace.fanout_posts_dead_letters(),
            Self::Probe => namespace.probe(),
        }
    }
}

/// One topic of one deployment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topic {
    /// What it is for.
    pub role: Role,
    /// Its full name.
    pub name: String,
    /// Partitions at least.
    pub partitions: i32,
    /// How long records are kept; `None` is for ever.
    pub retention: Option<Duration>,
    /// The largest record batch.
    pub max_message_bytes: u32,
    /// The field that is the record key.
    pub key: String,
    /// The part that produces to it.
    pub owner: String,
}

/// What [`create`] did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Topics that were made.
    pub created: Vec<String>,
    /// Topics that were there.
    pub existing: Vec<String>,
}

/// Every topic that is declared, by its name in this namespace.
pub fn declared(namespace: &Namespace) -> Vec<Topic> {
    DECLARED
        .iter()
        .map(|(&role, declaration)| Topic {
            role,
            name: role.name(namespace),
            partitions: declaration.partitions,
            retention: declaration.retention.0,
            max_message_bytes: declaration.max_message_bytes,
            key: declaration.key.clone(),
            owner: declaration.owner.clone(),
        })
        .collect()
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
    for (topic, live) in topics.iter().zip(describe(&client, &names).await?) {
        let expected = [
            ("message.timestamp.type", "LogAppendTime".to_owned()),
            ("cleanup.policy", "delete".to_owned()),
            ("retention.ms", retention_ms(topic.retention)),
            ("max.message.bytes", topic.max_message_bytes.to_string()),
        ];
        for (setting, value) in expected {
            let found = live
                .get(setting)
                .and_then(|entry| entry.value.clone())
                .unwrap_or_default();
            if found != value {
                return Err(differs(topic, setting, value, found));
            }
        }
    }
    Ok(())
}

/// The live limit of one topic.
pub(crate) async fn max_message_bytes(config: &KafkaConfig, topic: &str) -> Result<usize, Error> {
    let live = describe(&admin(config)?, &[topic]).await?;
    let value = live
        .first()
        .and_then(|live| live.get("max.message.bytes"))
        .and_then(|entry| entry.value.as_ref());
    value
        .and_then(|text| text.parse().ok())
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

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    topic: BTreeMap<Role, Declaration>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Declaration {
    partitions: i32,
    retention: Retention,
    max_message_bytes: u32,
    key: String,
    owner: String,
}

#[derive(Debug, Deserialize)]
#[serde(try_from = "String")]
struct Retention(Option<Duration>);

impl TryFrom<String> for Retention {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        const HOUR: u64 = 3_600;
        if text == "forever" {
            return Ok(Self(None));
        }
        let (number, unit) = match (text.strip_suffix('d'), text.strip_suffix('h')) {
            (Some(days), _) => (days, 24 * HOUR),
            (None, Some(hours)) => (hours, HOUR),
            (None, None) => return Err(format!("retention {text:?}: use 7d, 12h or forever")),
        };
        let number: u64 = number
            .parse()
            .map_err(|_| format!("retention {text:?}: not a number"))?;
        Ok(Self(Some(Duration::from_secs(number * unit))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_declares_every_topic_and_key_of_the_registry() {
        let namespace = Namespace::new("t").expect("valid");
        let topics = declared(&namespace);
        assert_eq!(topics.len(), 6);
        for entry in events::registry::entries() {
            let name = namespace.topic(entry.topic);
            let topic = topics
                .iter()
                .find(|topic| topic.name == name)
                .expect("declared");
            assert_eq!((topic.partitions, topic.key.as_str()), (12, entry.key));
            assert_eq!(topic.retention, Some(Duration::from_secs(7 * 86_400)));
            let letters = namespace.relay_dead_letters(entry.topic);
            let letters = topics
                .iter()
                .find(|topic| topic.name == letters)
                .expect("declared");
            assert_eq!(letters.retention, None);
            assert!(letters.max_message_bytes > topic.max_message_bytes);
        }
        assert!(
            topics
                .iter()
                .any(|topic| topic.name == namespace.fanout_posts_dead_letters())
        );
        let probe = topics.iter().find(|topic| topic.name == namespace.probe());
        assert_eq!(
            probe.map(|topic| (topic.partitions, topic.retention)),
            Some((1, Some(Duration::from_secs(3_600))))
        );
    }

    #[test]
    fn retention_takes_days_hours_and_forever() {
        let read = |text: &str| Retention::try_from(text.to_owned()).map(|r| r.0);
        assert_eq!(read("12h"), Ok(Some(Duration::from_secs(43_200))));
        assert_eq!(read("forever"), Ok(None));
        assert!(read("7 weeks").is_err());
    }
}
