//! The outbox: one row per event, insert-only, in partitions of one day.
//!
//! Rows are appended by the modules that make the changes, in their transactions (D-1); only they
//! can.

use deadpool_postgres::{GenericClient, Transaction};
use events::{Event, EventId, Micros, PostId, Stage};

use crate::{
    Client, Error, delivery_ledger,
    statement::{self, column},
};

/// Days made around today: yesterday, for a clock that steps back, to two weeks ahead.
pub const DAYS: std::ops::RangeInclusive<i32> = -1..=14;

/// What [`ensure_days`] found and did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Days {
    /// Days made now.
    pub created: u32,
    /// Days that were there.
    pub present: u32,
    /// Days that cannot be made, because the default partition holds rows of theirs.
    pub blocked: u32,
}

/// Makes the outbox days [`DAYS`] around today (UTC, by the server's clock), each in a transaction
/// of its own. Doing it again changes nothing.
///
/// # Errors
/// See [`Error::class`]. A row that falls into the default partition meanwhile is among them
/// (23514): try again, then the day is `blocked`.
pub async fn ensure_days<C: GenericClient>(client: &C) -> Result<Days, Error> {
    const SQL: &str = "select tideline.ensure_outbox_day((clock_timestamp() at time zone 'UTC')::date + $1::integer)";
    let mut days = Days::default();
    for offset in DAYS {
        let row = statement::one(client, "make an outbox day", SQL, &[&offset]).await?;
        match column::<&str>(&row, 0)? {
            "created" => days.created += 1,
            "present" => days.present += 1,
            "blocked" => days.blocked += 1,
            _ => {
                return Err(Error::Value {
                    what: "ensure_outbox_day",
                });
            }
        }
    }
    Ok(days)
}

/// How many outbox rows are not in the ledger as published: what the relay still has to do.
///
/// # Errors
/// See [`Error::class`].
pub async fn unpublished(client: &Client) -> Result<i64, Error> {
    delivery_ledger::missing_count(client, Stage::Published).await
}

/// The outbox id of the event that made a post.
///
/// # Errors
/// See [`Error::class`].
pub async fn event_of_post(client: &Client, post: PostId) -> Result<Option<EventId>, Error> {
    // The row has the post's own created_at, which names the day and finds the row in it. No
    // order and no limit: either makes the planner walk the day by id instead.
    const SQL: &str = "select o.id from tideline.outbox o
        where o.created_at = (select created_at from tideline.posts where id = $1)
          and o.aggregateid = $1::text and o.aggregatetype = 'post' and o.type = $2";
    let event_type = events::EventType::PostCreatedV1.as_str();
    let params: statement::Params<'_> = &[&post.0, &event_type];
    let row = statement::optional(client, "find the event of a post", SQL, params).await?;
    row.map(|row| column(&row, 0).map(EventId)).transpose()
}

/// Appends an event in the transaction that made the change. `created_us` is the moment of the
/// change itself.
pub(crate) async fn append(
    transaction: &Transaction<'_>,
    event: &Event,
    traceparent: Option<&str>,
    created_us: Micros,
) -> Result<EventId, Error> {
    const SQL: &str = "insert into tideline.outbox
            (aggregatetype, aggregateid, partition_key, type, payload, traceparent, created_at)
        values ($1, $2, $3, $4, $5::text::json, $6, tideline.at_micros($7)) returning id";
    let entry = event.event_type().entry();
    let row = statement::one(
        transaction,
        "append to the outbox",
        SQL,
        &[
            &entry.aggregate,
            &event.subject(),
            &event.partition_key().to_string(),
            &entry.name,
            &event.encode(),
            &traceparent,
            &created_us.0,
        ],
    )
    .await?;
    column(&row, 0).map(EventId)
}
