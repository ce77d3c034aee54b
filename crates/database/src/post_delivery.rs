//! How fan-out delivered each event: audience, rows, times; and the answer to "where is post X?".
//!
//! Evidence and cost, not the account: what is delivered is said by the ledger, which is written in
//! the same transaction.

use events::{EventId, Micros, PostId, Stage};

use crate::{
    Client, Error, delivery_ledger, outbox,
    statement::{self, column},
};

/// One delivered event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// The event.
    pub event: EventId,
    /// Its post.
    pub post: PostId,
    /// Followers that it was for.
    pub audience: i64,
    /// Timeline rows written.
    pub rows: i64,
    /// When the first row was written; none without an audience.
    pub first_row_us: Option<Micros>,
    /// When the last row was written.
    pub last_row_us: Option<Micros>,
}

/// Where a post is on its way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// The event that made the post.
    pub event: EventId,
    /// The event is in the ledger as published, or as delivered, which includes it.
    pub published: bool,
    /// The event is in the ledger as delivered.
    pub delivered: bool,
    /// Why it lies in a dead-letter topic, while it does.
    pub dead_letter: Option<String>,
    /// Followers that it was for, once delivered.
    pub audience: Option<i64>,
    /// Timeline rows written, once delivered.
    pub rows: Option<i64>,
    /// When the first row was written.
    pub first_row_us: Option<Micros>,
    /// When the last row was written.
    pub last_row_us: Option<Micros>,
}

/// Notes deliveries and enters their events as delivered: one flush, one transaction. A repeat
/// overwrites counts and times of rows, keeping the earliest first and the latest last.
///
/// # Errors
/// [`Error::OtherEpoch`] when `epoch` is not the newest one, and then nothing is noted; else see
/// [`Error::class`].
pub async fn record_many(
    client: &mut Client,
    epoch: i64,
    deliveries: &[Delivery],
) -> Result<(), Error> {
    // distinct on: one statement may touch a row only once, and a flush may hold an event twice.
    const UPSERT: &str = "insert into tideline.post_delivery as d (event_id, post_id, audience, rows, first_row_us, last_row_us)
        select distinct on (event_id) *
        from unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[])
            as flush (event_id, post_id, audience, rows, first_row_us, last_row_us)
        order by event_id
        on conflict (event_id) do update set audience = excluded.audience, rows = excluded.rows,
            first_row_us = least(d.first_row_us, excluded.first_row_us),
            last_row_us = greatest(d.last_row_us, excluded.last_row_us)";
    if deliveries.is_empty() {
        return Ok(());
    }
    let events: Vec<EventId> = deliveries.iter().map(|delivery| delivery.event).collect();
    let event_ids: Vec<i64> = events.iter().map(|event| event.0).collect();
    let post_ids: Vec<i64> = deliveries.iter().map(|delivery| delivery.post.0).collect();
    let audiences: Vec<i64> = deliveries
        .iter()
        .map(|delivery| delivery.audience)
        .collect();
    let rows: Vec<i64> = deliveries.iter().map(|delivery| delivery.rows).collect();
    let firsts: Vec<Option<i64>> = deliveries
        .iter()
        .map(|delivery| delivery.first_row_us.map(|us| us.0))
        .collect();
    let lasts: Vec<Option<i64>> = deliveries
        .iter()
        .map(|delivery| delivery.last_row_us.map(|us| us.0))
        .collect();
    let transaction = statement::begin(client).await?;
    statement::execute(
        &transaction,
        "note deliveries",
        UPSERT,
        &[&event_ids, &post_ids, &audiences, &rows, &firsts, &lasts],
    )
    .await?;
    delivery_ledger::enter(&transaction, Stage::Delivered, &events, epoch).await?;
    statement::commit(transaction).await
}

/// Where a post is. None when there is no event of it in the outbox.
///
/// # Errors
/// See [`Error::class`].
pub async fn of_post(client: &Client, post: PostId) -> Result<Option<Status>, Error> {
    const SQL: &str = "select
            tideline.has_entry($1, $2),
            tideline.has_entry($1, $3),
            (select reason from tideline.dead_letters where event_id = $1 and state = 'open' order by id desc limit 1),
            d.audience, d.rows, d.first_row_us, d.last_row_us
        from (select 1) as q left join tideline.post_delivery d on d.event_id = $1";
    let Some(event) = outbox::event_of_post(client, post).await? else {
        return Ok(None);
    };
    let row = statement::one(
        client,
        "read the delivery of a post",
        SQL,
        &[
            &event.0,
            &Stage::Published.as_str(),
            &Stage::Delivered.as_str(),
        ],
    )
    .await?;
    Ok(Some(Status {
        event,
        published: column::<bool>(&row, 0)? || column::<bool>(&row, 1)?,
        delivered: column(&row, 1)?,
        dead_letter: column(&row, 2)?,
        audience: column(&row, 3)?,
        rows: column(&row, 4)?,
        first_row_us: column::<Option<i64>>(&row, 5)?.map(Micros),
        last_row_us: column::<Option<i64>>(&row, 6)?.map(Micros),
    }))
}
