//! Names of topics and consumer groups.
//!
//! Owns how a name is put together from the deployment's namespace; partitions and retention are
//! in `schemas/topics.toml`.

use std::fmt;

/// The topics that carry events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TopicKind {
    /// Posts and their deletion, keyed by author.
    Posts,
    /// Follows and their end, keyed by follower.
    Follows,
}

impl TopicKind {
    /// Every topic that carries events.
    pub const ALL: [Self; 2] = [Self::Posts, Self::Follows];

    /// The part of the name after the namespace.
    pub const fn suffix(self) -> &'static str {
        match self {
            Self::Posts => "posts.v1",
            Self::Follows => "follows.v1",
        }
    }
}

/// The consumer groups that carry events on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Group {
    /// Fan-out's posts lane.
    FanoutPosts,
}

impl Group {
    /// The part of the name after the namespace.
    pub const fn suffix(self) -> &'static str {
        match self {
            Self::FanoutPosts => "fanout-posts",
        }
    }
}

/// The first part of every topic and group name of one deployment; `tideline` by default.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Namespace(String);

impl Namespace {
    /// A namespace.
    ///
    /// # Errors
    /// When the text is empty, longer than 100 bytes, or holds anything but lower-case letters,
    /// digits, `_`, `-` and `.` (Kafka's own limit is 249 bytes for the whole name).
    pub fn new(text: &str) -> Result<Self, InvalidNamespace> {
        let allowed =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-.".contains(&byte);
        if text.is_empty() || text.len() > 100 || !text.bytes().all(allowed) {
            return Err(InvalidNamespace {
                text: text.to_owned(),
            });
        }
        Ok(Self(text.to_owned()))
    }

    /// The namespace itself.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The topic of this kind.
    pub fn topic(&self, kind: TopicKind) -> String {
        format!("{}.{}", self.0, kind.suffix())
    }

    /// Where the relay puts records of this topic that can never be produced.
    pub fn relay_dead_letters(&self, kind: TopicKind) -> String {
        format!("{}.relay.dlq", self.topic(kind))
    }

    /// Where the sweep's probe records go: an acknowledgement there says that the broker takes
    /// records.
    pub fn probe(&self) -> String {
        format!("{}.probe.v1", self.0)
    }

    /// The consumer group's name.
    pub fn group(&self, group: Group) -> String {
        format!("{}-{}", self.0, group.suffix())
    }

    /// The consumer group of fan-out's posts lane.
    pub fn fanout_posts_group(&self) -> String {
        self.group(Group::FanoutPosts)
    }

    /// Where fan-out's posts lane puts records that can never be delivered.
    pub fn fanout_posts_dead_letters(&self) -> String {
        format!(
            "{}.{}.dlq",
            self.topic(TopicKind::Posts),
            self.fanout_posts_group()
        )
    }
}

impl fmt::Display for Namespace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A namespace that Kafka would refuse or that would not sort apart.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid namespace {text:?}: use 1 to 100 lower-case letters, digits, '_', '-' or '.'")]
pub struct InvalidNamespace {
    /// The text that was refused.
    pub text: String,
}
