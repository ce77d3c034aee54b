//! Posts: made and deleted together with their outbox row, read by id and by author.
//!
//! Promise: a post and its event commit in one transaction (D-1); one `(author, client_post_id)`
//! makes one post, however often and however concurrently it is sent (D-2).

use events::{Event, Micros, PostCreated, PostDeleted, PostId, UserId};
use tokio_postgres::Row;

use crate::{
    Client, Error, outbox,
    statement::{self, column},
};

/// How far the write timestamp of the deletes lies above the moment of deletion (D-8).
const DELETE_LEAD: i64 = 24 * Micros::HOUR;

/// Ids drawn for one post. They only clash while the clock is behind the highest id in use, and
/// then each round lets one writer through.
const ID_ATTEMPTS: u32 = 64;

/// A post to be made.
#[derive(Clone, Copy, Debug)]
pub struct NewPost<'a> {
    /// Its author.
    pub author: UserId,
    /// The client's key for this post.
    pub client_post_id: &'a str,
    /// Of the whole request: tells a repeat from another request under the same key.
    pub fingerprint: &'a [u8],
    /// Its text.
    pub body: &'a str,
    /// W3C trace context of the request.
    pub traceparent: Option<&'a str>,
}

/// A post.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Post {
    /// Its id.
    pub id: PostId,
    /// Its author.
    pub author: UserId,
    /// The client's key for it.
    pub client_post_id: String,
    /// Its text.
    pub body: String,
    /// When it was made: `post_us` on every path.
    pub created_us: Micros,
    /// When it was deleted, if it was.
    pub deleted_us: Option<Micros>,
}

/// What became of [`create`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Create {
    /// A new post.
    Created(Post),
    /// The same request was already carried out: this is its post, which may be deleted by now.
    Replayed(Post),
    /// The key belongs to another request; nothing was stored.
    KeyReused,
    /// There is no such author; nothing was stored.
    NoAuthor,
}

/// What became of [`delete`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Delete {
    /// Deleted now.
    Deleted(Post),
    /// Deleted before.
    AlreadyDeleted,
    /// There is no such post of this author.
    NotFound,
}

/// Makes a post and its event (D-1, D-2).
///
/// # Errors
/// See [`Error::class`]. After an error the outcome may be unknown; doing it again with the same
/// key tells.
///
/// # Cancel safety
/// As in the crate's head: all or nothing, and a repeat is harmless.
pub async fn create(client: &mut Client, new: &NewPost<'_>) -> Result<Create, Error> {
    for _ in 0..ID_ATTEMPTS {
        match try_create(client, new).await {
            Ok(Some(created)) => return Ok(created),
            // The row that held the key is gone again, which only an operator can do.
            Ok(None) => {}
            Err(error) if error.violates("posts_pkey") => {}
            Err(error) => return Err(error),
        }
    }
    Err(Error::PostId {
        attempts: ID_ATTEMPTS,
    })
}

/// Deletes a post and makes the event of it. A post of somebody else is not found.
///
/// # Errors
/// See [`Error::class`].
pub async fn delete(
    client: &mut Client,
    author: UserId,
    id: PostId,
    traceparent: Option<&str>,
) -> Result<Delete, Error> {
    const UPDATE: &str = "update tideline.posts set deleted_at = greatest(clock_timestamp(), created_at)
        where id = $1 and author_id = $2 and deleted_at is null
        returning id, author_id, client_post_id, body, tideline.micros(created_at), tideline.micros(deleted_at)";
    const KNOWN: &str =
        "select exists (select from tideline.posts where id = $1 and author_id = $2)";
    let transaction = statement::begin(client).await?;
    let Some(row) =
        statement::optional(&transaction, "delete a post", UPDATE, &[&id.0, &author.0]).await?
    else {
        let row =
            statement::one(&transaction, "look for a post", KNOWN, &[&id.0, &author.0]).await?;
        return Ok(if column(&row, 0)? {
            Delete::AlreadyDeleted
        } else {
            Delete::NotFound
        });
    };
    let post = read(&row)?;
    let deleted_us = post.deleted_us.ok_or(Error::Value {
        what: "posts.deleted_at",
    })?;
    let event = Event::PostDeleted(PostDeleted {
        post_id: id,
        author_id: author,
        post_us: post.created_us,
        del_us: deleted_us.plus(DELETE_LEAD),
    });
    outbox::append(&transaction, &event, traceparent, deleted_us).await?;
    statement::commit(transaction).await?;
    Ok(Delete::Deleted(post))
}

