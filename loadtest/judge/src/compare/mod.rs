//! The comparison of the journal with what is at rest. Pure.

use std::collections::HashMap;

use events::{PostId, UserId};

use crate::audience::Claim;
use crate::journal::{Journal, Post};
use crate::postgres::StoredPost;
use crate::store::Rows;
use crate::verdict::{Example, Fault, Verdict};

/// Compares every row that must be there and every row that is there.
pub fn compare_rows(journal: &Journal, rows: &Rows, verdict: &mut Verdict) {
    verdict.rows_read = rows.total();
    for post in journal.posts() {
        if let Some(id) = post.id {
            compare_must(journal, post, id, rows.owners(id), verdict);
        }
    }
    for (id, author) in rows.posts() {
        for &owner in rows.owners(id) {
            if journal.post(id).is_some() || !journal.is_others(owner, id) {
                verdict.rows_stored += 1;
                judge_row(journal, owner, id, author, verdict);
            }
        }
    }
    for &(owner, post, author) in rows.torn() {
        if journal.post(post).is_none() && journal.is_others(owner, post) {
            continue;
        }
        let reason = "the row names another author than the post's other rows".to_owned();
        verdict.add(Fault::Foreign, || Example {
            owner: Some(owner),
            post: Some(post),
            author: Some(author),
            reason,
        });
    }
}

/// Compares the posts in Postgres: none lost, none double, deletions as they were asked for.
pub fn compare_posts(journal: &Journal, stored: &[StoredPost], verdict: &mut Verdict) {
    let by_id: HashMap<PostId, &StoredPost> = stored.iter().map(|post| (post.id, post)).collect();
    for post in journal.posts() {
        let Some(id) = post.id else { continue };
        verdict.posts += 1;
        let wrong = match by_id.get(&id) {
            None => Some((Fault::Lost, "acknowledged, and Postgres does not have it")),
            Some(row) if row.deleted && post.delete_sent.is_none() => {
                Some((Fault::Lost, "marked as deleted, and nobody deleted it"))
            }
            Some(row) if !row.deleted && post.delete_acked.is_some() => Some((
                Fault::Resurrected,
                "its deletion was acknowledged, and Postgres does not know that",
            )),
            Some(_) => None,
        };
        if let Some((fault, reason)) = wrong {
            verdict.add(fault, || about(post, id, reason.to_owned()));
        }
        for other in &post.other_ids {
            let reason = format!(
                "one key {:?} was answered with post {id} as well",
                post.client_post_id
            );
            verdict.add(Fault::Duplicated, || about(post, *other, reason));
        }
    }
    compare_keys(stored, verdict);
}

/// D-2: one key of one author makes one post.
fn compare_keys(stored: &[StoredPost], verdict: &mut Verdict) {
    let mut first: HashMap<(UserId, &str), PostId> = HashMap::new();
    for post in stored {
        let id = *first
            .entry((post.author, &post.client_post_id))
            .or_insert(post.id);
        if id != post.id {
            let reason = format!("the key {:?} made post {id} too", post.client_post_id);
            verdict.add(Fault::Duplicated, || Example {
                owner: None,
                post: Some(post.id),
                author: Some(post.author),
                reason,
            });
        }
    }
}

/// A post that was sent after another one was acknowledged has the higher id, because timelines
/// are sorted by id.
pub fn compare_order(journal: &Journal, verdict: &mut Verdict) {
    let mut acked: Vec<_> = journal
        .posts()
        .iter()
        .filter_map(|post| Some((post.acked?, post.id?)))
        .collect();
    acked.sort_unstable();
    let mut earlier = acked.into_iter().peekable();
    let mut highest: Option<PostId> = None;
    // The journal holds posts in the order they were sent.
    for post in journal.posts() {
        while let Some((_, id)) = earlier.next_if(|&(acked, _)| acked < post.sent) {
            highest = highest.max(Some(id));
        }
        if let (Some(id), Some(highest)) = (post.id, highest)
            && id < highest
        {
            let reason = format!("sent after post {highest} was acknowledged, and sorts before it");
            verdict.add(Fault::Disorder, || about(post, id, reason));
        }
    }
}

fn compare_must(
    journal: &Journal,
    post: &Post,
    id: PostId,
    owners: &[UserId],
    verdict: &mut Verdict,
) {
    if post.delete_sent.is_some() {
        return;
    }
    for owner in journal.must_have(post) {
        verdict.rows_expected += 1;
        if owners.binary_search(&owner).is_ok() {
            verdict.rows_found += 1;
        } else {
            let reason = "followed before the post was sent, and there is no row".to_owned();
            verdict.add(Fault::Lost, || Example {
                owner: Some(owner),
                ..about(post, id, reason)
            });
        }
    }
}

fn judge_row(journal: &Journal, owner: UserId, id: PostId, author: UserId, verdict: &mut Verdict) {
    let mut wrong = |fault, reason: &str| {
        verdict.add(fault, || Example {
            owner: Some(owner),
            post: Some(id),
            author: Some(author),
            reason: reason.to_owned(),
        });
    };
    let Some(post) = journal.post(id) else {
        return wrong(Fault::Foreign, "nobody sent such a post");
    };
    if post.author != author {
        return wrong(
            Fault::Foreign,
            "the row names another author than the post has",
        );
    }
    if !journal.knows(owner) {
        return wrong(Fault::Foreign, "there is no such account");
    }
    match journal.claim(author, owner, post.sent) {
        Claim::MustNot => wrong(
            Fault::Foreign,
            "did not follow the author when the post was sent, nor later",
        ),
        Claim::Must if post.delete_acked.is_some() => {
            wrong(
                Fault::Resurrected,
                "the post was deleted, and its row is still there or there again",
            );
        }
        Claim::Must | Claim::May => {}
    }
}

fn about(post: &Post, id: PostId, reason: String) -> Example {
    Example {
        owner: None,
        post: Some(id),
        author: Some(post.author),
        reason,
    }
}

#[cfg(test)]
mod tests;
