//! The story of one post, as it is printed and as JSON.

use database::{post_delivery::Delivery, posts::Post};
use events::{Micros, PostId, UserId};
use serde::{Serialize, Serializer, ser::SerializeStruct as _};

use super::{
    copies::Copies,
    postgres::{Found, Notes},
    timelines::Timelines,
};

/// Everything that is known of a post.
#[derive(Debug, Serialize)]
pub(super) struct Story {
    /// Its id.
    pub(super) id: PostId,
    /// Its row in `posts`.
    pub(super) post: Option<PostRow>,
    /// Its events, by rising id.
    pub(super) events: Vec<EventStory>,
    /// Its timelines, or why they could not be read; none without its row in `posts`.
    #[serde(serialize_with = "told")]
    pub(super) timelines: Option<Result<Timelines, String>>,
}

impl Story {
    /// Whether any server knows the post.
    pub(super) fn is_known(&self) -> bool {
        self.post.is_some() || !self.events.is_empty()
    }
}

/// A row of `posts`, without its text.
#[derive(Debug, Serialize)]
pub(super) struct PostRow {
    /// Who wrote it.
    pub(super) author: UserId,
    /// When.
    pub(super) created_us: Micros,
    /// When it was deleted.
    pub(super) deleted_us: Option<Micros>,
}

impl From<Post> for PostRow {
    fn from(post: Post) -> Self {
        Self {
            author: post.author,
            created_us: post.created_us,
            deleted_us: post.deleted_us,
        }
    }
}

/// One event of the post.
#[derive(Debug, Serialize)]
pub(super) struct EventStory {
    /// Its outbox row.
    #[serde(flatten)]
    pub(super) found: Found,
    /// Its copies in Kafka, or why they could not be looked for; none where topic and key are not
    /// known.
    #[serde(serialize_with = "told_of_some")]
    pub(super) copies: Result<Option<Copies>, String>,
    /// What the account says.
    #[serde(flatten)]
    pub(super) account: Account,
}

/// What the account says of an event.
#[derive(Debug, Serialize)]
pub(super) struct Account {
    /// The stages that account for it, in their order.
    pub(super) stages: Vec<StageStory>,
    /// What fan-out noted.
    #[serde(serialize_with = "delivery")]
    pub(super) delivery: Option<Delivery>,
    /// Postgres's time when it was read.
    pub(super) told_us: Micros,
}

/// What one stage says of an event.
#[derive(Debug, Serialize)]
pub(super) struct StageStory {
    /// Its name.
    pub(super) stage: &'static str,
    /// Whether its ledger, or that of a later stage, has the event.
    pub(super) in_ledger: bool,
    /// What stands beside the ledger.
    #[serde(flatten)]
    pub(super) notes: Notes,
    /// What the sweep would do now and why; none when there is nothing to do.
    pub(super) outlook: Option<String>,
}

#[derive(Serialize)]
struct Unread<'a> {
    error: &'a str,
}

fn told<S: Serializer, T: Serialize>(
    section: &Option<Result<T, String>>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match section {
        None => serializer.serialize_none(),
        Some(section) => told_of_some(section, serializer),
    }
}

fn told_of_some<S: Serializer, T: Serialize>(
    section: &Result<T, String>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match section {
        Ok(told) => told.serialize(serializer),
        Err(error) => Unread { error }.serialize(serializer),
    }
}

fn delivery<S: Serializer>(delivery: &Option<Delivery>, serializer: S) -> Result<S::Ok, S::Error> {
    let Some(delivery) = delivery else {
        return serializer.serialize_none();
    };
    let mut fields = serializer.serialize_struct("Delivery", 4)?;
    fields.serialize_field("audience", &delivery.audience)?;
    fields.serialize_field("rows", &delivery.rows)?;
    fields.serialize_field("first_row_us", &delivery.first_row_us)?;
    fields.serialize_field("last_row_us", &delivery.last_row_us)?;
    fields.end()
}
