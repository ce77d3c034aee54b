//! Outbox days: which there are, and making those that are needed.

use std::time::Duration;

use deadpool_postgres::GenericClient;
use events::Micros;
use tokio::time::sleep;
use tokio_postgres::error::SqlState;

use crate::{
    Client, Error,
    statement::{self, column},
};

/// Days that are made ahead of today.
pub const AHEAD: i32 = 14;

/// Tries of one call for all days together, while something holds the outbox.
const TRIES: u32 = 6;
/// The pause between two tries, in which readers get on.
const PAUSE: Duration = Duration::from_millis(250);

/// One outbox day: a partition of one UTC date.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Day {
    /// The date, `2026-11-29`.
    pub date: String,
    /// The partition's name in schema `tideline`.
    pub leaf: String,
    /// The first moment of the day.
    pub since_us: Micros,
    /// The first moment of the next day.
    pub until_us: Micros,
}

/// What [`ensure_days`] found and did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Days {
    /// Days made now.
    pub created: u32,
    /// Days that were there.
    pub present: u32,
    /// Days that cannot be made, because the default partition holds rows of theirs.
    pub blocked: u32,
    /// Days that were not made, because a transaction holds the outbox: try again later.
    pub busy: u32,
}

/// The days there are, oldest first; the default partition is none.
///
/// # Errors
/// See [`Error::class`].
pub async fn days(client: &Client) -> Result<Vec<Day>, Error> {
    const SQL: &str = "select day::date::text, leaf, tideline.micros(day at time zone 'UTC'),
            tideline.micros((day + interval '1 day') at time zone 'UTC')
        from (
            select c.relname::text as leaf, to_timestamp(substr(c.relname, 8), 'YYYYMMDD')::timestamp as day
            from pg_inherits i join pg_class c on c.oid = i.inhrelid
            where i.inhparent = 'tideline.outbox'::regclass and c.relname ~ '^outbox_[0-9]{8}$'
        ) as leaves order by day";
    let rows = statement::all(client, "list the outbox days", SQL, &[]).await?;
    rows.iter()
        .map(|row| {
            Ok(Day {
                date: column(row, 0)?,
                leaf: column(row, 1)?,
                since_us: Micros(column(row, 2)?),
                until_us: Micros(column(row, 3)?),
            })
        })
        .collect()
}

/// Makes the outbox days from `retention_days` behind today to [`AHEAD`] days ahead (UTC, by the
/// server's clock), each in a transaction of its own. Those behind are for a clock that steps back.
/// Doing it again changes nothing.
///
/// A day is attached when the default partition can be had within 200 ms, else it is tried a few
/// times more, and then left: `busy`. Writers do not wait for it at all.
///
/// # Errors
/// See [`Error::class`]. A row that falls into the default partition meanwhile is among them
/// (23514): try again, then the day is `blocked`.
///
/// # Cancel safety
/// Safe: a day is there or not.
pub async fn ensure_days<C: GenericClient>(client: &C, retention_days: u32) -> Result<Days, Error> {
    const ABSENT: &str = "select day::date::text, to_regclass('tideline.outbox_' || to_char(day, 'YYYYMMDD')) is not null
        from (select (clock_timestamp() at time zone 'UTC')::date as today) as now,
             generate_series(today - $1::integer, today + $2::integer, interval '1 day') as day order by day desc";
    let behind = i32::try_from(retention_days).unwrap_or(i32::MAX);
    let rows = statement::all(client, "look for outbox days", ABSENT, &[&behind, &AHEAD]).await?;
    let mut days = Days::default();
    let mut tries = TRIES;
    for row in &rows {
        if column(row, 1)? {
            days.present += 1;
            continue;
        }
        match ensure(client, column(row, 0)?, &mut tries)
            .await?
            .as_deref()
        {
            Some("created") => days.created += 1,
            Some("present") => days.present += 1,
            Some("blocked") => days.blocked += 1,
            None => days.busy += 1,
            Some(_) => {
                return Err(Error::Value {
                    what: "ensure_outbox_day",
                });
            }
        }
    }
    Ok(days)
}

/// Makes one day, while there are tries left. None: something held the outbox each time.
async fn ensure<C: GenericClient>(
    client: &C,
    date: &str,
    tries: &mut u32,
) -> Result<Option<String>, Error> {
    const SQL: &str = "select tideline.ensure_outbox_day($1::text::date)";
    while *tries > 0 {
        match statement::one(client, "make an outbox day", SQL, &[&date]).await {
            Ok(row) => return column(&row, 0).map(Some),
            Err(error) if error.sql_state() == Some(&SqlState::LOCK_NOT_AVAILABLE) => {
                *tries -= 1;
                if *tries > 0 {
                    sleep(PAUSE).await;
                }
            }
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}
