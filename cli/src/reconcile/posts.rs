//! Posts that the outbox knows nothing of.
//!
//! Post and event commit together (D-1), so one statement sees both or neither.

use events::{EventType, Micros, PostId};

use crate::{
    error::Error,
    sql::{self, column},
};

use super::{
    difference::{Kind, Place},
    walk::{PAGE, Walk},
};

/// Goes through the posts of the range by id, which is close to their time.
pub(super) async fn walk(walk: &mut Walk) -> Result<(), Error> {
    // The rows of the outbox have the times of the post, which find them in their day.
    const SQL: &str = "select p.id, tideline.micros(p.created_at),
            exists (select from tideline.outbox o
                    where o.created_at = p.created_at and o.type = $4
                      and o.aggregatetype = 'post' and o.aggregateid = p.id::text),
            p.deleted_at is null
                or exists (select from tideline.outbox o
                           where o.created_at = p.deleted_at and o.type = $5
                             and o.aggregatetype = 'post' and o.aggregateid = p.id::text)
        from tideline.posts p where p.id > $1 and p.id < $2 order by p.id limit $3";
    let (mut after, before) = walk.range.post_ids();
    let created = EventType::PostCreatedV1.as_str();
    let deleted = EventType::PostDeletedV1.as_str();
    loop {
        let params: &[&(dyn tokio_postgres::types::ToSql + Sync)] =
            &[&after.0, &before.0, &PAGE, &created, &deleted];
        let rows = sql::all(&walk.client, "read posts", SQL, params).await?;
        for row in &rows {
            after = PostId(column(row, 0)?);
            if !walk.range.contains(Micros(column(row, 1)?)) {
                continue;
            }
            walk.looked.posts += 1;
            let place = || Place {
                post: Some(after),
                ..Place::default()
            };
            if !column::<bool>(row, 2)? {
                walk.found.add(Kind::PostWithoutEvent, place());
            }
            if !column::<bool>(row, 3)? {
                walk.found.add(Kind::DeleteWithoutEvent, place());
            }
        }
        if rows.len() < usize::try_from(PAGE).unwrap_or(usize::MAX) {
            return Ok(());
        }
    }
}
