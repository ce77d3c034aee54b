//! The order of operations, what it makes of edges, and what is not of this journal.

use super::*;

const AUTHOR: UserId = UserId(1);

#[test]
fn bulk_follows_come_before_everything_and_changes_after() {
    let mut journal = Journal::new();
    journal.bulk_follows(AUTHOR, [UserId(3), UserId(2), UserId(3)]);
    let end = journal.edge_sent(Change::Unfollow, UserId(2), AUTHOR);
    journal.edge_acked(end);
    let begin = journal.edge_sent(Change::Follow, UserId(4), AUTHOR);
    journal.edge_acked(begin);
    let post = journal.post_sent(AUTHOR, "a");
    let sent = journal.entry(post).unwrap().sent;
    let claims = [2, 3, 4, 5].map(|owner| journal.claim(AUTHOR, UserId(owner), sent));
    assert_eq!(
        claims,
        [Claim::MustNot, Claim::Must, Claim::Must, Claim::MustNot]
    );
    let must: BTreeSet<_> = journal.must_have(journal.entry(post).unwrap()).collect();
    assert_eq!(must, BTreeSet::from([UserId(3), UserId(4)]));
    assert_eq!(
        journal.changed_readers(),
        BTreeSet::from([UserId(2), UserId(4)])
    );
}

#[test]
fn a_commit_that_nobody_was_told_about_is_found() {
    let mut journal = Journal::new();
    let post = journal.post_sent(AUTHOR, "a");
    let stored = StoredPost {
        id: PostId(9),
        author: AUTHOR,
        client_post_id: "a".into(),
        deleted: false,
    };
    journal.settle(&[stored]);
    assert_eq!(journal.entry(post).unwrap().id, Some(PostId(9)));
    assert_eq!(journal.accepted(), 0);
    assert_eq!(journal.post(PostId(9)).unwrap().client_post_id, "a");
}

#[test]
fn d_2_another_id_for_the_same_key_is_kept() {
    let mut journal = Journal::new();
    let post = journal.post_sent(AUTHOR, "a");
    for id in [9, 9, 10] {
        journal.post_acked(post, PostId(id));
    }
    assert_eq!(journal.entry(post).unwrap().other_ids, [PostId(10)]);
    assert_eq!(journal.accepted(), 1);
}

#[test]
fn an_edge_that_changed_and_that_postgres_does_not_show_is_undecided() {
    let mut journal = Journal::new();
    let left = journal.edge_sent(Change::Unfollow, UserId(2), AUTHOR);
    journal.edge_acked(left);
    let told = journal.edge_sent(Change::Unfollow, UserId(3), AUTHOR);
    journal.edge_acked(told);
    journal.bulk_follows(AUTHOR, [UserId(3)]);
    journal.add_base(AUTHOR, vec![UserId(4)]);
    let claims = [2, 3, 4, 5].map(|owner| journal.claim(AUTHOR, UserId(owner), 9));
    // The first may have been there or not, the second was, as the journal says.
    assert_eq!(
        claims,
        [Claim::May, Claim::MustNot, Claim::Must, Claim::MustNot]
    );
}

#[test]
fn beside_others_only_what_could_be_ours_is_judged() {
    let mut journal = Journal::new();
    journal.know_range(UserId(10)..=UserId(19));
    assert!(
        !journal.is_others(UserId(5), PostId(100)),
        "alone, all of it is ours"
    );
    journal.beside_others(PostId(100));
    assert!(journal.is_others(UserId(10), PostId(100)), "from before");
    assert!(
        journal.is_others(UserId(5), PostId(101)),
        "of somebody else"
    );
    assert!(!journal.is_others(UserId(10), PostId(101)));
}
