//! Ids, event types and versions, the envelope, the JSON forms, and one registry.
//!
//! Owns: what an event *is* on every path: its type and version, its payload, the headers it
//! travels under, the topic it belongs to and the stage that must account for it. Topics, routing
//! and schemas are checked against [`registry`], so a new event type starts here.
//!
//! Does not own: any IO, any clock, any decision about delivery.
//!
//! Promise: pure; decoding never panics, ignores unknown fields, and reads every version that was
//! ever published.

pub mod class;
pub mod envelope;
pub mod id;
pub mod id_ranges;
pub mod moment;
pub mod payload;
pub mod registry;
pub mod route;
pub mod topic;

pub use class::Class;
pub use id::{EventId, Micros, PostId, UserId};
pub use id_ranges::{BLOCK, IdRange, IdRanges, block_of};
pub use payload::{DecodeError, Event, FollowCreated, FollowDeleted, PostCreated, PostDeleted};
pub use registry::{EventType, Hop, Stage};
pub use topic::{Group, Namespace};
