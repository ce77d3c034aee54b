//! The timelines of delivered posts: who must have one has it, and nobody has a deleted one.
//!
//! What looks wrong is read again together with what makes it wrong, because the edge, the post or
//! the row may have changed between the reads.

use database::follows::{self, Direction};
use events::{EventId, Micros, Stage, UserId};

use crate::{
    audience::{Claim, Pair, claim},
    error::Error,
    point_reads,
    sql::{self, column},
};

use super::{
    difference::{Kind, Place},
    walk::{Delivered, Extent, Walk},
};

/// Followers read at once.
const PAGE: i64 = 500;
/// Followers of one post that are looked at in a sample.
const SAMPLE: u64 = 1_000;
/// A row may be gone so long before its time, and is not called missing.
const EXPIRY_MARGIN_US: i64 = 60_000_000;

/// Looks at the followers of one delivered post.
pub(super) async fn look(walk: &mut Walk, delivered: Delivered) -> Result<(), Error> {
    let expires_us = delivered.post_us.plus(walk.retention_us);
    if expires_us <= walk.range.now_us.plus(EXPIRY_MARGIN_US) {
        return Ok(());
    }
    walk.looked.delivered_posts += 1;
    let limit = match walk.extent {
        Extent::Full => u64::MAX,
        Extent::Sample(_) => SAMPLE,
    };
    let (mut after, mut seen, mut wrong) = (None, 0, 0);
    while seen < limit {
        let author = delivered.author;
        let page = follows::list(&walk.client, author, Direction::Followers, after, PAGE).await?;
        let Some(last) = page.last() else { break };
        after = Some(last.user);
        seen += page.len() as u64;
        let suspects = page
            .iter()
            .filter(|follower| delivered.deleted || must(&delivered, follower.edge_us))
            .map(|follower| follower.user)
            .collect();
        wrong += compare(walk, &delivered, suspects).await?;
        if i64::try_from(page.len()) != Ok(PAGE) {
            break;
        }
    }
    walk.looked.followers += seen;
    if wrong > 0 {
        let kind = kind(&delivered);
        walk.forget(kind, &[Stage::Delivered], &[delivered.event])
            .await?;
    }
    Ok(())
}

fn must(delivered: &Delivered, edge_us: Micros) -> bool {
    let pair = Pair {
        edge_us: Some(edge_us),
        unfollow_us: None,
    };
    claim(pair, delivered.post_us) == Claim::Must
}

const fn kind(delivered: &Delivered) -> Kind {
    if delivered.deleted {
        Kind::RowsOfDeleted
    } else {
        Kind::RowsMissing
    }
}

/// Adds those of the followers whose timeline is not as it must be. Answers how many.
async fn compare(
    walk: &mut Walk,
    delivered: &Delivered,
    followers: Vec<UserId>,
) -> Result<u64, Error> {
    let suspects = wrong(walk, delivered, followers).await?;
    if suspects.is_empty() {
        return Ok(0);
    }
    let suspects = still_followers(walk, delivered, &suspects).await?;
    let wrong = wrong(walk, delivered, suspects).await?;
    for owner in &wrong {
        let place = Place {
            event: Some(delivered.event),
            post: Some(delivered.post),
            owner: Some(*owner),
            ..Place::default()
        };
        walk.found.add(kind(delivered), place);
    }
    Ok(wrong.len() as u64)
}

/// Those of the owners that have a row of a deleted post, or none of one that stands.
async fn wrong(
    walk: &Walk,
    delivered: &Delivered,
    owners: Vec<UserId>,
) -> Result<Vec<UserId>, Error> {
    let keys = owners
        .iter()
        .map(|owner| (*owner, delivered.post))
        .collect();
    let rows = point_reads::rows(&walk.store, keys).await?;
    let pairs = owners.into_iter().zip(rows);
    Ok(pairs
        .filter(|(_, row)| row.is_some() == delivered.deleted)
        .map(|(owner, _)| owner)
        .collect())
}

/// Those of the owners that follow the author still, by an edge of the same claim, while the post
/// is as it was and the ledger says delivered still.
async fn still_followers(
    walk: &Walk,
    delivered: &Delivered,
    owners: &[UserId],
) -> Result<Vec<UserId>, Error> {
    const SQL: &str = "select f.follower_id
        from tideline.posts p join tideline.follows f on f.followee_id = p.author_id
        where p.id = $1 and (p.deleted_at is not null) = $2 and f.follower_id = any($3)
          and ($2 or tideline.at_micros(f.edge_us) <= p.created_at)
          and tideline.has_entry($4, $5)
        order by 1";
    let EventId(event) = delivered.event;
    let owners: Vec<i64> = owners.iter().map(|owner| owner.0).collect();
    let stage = Stage::Delivered.as_str();
    let params: &[&(dyn tokio_postgres::types::ToSql + Sync)] = &[
        &delivered.post.0,
        &delivered.deleted,
        &owners,
        &event,
        &stage,
    ];
    let rows = sql::all(&walk.client, "read followers again", SQL, params).await?;
    rows.iter().map(|row| Ok(UserId(column(row, 0)?))).collect()
}
