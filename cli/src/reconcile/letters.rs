//! Open dead letters.

use events::{EventId, PostId};

use crate::{
    error::Error,
    sql::{self, column},
};

use super::{
    difference::{Kind, Place},
    walk::Walk,
};

/// Letters that are told.
const TOLD: i64 = 5;

/// Counts the open dead letters of the range: by the time of their event, or, where that is not
/// known, by when they were entered.
pub(super) async fn walk(walk: &mut Walk) -> Result<(), Error> {
    const SQL: &str = "select count(*) over (), d.event_id, d.post_id, d.stage, d.reason,
            d.record_topic, d.record_partition, d.record_offset
        from tideline.dead_letters d left join tideline.outbox o on o.id = d.event_id
        where d.state = 'open'
          and coalesce(o.created_at, d.recorded_at) >= tideline.at_micros($1)
          and coalesce(o.created_at, d.recorded_at) < tideline.at_micros($2)
        order by d.id limit $3";
    let params: &[&(dyn tokio_postgres::types::ToSql + Sync)] =
        &[&walk.range.since_us.0, &walk.range.until_us.0, &TOLD];
    let rows = sql::all(&walk.client, "read dead letters", SQL, params).await?;
    let mut untold = 0;
    for row in &rows {
        let count: i64 = column(row, 0)?;
        untold = u64::try_from(count).unwrap_or(0) - rows.len() as u64;
        let (stage, reason): (&str, &str) = (column(row, 3)?, column(row, 4)?);
        let (topic, partition, offset): (&str, i32, i64) =
            (column(row, 5)?, column(row, 6)?, column(row, 7)?);
        let place = Place {
            event: column::<Option<i64>>(row, 1)?.map(EventId),
            post: column::<Option<i64>>(row, 2)?.map(PostId),
            note: Some(format!(
                "{stage}: {reason}; record {topic} partition {partition} offset {offset}"
            )),
            ..Place::default()
        };
        walk.found.add(Kind::DeadLetterOpen, place);
    }
    if untold > 0 {
        walk.found
            .add_many(Kind::DeadLetterOpen, untold, Place::default());
    }
    Ok(())
}
