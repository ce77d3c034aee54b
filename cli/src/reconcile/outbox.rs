//! Outbox rows against posts and ledger.
//!
//! What is missing in the ledger is looked for twice, and between the two among what was given up:
//! a row that moves on meanwhile is no difference.

use std::collections::BTreeSet;

use database::{Client, delivery_ledger};
use events::{EventId, EventType, IdRange, Micros, PostId, Stage, UserId};

use crate::{
    error::Error,
    sql::{self, column},
};

use super::{
    difference::{Kind, Place},
    walk::{Delivered, PAGE, Walk},
};

/// An outbox row, with its post.
struct OutboxRow {
    event: EventId,
    created_us: Micros,
    /// None: a type that no stage accounts for.
    event_type: Option<EventType>,
    /// Whether it is about a post.
    of_post: bool,
    /// The post it names, if that is an id.
    post: Option<PostId>,
    /// The post that is there: author, time, whether deleted.
    found: Option<(UserId, Micros, bool)>,
}

impl OutboxRow {
    fn is_ghost(&self) -> bool {
        self.of_post && self.found.is_none()
    }

    fn is_due_in(&self, stage: Stage) -> bool {
        !self.is_ghost()
            && self
                .event_type
                .is_some_and(|event_type| stage.accounts_for(event_type))
    }

    fn place(&self) -> Place {
        Place {
            event: Some(self.event),
            post: self.post.filter(|_| self.of_post),
            ..Place::default()
        }
    }

    /// The timelines to look at once it is delivered. The creation of a post that is deleted
    /// promises nothing any more.
    fn delivered(&self) -> Option<Delivered> {
        let (author, post_us, deleted) = self.found?;
        let is_deletion = match self.event_type? {
            EventType::PostCreatedV1 => false,
            EventType::PostDeletedV1 => true,
            EventType::FollowCreatedV1 | EventType::FollowDeletedV1 => return None,
        };
        (is_deletion == deleted).then_some(Delivered {
            event: self.event,
            post: self.post?,
            author,
            post_us,
            deleted,
        })
    }
}

/// Goes through the outbox rows of the range by time. Answers the lowest and the highest id.
pub(super) async fn walk(walk: &mut Walk) -> Result<Option<(EventId, EventId)>, Error> {
    let mut span: Option<(EventId, EventId)> = None;
    let mut after = (walk.range.since_us, EventId(i64::MIN));
    loop {
        let rows = page(&walk.client, after, walk.range.until_us).await?;
        let Some(last) = rows.last() else {
            return Ok(span);
        };
        after = (last.created_us, last.event);
        walk.looked.events += rows.len() as u64;
        let ids = || rows.iter().map(|row| row.event);
        let low = ids().min().unwrap_or(last.event);
        let high = ids().max().unwrap_or(last.event);
        span = Some(span.map_or((low, high), |(lowest, highest)| {
            (lowest.min(low), highest.max(high))
        }));
        compare(walk, &rows, within(low, high)).await?;
        if rows.len() < usize::try_from(PAGE).unwrap_or(usize::MAX) {
            return Ok(span);
        }
    }
}

fn within(low: EventId, high: EventId) -> IdRange {
    IdRange {
        low: low.0,
        high: high.0.saturating_add(1),
    }
}

async fn compare(walk: &mut Walk, rows: &[OutboxRow], ids: IdRange) -> Result<(), Error> {
    let published = missing(walk, rows, ids, Stage::Published).await?;
    let delivered = missing(walk, rows, ids, Stage::Delivered).await?;
    for row in rows {
        if published.contains(&row.event) {
            walk.found.add(Kind::NotPublished, row.place());
        } else if delivered.contains(&row.event) {
            walk.found.add(Kind::NotDelivered, row.place());
        }
    }
    ghosts(walk, rows, ids).await?;
    let passed = delivery_ledger::ranges(&walk.client, Stage::Delivered, ids).await?;
    for row in rows.iter().filter(|row| passed.contains(row.event)) {
        if let Some(delivered) = row.delivered() {
            walk.offer(delivered).await?;
        }
    }
    Ok(())
}

