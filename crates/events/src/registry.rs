//! The one registry: event type → topic, key, hops, and the stages that must account for it.
//!
//! Owns the closed list of event types. To add a type: a variant here, a payload in
//! [`crate::payload`], a schema with examples under `schemas/events/`; the compiler and the tests
//! name the rest.

use crate::topic::{Group, TopicKind};

/// A type and version of event. The text form is `ce_type` and the outbox column `type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EventType {
    /// A post was created.
    PostCreatedV1,
    /// A post was deleted.
    PostDeletedV1,
    /// An account began to follow another.
    FollowCreatedV1,
    /// An account stopped following another.
    FollowDeletedV1,
}

/// A way that an event of a type takes after it was published: whoever reads this topic in this
/// group has seen the event once the group's offsets have passed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Hop {
    /// The topic.
    pub topic: TopicKind,
    /// The group that reads it.
    pub group: Group,
}

/// A stage of the delivery ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stage {
    /// The broker acknowledged the record; entered by the relay.
    Published,
    /// Every row of the audience is written; entered by fan-out.
    Delivered,
}

/// What the registry says about one event type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The type.
    pub event_type: EventType,
    /// `ce_type`.
    pub name: &'static str,
    /// Outbox column `aggregatetype`.
    pub aggregate: &'static str,
    /// The topic it is published to.
    pub topic: TopicKind,
    /// The payload field that is the record key.
    pub key: &'static str,
    /// The stages that must account for it.
    pub stages: &'static [Stage],
    /// The hops from published to delivered, in the order in which an event takes them. Empty for
    /// a type that nothing consumes yet.
    pub hops: &'static [Hop],
}

const POSTS_HOPS: &[Hop] = &[Hop {
    topic: TopicKind::Posts,
    group: Group::FanoutPosts,
}];

const ENTRIES: [Entry; 4] = [
    Entry {
        event_type: EventType::PostCreatedV1,
        name: "tideline.post.created.v1",
        aggregate: "post",
        topic: TopicKind::Posts,
        key: "author_id",
        stages: &[Stage::Published, Stage::Delivered],
        hops: POSTS_HOPS,
    },
    Entry {
        event_type: EventType::PostDeletedV1,
        name: "tideline.post.deleted.v1",
        aggregate: "post",
        topic: TopicKind::Posts,
        key: "author_id",
        stages: &[Stage::Published, Stage::Delivered],
        hops: POSTS_HOPS,
    },
    Entry {
        event_type: EventType::FollowCreatedV1,
        name: "tideline.follow.created.v1",
        aggregate: "follow",
        topic: TopicKind::Follows,
        key: "follower_id",
        stages: &[Stage::Published],
        hops: &[],
    },
    Entry {
        event_type: EventType::FollowDeletedV1,
        name: "tideline.follow.deleted.v1",
        aggregate: "follow",
        topic: TopicKind::Follows,
        key: "follower_id",
        stages: &[Stage::Published],
        hops: &[],
    },
];

/// Every event type there is.
pub const fn entries() -> &'static [Entry] {
    &ENTRIES
}

impl EventType {
    /// What the registry says about this type.
    pub fn entry(self) -> &'static Entry {
        let index = match self {
            Self::PostCreatedV1 => 0,
            Self::PostDeletedV1 => 1,
            Self::FollowCreatedV1 => 2,
            Self::FollowDeletedV1 => 3,
        };
        &ENTRIES[index]
    }

    /// The type with this `ce_type`, if there is one.
    pub fn from_name(name: &str) -> Option<Self> {
        ENTRIES
            .iter()
            .find(|entry| entry.name == name)
            .map(|entry| entry.event_type)
    }

    /// `ce_type`.
    pub fn as_str(self) -> &'static str {
        self.entry().name
    }
}

impl Stage {
    /// Every stage, in the order in which an event reaches them.
    pub const ALL: [Self; 2] = [Self::Published, Self::Delivered];

    /// Whether an outbox day is kept until this stage has finished its rows (D-11), and whether
    /// the account must balance for it (D-9).
    pub const fn critical(self) -> bool {
        match self {
            Self::Published | Self::Delivered => true,
        }
    }

    /// Whether events of this type must reach this stage. Ids of other types are entered as not
    /// consumed, so that the stage stays dense.
    pub fn accounts_for(self, event_type: EventType) -> bool {
        event_type.entry().stages.contains(&self)
    }

    /// The hops that lead to this stage for any type it accounts for, each once, in order. Empty
    /// for `published`, which the log's position decides.
    pub fn hops(self) -> Vec<Hop> {
        let mut hops = Vec::new();
        if self == Self::Delivered {
            for hop in ENTRIES.iter().flat_map(|entry| entry.hops) {
                if !hops.contains(hop) {
                    hops.push(*hop);
                }
            }
        }
        hops
    }

    /// The stage with this text, if there is one.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|stage| stage.as_str() == name)
    }

    /// The text stored in `delivery_ledger.stage`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Published => "published",
            Self::Delivered => "delivered",
        }
    }
}
