//! What Postgres tells of the events of one post.

use database::{Client, Error, post_delivery::Delivery, posts::Post};
use events::{EventId, EventType, Micros, PostId, Stage, UserId};
use serde::Serialize;

use crate::{
    moment,
    sql::{self, column},
};

/// How far `outbox.created_at` of a post that is gone may lie from the time in its id.
const ID_MARGIN_US: i64 = Micros::HOUR;

/// An event of the post.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Found {
    /// Its outbox id.
    pub(super) event: EventId,
    /// Its type, as the outbox has it; none when only an account row names the event.
    #[serde(rename = "type")]
    pub(super) type_name: Option<String>,
    /// When its outbox row was written; none when the row is not there (any more).
    pub(super) created_us: Option<Micros>,
    /// The record key.
    pub(super) key: Option<String>,
    /// Whether its post is in `posts`.
    pub(super) post_exists: bool,
}

impl Found {
    /// Whether the stage accounts for this type. What is not known is told of every stage.
    pub(super) fn is_accounted_by(&self, stage: Stage) -> bool {
        let known = self.type_name.as_deref().and_then(EventType::from_name);
        known.is_none_or(|event_type| stage.accounts_for(event_type))
    }
}

/// What stands beside the ledger about an event in a stage.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Notes {
    /// How often the sweep has sent it again.
    pub(super) attempts: u32,
    /// When it last did.
    pub(super) last_us: Option<Micros>,
    /// Why it will never pass the stage.
    pub(super) discarded: Option<String>,
    /// The dead letter of it.
    pub(super) dead_letter: Option<Letter>,
}

/// A dead letter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Letter {
    /// `open` or `redriven`.
    pub(super) state: String,
    /// Why.
    pub(super) reason: String,
    /// Where the record was read, or was to go.
    pub(super) topic: String,
    /// Its partition.
    pub(super) partition: i32,
    /// Its offset.
    pub(super) offset: i64,
}

impl Notes {
    /// Whether a dead letter of it is open.
    pub(super) fn has_open_letter(&self) -> bool {
        self.dead_letter
            .as_ref()
            .is_some_and(|letter| letter.state == "open")
    }
}

/// The events of a post, by rising id: from the outbox by the moments of the post, or, when the
/// post is gone, by the time in its id and by what deliveries and dead letters name.
pub(super) async fn events(
    client: &Client,
    id: PostId,
    post: Option<&Post>,
) -> Result<Vec<Found>, Error> {
    const BY_MOMENT: &str = "select o.id, o.type, tideline.micros(o.created_at), o.partition_key
        from tideline.outbox o
        where o.created_at = any(array(select tideline.at_micros(us) from unnest($2::bigint[]) as us))
          and o.aggregatetype = 'post' and o.aggregateid = $1::bigint::text order by o.id";
    const BY_ID: &str = "with named as (
            select event_id from tideline.post_delivery where post_id = $1
            union select event_id from tideline.dead_letters where post_id = $1 and event_id is not null
            union select id from tideline.outbox
                where created_at between tideline.at_micros($2) and tideline.at_micros($3)
                  and aggregatetype = 'post' and aggregateid = $1::bigint::text
        )
        select n.event_id, o.type, tideline.micros(o.created_at), o.partition_key
        from named n left join tideline.outbox o on o.id = n.event_id order by 1";
    let rows = match post {
        Some(post) => {
            let moments = [Some(post.created_us), post.deleted_us].map(|us| us.map(|us| us.0));
            let moments: Vec<i64> = moments.into_iter().flatten().collect();
            sql::all(
                client,
                "read the events of a post",
                BY_MOMENT,
                &[&id.0, &moments],
            )
            .await?
        }
        None => {
            let made = moment::of_id(id);
            let (since, until) = (made.plus(-ID_MARGIN_US).0, made.plus(ID_MARGIN_US).0);
            let what = "read the events of a post that is gone";
            sql::all(client, what, BY_ID, &[&id.0, &since, &until]).await?
        }
    };
    rows.iter()
        .map(|row| {
            Ok(Found {
                event: EventId(column(row, 0)?),
                type_name: column(row, 1)?,
                created_us: column::<Option<i64>>(row, 2)?.map(Micros),
                key: column(row, 3)?,
                post_exists: post.is_some(),
            })
        })
        .collect()
}

