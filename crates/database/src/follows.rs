//! The follow graph: edges with their times, the pages that fan-out reads, the reader's filter.
//!
//! Promise: the times of one pair rise strictly over follow, unfollow, follow again, whatever the
//! clock does; each change and its event commit in one transaction.

use deadpool_postgres::Transaction;
use events::{Event, FollowCreated, FollowDeleted, Micros, PostId, UserId};

use crate::{
    Client, Error, outbox,
    statement::{self, column},
};

/// What became of [`follow`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Follow {
    /// A new edge.
    Created {
        /// When it was made.
        edge_us: Micros,
    },
    /// The edge was there.
    Already,
    /// One of the two accounts does not exist.
    NoUser,
    /// Nobody follows themselves.
    SelfFollow,
}

/// What became of [`unfollow`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unfollow {
    /// The edge ended.
    Ended {
        /// When it ended; above its `edge_us`.
        unfollow_us: Micros,
    },
    /// There was no edge.
    NotFollowing,
    /// One of the two accounts does not exist.
    NoUser,
}

/// One follower of an author.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    /// Who follows.
    pub follower: UserId,
    /// When the edge was made.
    pub edge_us: Micros,
}

/// What Postgres says about a post at the moment of a follower page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PostState {
    /// Its author.
    pub author: UserId,
    /// When it was made.
    pub post_us: Micros,
    /// Whether it is deleted.
    pub deleted: bool,
}

/// A range of an author's followers, together with the state of the post it is read for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FollowerPage {
    /// None: a ghost, a post that is not there.
    pub post: Option<PostState>,
    /// The server's clock when the page was read.
    pub pg_now: Micros,
    /// Followers by rising id. Fewer than the limit: the last page.
    pub edges: Vec<Edge>,
}

/// Which side of the edges [`list`] walks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Who follows the user.
    Followers,
    /// Whom the user follows.
    Following,
}

/// One line of a follower or following list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Neighbour {
    /// The other account.
    pub user: UserId,
    /// When the edge was made.
    pub edge_us: Micros,
}

/// Makes an edge and its event. `edge_us` is above every earlier end of this pair.
///
/// # Errors
/// See [`Error::class`].
pub async fn follow(
    client: &mut Client,
    follower: UserId,
    followee: UserId,
    traceparent: Option<&str>,
) -> Result<Follow, Error> {
    const INSERT: &str = "insert into tideline.follows (followee_id, follower_id, edge_us)
        select $1, $2, greatest(tideline.clock_us(), e.unfollow_us + 1)
        from (select 1) as pair
            left join tideline.follow_end e on e.followee_id = $1 and e.follower_id = $2
        where exists (select from tideline.users where id = $1) and exists (select from tideline.users where id = $2)
        on conflict (followee_id, follower_id) do nothing
        returning edge_us";
    if follower == followee {
        return Ok(Follow::SelfFollow);
    }
    let transaction = statement::begin(client).await?;
    lock_pair(&transaction, follower, followee).await?;
    let pair: statement::Params<'_> = &[&followee.0, &follower.0];
    let Some(row) = statement::optional(&transaction, "follow", INSERT, pair).await? else {
        let known = both_exist(&transaction, follower, followee).await?;
        return Ok(if known {
            Follow::Already
        } else {
            Follow::NoUser
        });
    };
    let edge_us = Micros(column(&row, 0)?);
    let event = Event::FollowCreated(FollowCreated {
        followee_id: followee,
        follower_id: follower,
        edge_us,
    });
    outbox::append(&transaction, &event, traceparent, edge_us).await?;
    statement::commit(transaction).await?;
    Ok(Follow::Created { edge_us })
}

/// Ends an edge, notes the end, and makes the event. `unfollow_us` is above `edge_us`.
///
/// # Errors
/// See [`Error::class`].
pub async fn unfollow(
    client: &mut Client,
    follower: UserId,
    followee: UserId,
    traceparent: Option<&str>,
) -> Result<Unfollow, Error> {
    const END: &str = "with ended as (
            delete from tideline.follows where followee_id = $1 and follower_id = $2 returning edge_us
        ), noted as (
            insert into tideline.follow_end (followee_id, follower_id, unfollow_us, purge_at)
            select $1, $2, greatest(tideline.clock_us(), edge_us + 1), clock_timestamp() + interval '24 hours' from ended
            on conflict (followee_id, follower_id) do update
                set unfollow_us = excluded.unfollow_us, purge_at = excluded.purge_at, purged_at = null
            returning unfollow_us
        )
        select ended.edge_us, noted.unfollow_us from ended, noted";
    let transaction = statement::begin(client).await?;
    lock_pair(&transaction, follower, followee).await?;
    let pair: statement::Params<'_> = &[&followee.0, &follower.0];
    let Some(row) = statement::optional(&transaction, "unfollow", END, pair).await? else {
        let known = both_exist(&transaction, follower, followee).await?;
        return Ok(if known {
            Unfollow::NotFollowing
        } else {
            Unfollow::NoUser
        });
    };
    let edge_us = Micros(column(&row, 0)?);
    let unfollow_us = Micros(column(&row, 1)?);
    let event = Event::FollowDeleted(FollowDeleted {
        followee_id: followee,
        follower_id: follower,
        edge_us,
        unfollow_us,
    });
    outbox::append(&transaction, &event, traceparent, unfollow_us).await?;
    statement::commit(transaction).await?;
    Ok(Unfollow::Ended { unfollow_us })
}

