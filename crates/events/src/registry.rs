//! The one registry: event type → topic, key, and the stages that must account for it.
//!
//! Owns the closed list of event types. To add a type: a variant here, a payload in
//! [`crate::payload`], a schema with examples under `schemas/events/`; the compiler and the tests
//! name the rest.

use crate::topic::TopicKind;

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
}

const ENTRIES: [Entry; 4] = [
    Entry {
        event_type: EventType::PostCreatedV1,
        name: "tideline.post.created.v1",
        aggregate: "post",
        topic: TopicKind::Posts,
        key: "author_id",
        stages: &[Stage::Published, Stage::Delivered],
    },
    Entry {
        event_type: EventType::PostDeletedV1,
        name: "tideline.post.deleted.v1",
        aggregate: "post",
        topic: TopicKind::Posts,
        key: "author_id",
        stages: &[Stage::Published, Stage::Delivered],
    },
    Entry {
        event_type: EventType::FollowCreatedV1,
        name: "tideline.follow.created.v1",
        aggregate: "follow",
        topic: TopicKind::Follows,
        key: "follower_id",
        stages: &[Stage::Published],
    },
    Entry {
        event_type: EventType::FollowDeletedV1,
        name: "tideline.follow.deleted.v1",
        aggregate: "follow",
        topic: TopicKind::Follows,
        key: "follower_id",
        stages: &[Stage::Published],
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
    /// The text stored in `delivery_ledger.stage`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Published => "published",
            Self::Delivered => "delivered",
        }
    }
}
