//! The topics of a deployment: what is declared, made and compared.
//!
//! Owns the reading of `schemas/topics.toml`; `live` compares it with the brokers.

mod live;

use std::{collections::BTreeMap, sync::LazyLock, time::Duration};

use events::{Namespace, topic::TopicKind};
use serde::Deserialize;

pub use live::{Report, create, remove, verify};
pub(crate) use live::{admin, max_message_bytes, options};

static DECLARED: LazyLock<BTreeMap<Role, Declaration>> = LazyLock::new(|| {
    let file: File = toml::from_str(include_str!("../../../../schemas/topics.toml"))
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