/// The followers of a post's author after `after`, at most `limit`, with the state of the post and
/// the server's clock: one statement, so all of it is of one moment.
///
/// # Errors
/// See [`Error::class`].
pub async fn follower_page(
    client: &Client,
    post: PostId,
    after: Option<UserId>,
    limit: i64,
) -> Result<FollowerPage, Error> {
    const SQL: &str =
        "select q.pg_now, p.author_id, tideline.micros(p.created_at), p.deleted_at is not null,
            f.follower_id, f.edge_us
        from (select $1::bigint as id, tideline.clock_us() as pg_now) q
            left join tideline.posts p on p.id = q.id
            left join lateral (
                select follower_id, edge_us from tideline.follows
                where followee_id = p.author_id and follower_id > $2 order by follower_id limit $3
            ) f on true
        order by f.follower_id";
    let after = after.map_or(i64::MIN, |user| user.0);
    let rows = statement::all(
        client,
        "read a follower page",
        SQL,
        &[&post.0, &after, &limit],
    )
    .await?;
    let first = rows.first().ok_or(Error::Value {
        what: "follower page",
    })?;
    let state = match column::<Option<i64>>(first, 1)? {
        None => None,
        Some(author) => Some(PostState {
            author: UserId(author),
            post_us: Micros(column(first, 2)?),
            deleted: column(first, 3)?,
        }),
    };
    let mut edges = Vec::with_capacity(rows.len());
    for row in &rows {
        // A page without followers is one row that has only the post.
        if let Some(follower) = column::<Option<i64>>(row, 4)? {
            edges.push(Edge {
                follower: UserId(follower),
                edge_us: Micros(column(row, 5)?),
            });
        }
    }
    Ok(FollowerPage {
        post: state,
        pg_now: Micros(column(first, 0)?),
        edges,
    })
}

/// Which of these authors the follower follows now: the reader's filter.
///
/// # Errors
/// See [`Error::class`].
pub async fn followed_among(
    client: &Client,
    follower: UserId,
    authors: &[UserId],
) -> Result<Vec<UserId>, Error> {
    const SQL: &str =
        "select followee_id from tideline.follows where follower_id = $1 and followee_id = any($2)";
    let authors: Vec<i64> = authors.iter().map(|user| user.0).collect();
    let rows = statement::all(
        client,
        "filter followed authors",
        SQL,
        &[&follower.0, &authors],
    )
    .await?;
    rows.iter().map(|row| column(row, 0).map(UserId)).collect()
}

/// Followers of a user, or whom the user follows, by rising id after `after`.
///
/// # Errors
/// See [`Error::class`].
pub async fn list(
    client: &Client,
    user: UserId,
    direction: Direction,
    after: Option<UserId>,
    limit: i64,
) -> Result<Vec<Neighbour>, Error> {
    const FOLLOWERS: &str = "select follower_id, edge_us from tideline.follows
        where followee_id = $1 and follower_id > $2 order by follower_id limit $3";
    const FOLLOWING: &str = "select followee_id, edge_us from tideline.follows
        where follower_id = $1 and followee_id > $2 order by followee_id limit $3";
    let sql = match direction {
        Direction::Followers => FOLLOWERS,
        Direction::Following => FOLLOWING,
    };
    let after = after.map_or(i64::MIN, |user| user.0);
    let rows = statement::all(client, "list follows", sql, &[&user.0, &after, &limit]).await?;
    rows.iter()
        .map(|row| {
            Ok(Neighbour {
                user: UserId(column(row, 0)?),
                edge_us: Micros(column(row, 1)?),
            })
        })
        .collect()
}

/// Puts the changes of one pair in a row. Without it a follow could read the end of the pair
/// before a concurrent unfollow has noted it, and its time would fall below. Two pairs with one
/// hash only wait for each other.
async fn lock_pair(
    transaction: &Transaction<'_>,
    follower: UserId,
    followee: UserId,
) -> Result<(), Error> {
    const SQL: &str = "select pg_advisory_xact_lock(hashint8extended($1, $2))";
    statement::one(
        transaction,
        "lock a pair of users",
        SQL,
        &[&followee.0, &follower.0],
    )
    .await
    .map(drop)
}

async fn both_exist(
    transaction: &Transaction<'_>,
    one: UserId,
    other: UserId,
) -> Result<bool, Error> {
    const SQL: &str = "select exists (select from tideline.users where id = $1)
        and exists (select from tideline.users where id = $2)";
    let row = statement::one(transaction, "look for two users", SQL, &[&one.0, &other.0]).await?;
    column(&row, 0)
}
