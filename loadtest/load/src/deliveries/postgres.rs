//! Deliveries as fan-out has noted them.

use anyhow::Context;
use database::Pool;
use events::{Micros, PostId};

use super::{Expected, Reported};

/// Those of the posts that are delivered. The first event of a post is the one that made it; a
/// deletion has one of its own.
pub(super) async fn delivered(pool: &Pool, asked: &[Expected]) -> anyhow::Result<Vec<Reported>> {
    const SQL: &str = "select distinct on (post_id) post_id, rows, first_row_us, last_row_us
        from tideline.post_delivery where post_id = any($1) order by post_id, event_id";
    let ids: Vec<i64> = asked.iter().map(|expected| expected.post.0).collect();
    let client = pool.get().await.context("reading deliveries")?;
    let rows = client
        .query(SQL, &[&ids])
        .await
        .context("reading deliveries")?;
    let read = |row: &tokio_postgres::Row| {
        Ok(Reported {
            post: PostId(row.try_get(0)?),
            rows: u64::try_from(row.try_get::<_, i64>(1)?).unwrap_or(0),
            first: row.try_get::<_, Option<i64>>(2)?.map(Micros),
            last: row.try_get::<_, Option<i64>>(3)?.map(Micros),
        })
    };
    rows.iter().map(read).collect()
}