/// The post with this id, also a deleted one.
///
/// # Errors
/// See [`Error::class`].
pub async fn get(client: &Client, id: PostId) -> Result<Option<Post>, Error> {
    const SQL: &str = "select id, author_id, client_post_id, body, tideline.micros(created_at), tideline.micros(deleted_at)
        from tideline.posts where id = $1";
    let row = statement::optional(client, "read a post", SQL, &[&id.0]).await?;
    row.as_ref().map(read).transpose()
}

/// The posts with these ids, also deleted ones, in no particular order. Unknown ids are left out.
///
/// # Errors
/// See [`Error::class`].
pub async fn get_many(client: &Client, ids: &[PostId]) -> Result<Vec<Post>, Error> {
    const SQL: &str = "select id, author_id, client_post_id, body, tideline.micros(created_at), tideline.micros(deleted_at)
        from tideline.posts where id = any($1)";
    let ids: Vec<i64> = ids.iter().map(|id| id.0).collect();
    let rows = statement::all(client, "read posts", SQL, &[&ids]).await?;
    rows.iter().map(read).collect()
}

/// Posts of one author, newest first: undeleted, older than `before`, made at or after
/// `not_before_us`.
///
/// # Errors
/// See [`Error::class`].
pub async fn by_author(
    client: &Client,
    author: UserId,
    before: Option<PostId>,
    not_before_us: Micros,
    limit: i64,
) -> Result<Vec<Post>, Error> {
    const SQL: &str = "select id, author_id, client_post_id, body, tideline.micros(created_at), tideline.micros(deleted_at)
        from tideline.posts
        where author_id = $1 and id < $2 and created_at >= tideline.at_micros($3)
          and deleted_at is null
        order by id desc limit $4";
    let before = before.map_or(i64::MAX, |id| id.0);
    let rows = statement::all(
        client,
        "read the posts of an author",
        SQL,
        &[&author.0, &before, &not_before_us.0, &limit],
    )
    .await?;
    rows.iter().map(read).collect()
}

/// One round of [`create`]. `None`: the key was taken when the insert ran and free afterwards.
async fn try_create(client: &mut Client, new: &NewPost<'_>) -> Result<Option<Create>, Error> {
    // Waits for a concurrent transaction that holds the same key, so that what follows sees it.
    const INSERT: &str = "insert into tideline.posts (id, author_id, client_post_id, fingerprint, body, created_at)
        select tideline.next_id(), u.id, $2, $3, $4, clock_timestamp() from tideline.users u where u.id = $1
        on conflict (author_id, client_post_id) do nothing
        returning id, author_id, client_post_id, body, tideline.micros(created_at), tideline.micros(deleted_at)";
    const EXISTING: &str =
        "select p.id, p.author_id, p.client_post_id, p.body, tideline.micros(p.created_at),
            tideline.micros(p.deleted_at), p.fingerprint
        from tideline.posts p where p.author_id = $1 and p.client_post_id = $2";
    const AUTHOR: &str = "select exists (select from tideline.users where id = $1)";
    let transaction = statement::begin(client).await?;
    let inserted = statement::optional(
        &transaction,
        "create a post",
        INSERT,
        &[
            &new.author.0,
            &new.client_post_id,
            &new.fingerprint,
            &new.body,
        ],
    )
    .await?;
    if let Some(row) = inserted {
        let post = read(&row)?;
        let event = Event::PostCreated(PostCreated {
            post_id: post.id,
            author_id: post.author,
            post_us: post.created_us,
        });
        outbox::append(&transaction, &event, new.traceparent, post.created_us).await?;
        statement::commit(transaction).await?;
        return Ok(Some(Create::Created(post)));
    }
    let key: statement::Params<'_> = &[&new.author.0, &new.client_post_id];
    if let Some(row) =
        statement::optional(&transaction, "read the post of a key", EXISTING, key).await?
    {
        if column::<&[u8]>(&row, 6)? != new.fingerprint {
            return Ok(Some(Create::KeyReused));
        }
        return read(&row).map(|post| Some(Create::Replayed(post)));
    }
    let row = statement::one(
        &transaction,
        "look for the author",
        AUTHOR,
        &[&new.author.0],
    )
    .await?;
    Ok(if column(&row, 0)? {
        None
    } else {
        Some(Create::NoAuthor)
    })
}

fn read(row: &Row) -> Result<Post, Error> {
    Ok(Post {
        id: PostId(column(row, 0)?),
        author: UserId(column(row, 1)?),
        client_post_id: column(row, 2)?,
        body: column(row, 3)?,
        created_us: Micros(column(row, 4)?),
        deleted_us: column::<Option<i64>>(row, 5)?.map(Micros),
    })
}
