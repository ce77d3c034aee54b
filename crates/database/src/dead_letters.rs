//! Accounts of records that can never be published or delivered as they are. The full record is in
//! the dead-letter topic; the row here is what finishes the event (D-9).

use deadpool_postgres::GenericClient;
use events::{EventId, PostId, Stage};

use crate::{
    Client, Error,
    statement::{self, column},
};

/// A dead letter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadLetter {
    /// The stage that the record did not pass.
    pub stage: Stage,
    /// Its event, where the record tells.
    pub event: Option<EventId>,
    /// Its post, where the record tells.
    pub post: Option<PostId>,
    /// The topic of the record.
    pub topic: String,
    /// Its partition.
    pub partition: i32,
    /// Its offset.
    pub offset: i64,
    /// Why.
    pub reason: String,
}

/// Enters a dead letter, or opens it again with the new place and reason: one row per stage and
/// event, or per stage and place where the event is unknown.
///
/// # Errors
/// See [`Error::class`].
pub async fn record(client: &Client, letter: &DeadLetter) -> Result<(), Error> {
    enter(client, letter).await
}

/// How many dead letters are open, in all stages.
///
/// # Errors
/// See [`Error::class`].
pub async fn count_open(client: &Client) -> Result<i64, Error> {
    const SQL: &str = "select count(*) from tideline.dead_letters where state = 'open'";
    let row = statement::one(client, "count open dead letters", SQL, &[]).await?;
    column(&row, 0)
}

/// [`record`] through a connection or inside a transaction.
pub(crate) async fn enter<C: GenericClient>(client: &C, letter: &DeadLetter) -> Result<(), Error> {
    const BY_EVENT: &str = "insert into tideline.dead_letters
            (stage, event_id, post_id, record_topic, record_partition, record_offset, reason)
        values ($1, $2, $3, $4, $5, $6, $7)
        on conflict (stage, event_id) where event_id is not null do update
            set post_id = excluded.post_id, record_topic = excluded.record_topic,
                record_partition = excluded.record_partition, record_offset = excluded.record_offset,
                reason = excluded.reason, state = 'open', recorded_at = clock_timestamp()";
    const BY_RECORD: &str = "insert into tideline.dead_letters
            (stage, event_id, post_id, record_topic, record_partition, record_offset, reason)
        values ($1, $2, $3, $4, $5, $6, $7)
        on conflict (stage, record_topic, record_partition, record_offset) where event_id is null do update
            set reason = excluded.reason, state = 'open', recorded_at = clock_timestamp()";
    let sql = if letter.event.is_some() {
        BY_EVENT
    } else {
        BY_RECORD
    };
    // Postgres text cannot hold U+0000, and a reason may quote the record.
    let reason = letter.reason.replace('\0', "\u{fffd}");
    statement::execute(
        client,
        "enter a dead letter",
        sql,
        &[
            &letter.stage.as_str(),
            &letter.event.map(|event| event.0),
            &letter.post.map(|post| post.0),
            &letter.topic,
            &letter.partition,
            &letter.offset,
            &reason,
        ],
    )
    .await
    .map(drop)
}
