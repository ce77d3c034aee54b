//! Each fault planted into otherwise clean rows, and the names the judge gives it.

use events::{Micros, PostId, UserId};
use timeline_store::ScannedRow;

use super::*;
use crate::audience::Change;

const AUTHOR: UserId = UserId(1);
const KEPT: PostId = PostId(100);
const DELETED: PostId = PostId(200);

/// Author 1 with followers 2, 3 and 4; 4 unfollows before the second post, which is deleted.
fn journal() -> Journal {
    let mut journal = Journal::new();
    journal.know_users((1..=9).map(UserId));
    journal.bulk_follows(AUTHOR, [2, 3, 4].map(UserId));
    let kept = journal.post_sent(AUTHOR, "kept");
    journal.post_acked(kept, KEPT);
    let edge = journal.edge_sent(Change::Unfollow, UserId(4), AUTHOR);
    journal.edge_acked(edge);
    let deleted = journal.post_sent(AUTHOR, "deleted");
    journal.post_acked(deleted, DELETED);
    journal.delete_sent(deleted);
    journal.delete_acked(deleted);
    journal
}

fn row(owner: i64, post: PostId) -> ScannedRow {
    ScannedRow {
        owner: UserId(owner),
        post,
        author: AUTHOR,
        write_us: Micros(1),
        ttl_seconds: Some(60),
    }
}

fn verdict_of(rows: &[ScannedRow]) -> Verdict {
    let mut stored = Rows::default();
    stored.add(rows.iter().copied());
    stored.seal();
    let mut verdict = Verdict::default();
    compare_rows(&journal(), &stored, &mut verdict);
    compare_order(&journal(), &mut verdict);
    verdict
}

fn only(verdict: &Verdict, fault: Fault, owner: i64, post: PostId) {
    for other in Fault::ALL {
        assert_eq!(
            verdict.tally(other).count,
            u64::from(other == fault),
            "{verdict}"
        );
    }
    let example = &verdict.tally(fault).examples[0];
    assert_eq!(
        (example.owner, example.post, example.author),
        (Some(UserId(owner)), Some(post), Some(AUTHOR))
    );
}

#[test]
fn a_clean_store_has_no_fault() {
    // The row of 4 may be there or not: it unfollowed after the post.
    for rows in [
        vec![row(2, KEPT), row(3, KEPT)],
        vec![row(4, KEPT), row(3, KEPT), row(2, KEPT)],
    ] {
        let verdict = verdict_of(&rows);
        assert!(verdict.holds(), "{verdict}");
        assert_eq!(
            (
                verdict.rows_expected,
                verdict.rows_found,
                verdict.rows_stored
            ),
            (2, 2, rows.len() as u64)
        );
    }
}

#[test]
fn a_lost_row_is_named() {
    let verdict = verdict_of(&[row(3, KEPT)]);
    only(&verdict, Fault::Lost, 2, KEPT);
    assert_eq!((verdict.rows_expected, verdict.rows_found), (2, 1));
}

#[test]
fn foreign_rows_are_named() {
    let clean = [row(2, KEPT), row(3, KEPT)];
    // Never followed; unfollowed before the post; no such account; no such post; another author.
    let other_author = ScannedRow {
        author: UserId(8),
        ..row(2, PostId(300))
    };
    for planted in [
        row(9, KEPT),
        row(4, DELETED),
        row(99, KEPT),
        row(2, PostId(300)),
        other_author,
    ] {
        let verdict = verdict_of(&[clean[0], clean[1], planted]);
        assert_eq!(
            (verdict.foreign.count, verdict.lost.count),
            (1, 0),
            "{planted:?}"
        );
        let example = &verdict.foreign.examples[0];
        assert_eq!(
            (example.owner, example.post),
            (Some(planted.owner), Some(planted.post))
        );
    }
}

