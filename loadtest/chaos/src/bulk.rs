//! Many posts in one transaction, as write-api makes a single one: post and outbox row together
//! (D-1).

use anyhow::Context;
use events::{EventId, PostId, UserId};
use judge::PostRef;
use tokio_postgres::Transaction;

use crate::Client;

const INSERT: &str = "with drawn as materialized (
        select tideline.next_id() as id, clock_timestamp() as at, $2::text || '-' || number as key,
        number
        from generate_series(1, $3::bigint) as number),
    made as (
        insert into tideline.posts (id, author_id, client_post_id, fingerprint, body, created_at)
        select id, $1::bigint, key, decode('00', 'hex'), 'text of ' || key, at from drawn)
    insert into tideline.outbox
        (aggregatetype, aggregateid, partition_key, type, payload, created_at)
    select 'post', id::text, $1::bigint::text, 'tideline.post.created.v1',
        json_build_object('post_id', id::text, 'author_id', $1::bigint::text,
            'post_us', tideline.micros(at)), at
    from drawn order by number
    returning id, aggregateid::bigint";

/// Posts that are inserted, and promised once their transaction has committed.
#[derive(Debug)]
pub(crate) struct Bulk {
    /// Their events, in the order of their ids.
    pub(crate) events: Vec<EventId>,
    posts: Vec<(PostRef, PostId)>,
}

/// Inserts `count` posts of an author, whose keys begin with `prefix`, and tells the journal that
/// they were sent.
///
/// # Errors
/// When Postgres refuses.
pub(crate) async fn insert(
    client: &Client,
    transaction: &Transaction<'_>,
    author: UserId,
    prefix: &str,
    count: i64,
) -> anyhow::Result<Bulk> {
    let mut bulk = Bulk {
        events: Vec::new(),
        posts: Vec::new(),
    };
    let entries: Vec<PostRef> = (1..=count)
        .map(|number| {
            client
                .journal()
                .post_sent(author, format!("{prefix}-{number}"))
        })
        .collect();
    let made = rows(transaction, author, prefix, count).await?;
    anyhow::ensure!(made.len() == entries.len(), "{} rows were made", made.len());
    for ((event, post), entry) in made.into_iter().zip(entries) {
        bulk.events.push(event);
        bulk.posts.push((entry, post));
    }
    Ok(bulk)
}

/// Inserts them without the journal: for transactions that come to nothing.
///
/// # Errors
/// When Postgres refuses.
pub(crate) async fn rows(
    transaction: &Transaction<'_>,
    author: UserId,
    prefix: &str,
    count: i64,
) -> anyhow::Result<Vec<(EventId, PostId)>> {
    let rows = transaction
        .query(INSERT, &[&author.0, &prefix, &count])
        .await
        .context("insert many posts")?;
    let ids = |row: &tokio_postgres::Row| (EventId(row.get(0)), PostId(row.get(1)));
    Ok(rows.iter().map(ids).collect())
}

impl Bulk {
    /// Tells the journal that they were committed.
    pub(crate) fn committed(&self, client: &Client) {
        for &(entry, id) in &self.posts {
            client.journal().post_acked(entry, id);
        }
    }
}
