//! The range of time that is compared.

use database::{Client, clock};
use events::{Micros, PostId, moment::rfc3339};
use serde::Serialize;
use sweep::when::When;

use crate::{
    error::Error,
    moment::lowest_id,
    sql::{self, column},
};

/// How far the time in a post's id may lie from the post's own time.
const ID_MARGIN_US: i64 = Micros::HOUR;

/// From `since` (included) to `until` (excluded), by the times of posts and outbox rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Range {
    /// Its begin.
    pub(super) since_us: Micros,
    /// Its end.
    pub(super) until_us: Micros,
    /// Postgres's time when the comparison began.
    pub(super) now_us: Micros,
    /// The begin was moved to that of the oldest outbox day: of earlier ones nothing is left to
    /// compare with.
    pub(super) clipped: bool,
}

impl Range {
    /// The range that was asked for, as far as the outbox has it.
    ///
    /// # Errors
    /// [`Error::Range`] when it is empty.
    pub(super) async fn of(client: &Client, since: When, until: When) -> Result<Self, Error> {
        let now_us = clock::now(client).await?;
        let (asked, until_us) = (since.at(now_us), until.at(now_us));
        let oldest = oldest_kept(client).await?;
        let since_us = oldest.map_or(asked, |oldest| asked.max(oldest));
        if since_us >= until_us {
            return Err(Error::Range {
                since: rfc3339(since_us),
                until: rfc3339(until_us),
            });
        }
        Ok(Self {
            since_us,
            until_us,
            now_us,
            clipped: since_us > asked,
        })
    }

    /// Whether the range has this moment.
    pub(super) fn contains(&self, moment: Micros) -> bool {
        self.since_us <= moment && moment < self.until_us
    }

    /// Post ids between which every post of the range lies, both ends excluded.
    pub(super) fn post_ids(&self) -> (PostId, PostId) {
        let low = lowest_id(self.since_us.plus(-ID_MARGIN_US)).0 - 1;
        (PostId(low), lowest_id(self.until_us.plus(ID_MARGIN_US)))
    }
}

/// Where the oldest outbox day begins that was not dropped.
async fn oldest_kept(client: &Client) -> Result<Option<Micros>, Error> {
    const SQL: &str = "select tideline.micros(least(
            (select min(to_date(right(c.relname, 8), 'YYYYMMDD'))::timestamp at time zone 'UTC'
             from pg_inherits i join pg_class c on c.oid = i.inhrelid
             where i.inhparent = 'tideline.outbox'::regclass and c.relname ~ '^outbox_[0-9]{8}$'),
            (select min(created_at) from tideline.outbox_default)))";
    let row = sql::first(client, "read the outbox days", SQL, &[]).await?;
    Ok(match row {
        None => None,
        Some(row) => column::<Option<i64>>(&row, 0)?.map(Micros),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_the_range_lie_between_its_bounds() {
        let day = 86_400_000_000;
        let since_us = Micros(1_772_366_400_000_000);
        let range = Range {
            since_us,
            until_us: since_us.plus(day),
            now_us: since_us.plus(2 * day),
            clipped: false,
        };
        let (low, high) = range.post_ids();
        assert!(low < lowest_id(since_us) && lowest_id(range.until_us) < high);
        assert!(range.contains(since_us) && !range.contains(range.until_us));
    }
}
