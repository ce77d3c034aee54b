//! The JSON payload of each event type: thin, ids and times, never the text of a post.
//!
//! Promise: unknown fields are ignored, so a newer producer may add some; a field that is missing
//! or of the wrong form is a typed error that names the type.

use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::{EventType, Micros, PostId, UserId};

/// An event, decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// See [`PostCreated`].
    PostCreated(PostCreated),
    /// See [`PostDeleted`].
    PostDeleted(PostDeleted),
    /// See [`FollowCreated`].
    FollowCreated(FollowCreated),
    /// See [`FollowDeleted`].
    FollowDeleted(FollowDeleted),
}

/// `tideline.post.created.v1`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PostCreated {
    /// The post.
    pub post_id: PostId,
    /// Its author; the record key.
    pub author_id: UserId,
    /// The post's `created_at`.
    pub post_us: Micros,
}

/// `tideline.post.deleted.v1`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PostDeleted {
    /// The post.
    pub post_id: PostId,
    /// Its author; the record key.
    pub author_id: UserId,
    /// The post's `created_at`.
    pub post_us: Micros,
    /// Write timestamp of the deletes: above that of every row of this post (D-8).
    pub del_us: Micros,
}

/// `tideline.follow.created.v1`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FollowCreated {
    /// Who is followed.
    pub followee_id: UserId,
    /// Who follows; the record key.
    pub follower_id: UserId,
    /// When the edge was made.
    pub edge_us: Micros,
}

/// `tideline.follow.deleted.v1`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FollowDeleted {
    /// Who was followed.
    pub followee_id: UserId,
    /// Who followed; the record key.
    pub follower_id: UserId,
    /// When the edge had been made.
    pub edge_us: Micros,
    /// When it ended; above `edge_us`.
    pub unfollow_us: Micros,
}

/// Why bytes are not an event. Always the record's fault, never a matter of trying again.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// No registry entry has this `ce_type`.
    #[error("unknown event type {name:?}")]
    UnknownType {
        /// The `ce_type` as received, cut to 200 characters.
        name: String,
    },
    /// The payload is not the JSON that the type asks for.
    #[error("malformed payload of {event_type}")]
    Payload {
        /// `ce_type`.
        event_type: &'static str,
        /// What the JSON reader said.
        #[source]
        source: serde_json::Error,
    },
}

impl Event {
    /// Reads the payload of an event whose `ce_type` is `type_name`.
    ///
    /// # Errors
    /// [`DecodeError`] when the type is unknown or the payload malformed.
    pub fn decode(type_name: &str, payload: &[u8]) -> Result<Self, DecodeError> {
        let event_type =
            EventType::from_name(type_name).ok_or_else(|| DecodeError::UnknownType {
                name: type_name.chars().take(200).collect(),
            })?;
        match event_type {
            EventType::PostCreatedV1 => read(event_type, payload).map(Self::PostCreated),
            EventType::PostDeletedV1 => read(event_type, payload).map(Self::PostDeleted),
            EventType::FollowCreatedV1 => read(event_type, payload).map(Self::FollowCreated),
            EventType::FollowDeletedV1 => read(event_type, payload).map(Self::FollowDeleted),
        }
    }

    /// The payload as JSON text.
    pub fn encode(&self) -> String {
        let text = match self {
            Self::PostCreated(payload) => serde_json::to_string(payload),
            Self::PostDeleted(payload) => serde_json::to_string(payload),
            Self::FollowCreated(payload) => serde_json::to_string(payload),
            Self::FollowDeleted(payload) => serde_json::to_string(payload),
        };
        text.expect("payloads are plain structs of ids and integers, which always serialise")
    }

    /// The event's type.
    pub const fn event_type(&self) -> EventType {
        match self {
            Self::PostCreated(_) => EventType::PostCreatedV1,
            Self::PostDeleted(_) => EventType::PostDeletedV1,
            Self::FollowCreated(_) => EventType::FollowCreatedV1,
            Self::FollowDeleted(_) => EventType::FollowDeletedV1,
        }
    }

    /// The record key: what Kafka partitions by.
    pub fn partition_key(&self) -> UserId {
        match self {
            Self::PostCreated(payload) => payload.author_id,
            Self::PostDeleted(payload) => payload.author_id,
            Self::FollowCreated(payload) => payload.follower_id,
            Self::FollowDeleted(payload) => payload.follower_id,
        }
    }

    /// The outbox column `aggregateid`, which travels as `ce_subject`.
    pub fn subject(&self) -> String {
        match self {
            Self::PostCreated(payload) => payload.post_id.to_string(),
            Self::PostDeleted(payload) => payload.post_id.to_string(),
            Self::FollowCreated(payload) => payload.followee_id.to_string(),
            Self::FollowDeleted(payload) => payload.followee_id.to_string(),
        }
    }
}

fn read<T: DeserializeOwned>(event_type: EventType, payload: &[u8]) -> Result<T, DecodeError> {
    serde_json::from_slice(payload).map_err(|source| DecodeError::Payload {
        event_type: event_type.as_str(),
        source,
    })
}
