//! Rows of timelines that nothing explains: of no post, or of an author who was never followed.
//!
//! A row is read before what explains it, and once more afterwards.

use events::{Micros, PostId, UserId};
use timeline_store::{ScanPosition, TimelineDelete, TimelineStore as _};

use crate::{
    audience::{Claim, Pair, claim},
    error::Error,
    moment, point_reads,
    sql::{self, column},
};

use super::{
    difference::{Kind, Place},
    walk::{Extent, Walk},
};

/// Rows of the store read at once.
const PAGE: usize = 1_000;

/// A row of a timeline.
#[derive(Clone, Copy, Debug)]
struct Row {
    owner: UserId,
    post: PostId,
    author: UserId,
}

/// Goes through all timelines, or through those of some accounts.
pub(super) async fn walk(walk: &mut Walk) -> Result<(), Error> {
    match walk.extent {
        Extent::Full => all(walk).await,
        Extent::Sample(accounts) => some(walk, accounts).await,
    }
}

async fn all(walk: &mut Walk) -> Result<(), Error> {
    walk.looked.accounts = accounts(walk).await?;
    let (low, high) = walk.range.post_ids();
    let mut position = Some(ScanPosition::start());
    while let Some(from) = position {
        let (rows, next) = walk.store.scan_page(PAGE, from).await?;
        let rows: Vec<Row> = rows
            .into_iter()
            .filter(|row| low < row.post && row.post < high)
            .map(|row| Row {
                owner: row.owner,
                post: row.post,
                author: row.author,
            })
            .collect();
        judge(walk, &rows).await?;
        position = next;
    }
    Ok(())
}

async fn accounts(walk: &Walk) -> Result<u64, Error> {
    const SQL: &str = "select count(*) from tideline.users";
    let row = sql::first(&walk.client, "count accounts", SQL, &[]).await?;
    let count: i64 = match row {
        Some(row) => column(&row, 0)?,
        None => 0,
    };
    Ok(u64::try_from(count).unwrap_or(0))
}

/// Timelines of accounts that follow each other by id, from a random one on.
async fn some(walk: &mut Walk, accounts: usize) -> Result<(), Error> {
    const SQL: &str = "with start as (
            select coalesce(min(id), 0) + floor($1::float8 * (coalesce(max(id), 0) - coalesce(min(id), 0) + 1))::bigint as id
            from tideline.users
        ), later as (
            select u.id from tideline.users u, start where u.id >= start.id order by u.id limit $2
        ), earlier as (
            select u.id from tideline.users u, start where u.id < start.id order by u.id
            limit greatest($2 - (select count(*) from later), 0)
        )
        select id from later union all select id from earlier";
    let limit = i64::try_from(accounts).unwrap_or(i64::MAX);
    let params: &[&(dyn tokio_postgres::types::ToSql + Sync)] = &[&fastrand::f64(), &limit];
    let owners = sql::all(&walk.client, "draw accounts", SQL, params).await?;
    let (low, high) = walk.range.post_ids();
    for row in &owners {
        let owner = UserId(column(row, 0)?);
        walk.looked.accounts += 1;
        let mut before = high;
        loop {
            let page = walk
                .store
                .page(owner, Some(before), Some(low), PAGE)
                .await?;
            let Some(last) = page.last() else { break };
            before = last.post;
            let rows: Vec<Row> = page
                .iter()
                .map(|row| Row {
                    owner,
                    post: row.post,
                    author: row.author,
                })
                .collect();
            judge(walk, &rows).await?;
            if page.len() < PAGE {
                break;
            }
        }
    }
    Ok(())
}

