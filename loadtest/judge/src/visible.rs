//! The comparison of a full walk through the API with the journal. Pure.
//!
//! A walk is made at rest, so it shows what a reader can see for good: every post that must be
//! there, once, newest first, nothing deleted, nothing of an author whom the reader left.

use std::collections::HashSet;

use events::{PostId, UserId};

use crate::audience::Claim;
use crate::journal::{Journal, Post};
use crate::verdict::{Example, Fault, Verdict};
use crate::walk::{Ending, Seen, Walk};

/// Adds what one walk shows to the verdict.
pub fn compare_walk(journal: &Journal, walk: &Walk, verdict: &mut Verdict) {
    verdict.walks += 1;
    verdict.walked_posts += walk.seen.len() as u64;
    let mut met = HashSet::new();
    let mut before: Option<PostId> = None;
    for seen in &walk.seen {
        if !met.insert(seen.post) {
            add(
                verdict,
                Fault::Duplicated,
                walk.reader,
                *seen,
                "the walk through the API met it before".to_owned(),
            );
        } else if let Some(before) = before
            && seen.post > before
        {
            let reason =
                format!("the walk through the API met it after post {before}, which is older");
            add(verdict, Fault::Disorder, walk.reader, *seen, reason);
        }
        before = Some(seen.post);
        if let Some((fault, reason)) = wrong(journal, walk.reader, *seen) {
            add(verdict, fault, walk.reader, *seen, reason.to_owned());
        }
    }
    if walk.ending == Ending::GivenUp {
        // It shows nothing about what it did not reach.
        let reason = "the walk through the API has no end: a cursor came again".to_owned();
        return verdict.add(Fault::Disorder, || Example {
            owner: Some(walk.reader),
            post: None,
            author: None,
            reason,
        });
    }
    for post in journal.posts() {
        compare_missing(journal, walk.reader, post, &met, verdict);
    }
}

/// Why a post should not be visible.
fn wrong(journal: &Journal, reader: UserId, seen: Seen) -> Option<(Fault, &'static str)> {
    let Some(post) = journal.post(seen.post) else {
        let others = journal.is_others(reader, seen.post);
        return (!others).then_some((
            Fault::Foreign,
            "visible through the API, and nobody sent such a post",
        ));
    };
    if post.author != seen.author {
        return Some((
            Fault::Foreign,
            "the API names another author than the post has",
        ));
    }
    if post.delete_acked.is_some() {
        return Some((
            Fault::Resurrected,
            "visible through the API after its deletion was acknowledged",
        ));
    }
    let follows = journal.follows_at_end(reader, post.author);
    (reader != post.author && follows == Claim::MustNot).then_some((
        Fault::Foreign,
        "visible through the API to somebody who does not follow the author",
    ))
}

fn compare_missing(
    journal: &Journal,
    reader: UserId,
    post: &Post,
    met: &HashSet<PostId>,
    verdict: &mut Verdict,
) {
    let Some(id) = post.id else { return };
    let own = post.author == reader;
    if post.delete_sent.is_some() || met.contains(&id) {
        return;
    }
    if own || journal.claim(post.author, reader, post.sent) == Claim::Must {
        let seen = Seen {
            post: id,
            author: post.author,
        };
        add(
            verdict,
            Fault::Lost,
            reader,
            seen,
            "the full walk through the API does not meet it".to_owned(),
        );
    }
}

fn add(verdict: &mut Verdict, fault: Fault, reader: UserId, seen: Seen, reason: String) {
    verdict.add(fault, || Example {
        owner: Some(reader),
        post: Some(seen.post),
        author: Some(seen.author),
        reason,
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audience::Change;

    const AUTHOR: UserId = UserId(1);
    const READER: UserId = UserId(2);

    /// Posts 10 and 20 of author 1, whom 2 follows; post 30 of author 3, whom 2 left; 40 deleted.
    fn journal() -> Journal {
        let mut journal = Journal::new();
        journal.know_users([1, 2, 3].map(UserId));
        journal.bulk_follows(AUTHOR, [READER]);
        journal.bulk_follows(UserId(3), [READER]);
        for (author, id) in [(1, 10), (1, 20), (3, 30), (1, 40)] {
            let post = journal.post_sent(UserId(author), id.to_string());
            journal.post_acked(post, PostId(id));
            if id == 40 {
                journal.delete_sent(post);
                journal.delete_acked(post);
            }
        }
        let edge = journal.edge_sent(Change::Unfollow, READER, UserId(3));
        journal.edge_acked(edge);
        journal
    }

    fn verdict_of(reader: UserId, posts: &[(i64, i64)]) -> Verdict {
        let seen = posts.iter().map(|&(post, author)| Seen {
            post: PostId(post),
            author: UserId(author),
        });
        let walk = Walk {
            reader,
            seen: seen.collect(),
            ending: Ending::Complete,
        };
        let mut verdict = Verdict::default();
        compare_walk(&journal(), &walk, &mut verdict);
        verdict
    }

    #[test]
    fn a_clean_walk_has_no_fault() {
        for (reader, posts) in [(READER, &[(20, 1), (10, 1)][..]), (UserId(3), &[(30, 3)])] {
            let verdict = verdict_of(reader, posts);
            assert!(verdict.holds(), "{verdict}");
        }
    }

    #[test]
    fn each_fault_is_named() {
        let rows = [
            (&[(20, 1)][..], Fault::Lost, 10),
            (&[(20, 1), (20, 1), (10, 1)], Fault::Duplicated, 20),
            (&[(10, 1), (20, 1)], Fault::Disorder, 20),
            (&[(30, 3), (20, 1), (10, 1)], Fault::Foreign, 30),
            (&[(40, 1), (20, 1), (10, 1)], Fault::Resurrected, 40),
            (&[(50, 1), (20, 1), (10, 1)], Fault::Foreign, 50),
        ];
        for (posts, fault, id) in rows {
            let verdict = verdict_of(READER, posts);
            for other in Fault::ALL {
                assert_eq!(
                    verdict.tally(other).count,
                    u64::from(other == fault),
                    "{posts:?}\n{verdict}"
                );
            }
            assert_eq!(verdict.tally(fault).examples[0].post, Some(PostId(id)));
        }
    }

    #[test]
    fn an_authors_own_posts_have_to_be_visible() {
        let verdict = verdict_of(UserId(3), &[]);
        assert_eq!(
            (verdict.lost.count, verdict.lost.examples[0].post),
            (1, Some(PostId(30)))
        );
    }
}