/// The rows that the stage accounts for, has not, and that were not given up.
async fn missing(
    walk: &Walk,
    rows: &[OutboxRow],
    ids: IdRange,
    stage: Stage,
) -> Result<BTreeSet<EventId>, Error> {
    let client = &walk.client;
    let first = delivery_ledger::ranges(client, stage, ids).await?;
    let due = rows.iter().filter(|row| row.is_due_in(stage));
    let absent: Vec<EventId> = due
        .map(|row| row.event)
        .filter(|event| !first.contains(*event))
        .collect();
    if absent.is_empty() {
        return Ok(BTreeSet::new());
    }
    let open = not_given_up(client, &absent, stage).await?;
    let second = delivery_ledger::ranges(client, stage, ids).await?;
    Ok(open
        .into_iter()
        .filter(|event| !second.contains(*event))
        .collect())
}

/// Those of the ids that are neither discarded nor in an open dead letter. What was given up in an
/// earlier stage will not reach this one.
async fn not_given_up(
    client: &Client,
    ids: &[EventId],
    stage: Stage,
) -> Result<Vec<EventId>, Error> {
    const SQL: &str = "select q.id from unnest($1::bigint[]) as q (id)
        where not exists (select from tideline.discarded d where d.stage = any($2) and d.event_id = q.id)
          and not exists (select from tideline.dead_letters l
                          where l.stage = any($2) and l.event_id = q.id and l.state = 'open')";
    let ids: Vec<i64> = ids.iter().map(|id| id.0).collect();
    let earlier = Stage::ALL.into_iter().take_while(|other| *other != stage);
    let stages: Vec<&str> = earlier.chain([stage]).map(Stage::as_str).collect();
    let rows = sql::all(client, "read what was given up", SQL, &[&ids, &stages]).await?;
    rows.iter()
        .map(|row| Ok(EventId(column(row, 0)?)))
        .collect()
}

/// Ghosts stay in the outbox until their day goes; once they are discarded they are accounted for.
async fn ghosts(walk: &mut Walk, rows: &[OutboxRow], ids: IdRange) -> Result<(), Error> {
    let all: Vec<EventId> = rows
        .iter()
        .filter(|row| row.is_ghost())
        .map(|row| row.event)
        .collect();
    if all.is_empty() {
        return Ok(());
    }
    let open = not_given_up(&walk.client, &all, Stage::Delivered).await?;
    let passed = delivery_ledger::ranges(&walk.client, Stage::Delivered, ids).await?;
    for row in rows.iter().filter(|row| open.contains(&row.event)) {
        let mut place = row.place();
        if passed.contains(row.event) {
            place.note = Some("the ledger calls it delivered".into());
        }
        walk.found.add(Kind::EventWithoutPost, place);
    }
    let claimed: Vec<EventId> = open
        .into_iter()
        .filter(|event| passed.contains(*event))
        .collect();
    walk.forget(Kind::EventWithoutPost, &[Stage::Delivered], &claimed)
        .await
}

async fn page(
    client: &Client,
    after: (Micros, EventId),
    until_us: Micros,
) -> Result<Vec<OutboxRow>, Error> {
    // An aggregateid is text; one that is no id names no post.
    const SQL: &str = "select o.id, tideline.micros(o.created_at), o.type, o.aggregatetype = 'post', named.id,
            p.author_id, tideline.micros(p.created_at), p.deleted_at is not null
        from tideline.outbox o
            left join lateral (
                select case when o.aggregateid ~ '^[0-9]{1,19}$' and o.aggregateid::numeric <= 9223372036854775807
                            then o.aggregateid::bigint end as id
            ) named on true
            left join tideline.posts p on o.aggregatetype = 'post' and p.id = named.id
        where o.created_at >= tideline.at_micros($1) and o.created_at < tideline.at_micros($3)
          and (o.created_at, o.id) > (tideline.at_micros($1), $2)
        order by o.created_at, o.id limit $4";
    let params: &[&(dyn tokio_postgres::types::ToSql + Sync)] =
        &[&after.0.0, &after.1.0, &until_us.0, &PAGE];
    let rows = sql::all(client, "read outbox rows", SQL, params).await?;
    rows.iter()
        .map(|row| {
            let author: Option<i64> = column(row, 5)?;
            let found = match author {
                None => None,
                Some(author) => Some((UserId(author), Micros(column(row, 6)?), column(row, 7)?)),
            };
            Ok(OutboxRow {
                event: EventId(column(row, 0)?),
                created_us: Micros(column(row, 1)?),
                event_type: EventType::from_name(column(row, 2)?),
                of_post: column(row, 3)?,
                post: column::<Option<i64>>(row, 4)?.map(PostId),
                found,
            })
        })
        .collect()
}