/// What stands beside the ledger. What will never be published will never be delivered either, so
/// a note of an earlier stage counts for the later one.
pub(super) async fn notes(client: &Client, stage: Stage, event: EventId) -> Result<Notes, Error> {
    const SQL: &str = "select r.attempts, tideline.micros(r.last_at),
            (select reason from tideline.discarded where stage = any($2) and event_id = $3 limit 1),
            d.state, d.reason, d.record_topic, d.record_partition, d.record_offset
        from (select 1) as q
            left join tideline.redelivery r on r.stage = $1 and r.event_id = $3
            left join tideline.dead_letters d on d.stage = any($2) and d.event_id = $3
        order by d.state limit 1";
    let up_to: Vec<&str> = {
        let earlier = Stage::ALL.into_iter().take_while(|other| *other != stage);
        earlier.chain([stage]).map(Stage::as_str).collect()
    };
    let params: &[&(dyn tokio_postgres::types::ToSql + Sync)] =
        &[&stage.as_str(), &up_to, &event.0];
    let Some(row) = sql::first(client, "read the notes of an event", SQL, params).await? else {
        return Ok(Notes::default());
    };
    let letter = match column::<Option<String>>(&row, 3)? {
        None => None,
        Some(state) => Some(Letter {
            state,
            reason: column(&row, 4)?,
            topic: column(&row, 5)?,
            partition: column(&row, 6)?,
            offset: column(&row, 7)?,
        }),
    };
    let attempts = column::<Option<i32>>(&row, 0)?.unwrap_or(0);
    Ok(Notes {
        attempts: u32::try_from(attempts).unwrap_or(0),
        last_us: column::<Option<i64>>(&row, 1)?.map(Micros),
        discarded: column(&row, 2)?,
        dead_letter: letter,
    })
}

/// What fan-out noted when it delivered the event.
pub(super) async fn delivery(client: &Client, event: EventId) -> Result<Option<Delivery>, Error> {
    const SQL: &str = "select post_id, audience, rows, first_row_us, last_row_us
        from tideline.post_delivery where event_id = $1";
    let Some(row) = sql::first(client, "read a delivery", SQL, &[&event.0]).await? else {
        return Ok(None);
    };
    Ok(Some(Delivery {
        event,
        post: PostId(column(&row, 0)?),
        audience: column(&row, 1)?,
        rows: column(&row, 2)?,
        first_row_us: column::<Option<i64>>(&row, 3)?.map(Micros),
        last_row_us: column::<Option<i64>>(&row, 4)?.map(Micros),
    }))
}

/// The slot, beside the end of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Position {
    /// A walsender holds it.
    pub(super) active: bool,
    /// It was invalidated.
    pub(super) lost: bool,
    /// What the relay has confirmed, text form.
    pub(super) confirmed: Option<String>,
    /// Bytes of log behind it.
    pub(super) behind: i64,
}

/// The slot of this name, if there is one.
pub(super) async fn position(client: &Client, slot: &str) -> Result<Option<Position>, Error> {
    const SQL: &str = "select active, coalesce(wal_status = 'lost', false), confirmed_flush_lsn::text,
            coalesce(pg_wal_lsn_diff(case when pg_is_in_recovery() then pg_last_wal_replay_lsn()
                                          else pg_current_wal_lsn() end, confirmed_flush_lsn), 0)::bigint
        from pg_replication_slots where slot_name = $1";
    let Some(row) = sql::first(client, "read the slot", SQL, &[&slot]).await? else {
        return Ok(None);
    };
    Ok(Some(Position {
        active: column(&row, 0)?,
        lost: column(&row, 1)?,
        confirmed: column(&row, 2)?,
        behind: column(&row, 3)?,
    }))
}

/// When edges to `author` ended, for these former or present followers.
pub(super) async fn ends(
    client: &Client,
    author: UserId,
    after: Option<UserId>,
    limit: i64,
) -> Result<Vec<(UserId, Micros)>, Error> {
    const SQL: &str = "select e.follower_id, e.unfollow_us from tideline.follow_end e
        where e.followee_id = $1 and e.follower_id > $2
          and not exists (select from tideline.follows f
                          where f.followee_id = e.followee_id and f.follower_id = e.follower_id)
        order by e.follower_id limit $3";
    let after = after.map_or(i64::MIN, |user| user.0);
    let rows = sql::all(
        client,
        "read former followers",
        SQL,
        &[&author.0, &after, &limit],
    )
    .await?;
    rows.iter()
        .map(|row| Ok((UserId(column(row, 0)?), Micros(column(row, 1)?))))
        .collect()
}