/// Adds the rows that nothing explains, and deletes them if repairs are asked for.
async fn judge(walk: &mut Walk, rows: &[Row]) -> Result<(), Error> {
    let suspects = unexplained(walk, rows).await?;
    if suspects.is_empty() {
        return Ok(());
    }
    let keys = suspects
        .iter()
        .map(|(row, _)| (row.owner, row.post))
        .collect();
    let again = point_reads::rows(&walk.store, keys).await?;
    let mut deletes = Vec::new();
    for ((row, why), stored) in suspects.into_iter().zip(again) {
        let Some(stored) = stored else { continue };
        let place = Place {
            post: Some(row.post),
            owner: Some(row.owner),
            note: Some(why),
            ..Place::default()
        };
        walk.found.add(Kind::RowsUnexplained, place);
        // At the same timestamp the delete wins, and a row that is written later for a reason of
        // its own carries a later one.
        deletes.push(TimelineDelete {
            owner: row.owner,
            post: row.post,
            write_us: stored.write_us,
        });
    }
    if walk.repair && !deletes.is_empty() {
        walk.store.delete(&deletes).await?;
        walk.found
            .repaired(Kind::RowsUnexplained, deletes.len() as u64);
    }
    Ok(())
}

async fn unexplained(walk: &mut Walk, rows: &[Row]) -> Result<Vec<(Row, String)>, Error> {
    const SQL: &str = "select p.author_id, tideline.micros(p.created_at), f.edge_us, e.unfollow_us
        from unnest($1::bigint[], $2::bigint[]) with ordinality as r (owner, post, place)
            left join tideline.posts p on p.id = r.post
            left join tideline.follows f on f.followee_id = p.author_id and f.follower_id = r.owner
            left join tideline.follow_end e on e.followee_id = p.author_id and e.follower_id = r.owner
        order by r.place";
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    let owners: Vec<i64> = rows.iter().map(|row| row.owner.0).collect();
    let posts: Vec<i64> = rows.iter().map(|row| row.post.0).collect();
    let found = sql::all(
        &walk.client,
        "explain timeline rows",
        SQL,
        &[&owners, &posts],
    )
    .await?;
    let mut without = Vec::new();
    for (row, found) in rows.iter().zip(&found) {
        let author = column::<Option<i64>>(found, 0)?.map(UserId);
        let post_us = match column::<Option<i64>>(found, 1)? {
            Some(post_us) => Micros(post_us),
            None => moment::of_id(row.post),
        };
        if !walk.range.contains(post_us) {
            continue;
        }
        walk.looked.rows += 1;
        let pair = Pair {
            edge_us: column::<Option<i64>>(found, 2)?.map(Micros),
            unfollow_us: column::<Option<i64>>(found, 3)?.map(Micros),
        };
        if let Some(why) = why(row.author, author, pair, post_us) {
            without.push((*row, why));
        }
    }
    Ok(without)
}

/// Why a row has no business in its timeline; none if it may be there.
fn why(named: UserId, author: Option<UserId>, pair: Pair, post_us: Micros) -> Option<String> {
    let Some(author) = author else {
        return Some("there is no such post".into());
    };
    if author != named {
        return Some(format!(
            "it names author {named}, the post is of author {author}"
        ));
    }
    match (claim(pair, post_us), pair.unfollow_us) {
        (Claim::Must | Claim::May, _) => None,
        (Claim::MustNot, None) => Some(format!("it never followed author {author}")),
        (Claim::MustNot, Some(_)) => {
            Some(format!("it had unfollowed author {author} before the post"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_row_without_a_reason_is_told_why() {
        let post_us = Micros(1_000_000_000);
        let pair = |edge: Option<i64>, end: Option<i64>| Pair {
            edge_us: edge.map(Micros),
            unfollow_us: end.map(Micros),
        };
        let of = |author: Option<i64>, pair| why(UserId(7), author.map(UserId), pair, post_us);
        assert_eq!(of(Some(7), pair(Some(5), None)), None);
        assert_eq!(of(Some(7), pair(None, Some(post_us.0 + 1))), None);
        let told = [
            (None, pair(Some(5), None), "no such post"),
            (Some(8), pair(Some(5), None), "the post is of author 8"),
            (Some(7), pair(None, None), "never followed author 7"),
            (Some(7), pair(None, Some(5)), "had unfollowed author 7"),
        ];
        for (author, pair, text) in told {
            let why = of(author, pair).unwrap_or_default();
            assert!(why.contains(text), "{text}: {why}");
        }
    }
}