#[test]
fn a_row_that_names_another_author_is_foreign() {
    let planted = ScannedRow {
        author: UserId(8),
        ..row(3, KEPT)
    };
    let verdict = verdict_of(&[row(2, KEPT), planted]);
    assert_eq!(verdict.foreign.count, 1, "{verdict}");
}

#[test]
fn d_8_a_row_of_a_deleted_post_is_resurrected() {
    let verdict = verdict_of(&[row(2, KEPT), row(3, KEPT), row(3, DELETED)]);
    only(&verdict, Fault::Resurrected, 3, DELETED);
}

#[test]
fn a_deletion_of_unknown_outcome_allows_both() {
    let mut journal = journal();
    let post = journal.post_sent(AUTHOR, "unsure");
    journal.post_acked(post, PostId(300));
    journal.delete_sent(post);
    for rows in [
        vec![row(2, KEPT), row(3, KEPT)],
        vec![row(2, KEPT), row(3, KEPT), row(2, PostId(300))],
    ] {
        let mut stored = Rows::default();
        stored.add(rows);
        stored.seal();
        let mut verdict = Verdict::default();
        compare_rows(&journal, &stored, &mut verdict);
        assert!(verdict.holds(), "{verdict}");
    }
}

fn stored(id: PostId, key: &str, deleted: bool) -> StoredPost {
    StoredPost {
        id,
        author: AUTHOR,
        client_post_id: key.into(),
        deleted,
    }
}

#[test]
fn d_2_two_posts_for_one_key_are_named() {
    let mut verdict = Verdict::default();
    let posts = [
        stored(KEPT, "kept", false),
        stored(DELETED, "deleted", true),
        stored(PostId(300), "kept", false),
    ];
    compare_posts(&journal(), &posts, &mut verdict);
    assert_eq!(
        (verdict.posts, verdict.duplicated.count, verdict.lost.count),
        (2, 1, 0),
        "{verdict}"
    );
    assert_eq!(verdict.duplicated.examples[0].post, Some(PostId(300)));
    assert!(
        verdict.duplicated.examples[0]
            .reason
            .contains("\"kept\" made post 100 too")
    );
}

#[test]
fn posts_that_postgres_lost_or_deleted_or_kept_by_itself_are_named() {
    let rows = [
        (vec![stored(DELETED, "deleted", true)], Fault::Lost, KEPT),
        (
            vec![stored(KEPT, "kept", true), stored(DELETED, "deleted", true)],
            Fault::Lost,
            KEPT,
        ),
        (
            vec![
                stored(KEPT, "kept", false),
                stored(DELETED, "deleted", false),
            ],
            Fault::Resurrected,
            DELETED,
        ),
    ];
    for (posts, fault, id) in rows {
        let mut verdict = Verdict::default();
        compare_posts(&journal(), &posts, &mut verdict);
        assert_eq!(verdict.tally(fault).count, 1, "{verdict}");
        assert_eq!(verdict.tally(fault).examples[0].post, Some(id));
    }
}

#[test]
fn a_later_post_that_sorts_before_an_earlier_one_is_out_of_order() {
    let mut journal = journal();
    let late = journal.post_sent(AUTHOR, "late");
    journal.post_acked(late, PostId(150));
    let mut verdict = Verdict::default();
    compare_order(&journal, &mut verdict);
    assert_eq!(verdict.disorder.count, 1, "{verdict}");
    assert_eq!(verdict.disorder.examples[0].post, Some(PostId(150)));
}

#[test]
fn posts_that_overlapped_may_sort_either_way() {
    let mut journal = Journal::new();
    let (first, second) = (
        journal.post_sent(AUTHOR, "a"),
        journal.post_sent(AUTHOR, "b"),
    );
    journal.post_acked(first, PostId(2));
    journal.post_acked(second, PostId(1));
    let mut verdict = Verdict::default();
    compare_order(&journal, &mut verdict);
    assert!(verdict.holds(), "{verdict}");
}
