//! Walks of one delivery, and the property that no order of answers loses a follower.

use std::collections::BTreeSet;

use events::PostId;
use proptest::prelude::*;

use super::*;

const POST: Post = Post {
    id: PostId(1),
    author: UserId(7),
    post_us: Micros(1_000),
};
const RULES: Rules = Rules {
    retention_us: 1_000_000,
    horizon_us: 500_000,
    page_rows: 2,
    visible_within_us: 60,
};

fn page(post: PostState, followers: &[i64]) -> Page {
    let edges = followers
        .iter()
        .map(|&f| Edge {
            follower: UserId(f),
            edge_us: Micros(5),
        })
        .collect();
    Page {
        post,
        pg_now: Micros(2_000),
        edges,
    }
}

fn rows(followers: &[i64]) -> Vec<Row> {
    followers
        .iter()
        .map(|&f| Row {
            owner: UserId(f),
            write_us: Micros(1_000),
            expires_us: Micros(1_001_000),
        })
        .collect()
}

fn read(after: Option<i64>) -> Step {
    Step::Read {
        after: after.map(UserId),
    }
}

#[test]
fn next_page_is_read_while_this_one_is_written() {
    let (mut delivery, steps) = Delivery::new(Plan::Direct(POST), RULES);
    assert_eq!(steps, [read(None)]);
    assert_eq!(
        delivery.page_read(&page(PostState::Live, &[1, 2])),
        [Step::Write(rows(&[1, 2])), read(Some(2))]
    );
    // The page is held, and no third one is read.
    assert_eq!(delivery.page_read(&page(PostState::Live, &[3, 4])), []);
    assert_eq!(
        delivery.written(),
        [Step::Write(rows(&[3, 4])), read(Some(4))]
    );
    assert_eq!(delivery.written(), []);
    assert_eq!(
        delivery.page_read(&page(PostState::Live, &[])),
        [Step::Finished(Outcome::Delivered)]
    );
    assert_eq!(delivery.audience(), 4);
}

#[test]
fn nobody_follows() {
    let (mut delivery, _) = Delivery::new(Plan::Direct(POST), RULES);
    assert_eq!(
        delivery.page_read(&page(PostState::Live, &[])),
        [Step::Finished(Outcome::Delivered)]
    );
}

#[test]
fn a_page_of_late_edges_only_is_passed_over() {
    let (mut delivery, _) = Delivery::new(Plan::Direct(POST), RULES);
    let mut late = page(PostState::Live, &[1, 2]);
    late.edges
        .iter_mut()
        .for_each(|edge| edge.edge_us = Micros(1_001 + row::LATE_EDGE_US));
    assert_eq!(delivery.page_read(&late), [read(Some(2))]);
    assert_eq!(delivery.audience(), 0);
}

/// D-8: a deleted post, an absent one and one past the horizon get no rows.
#[test]
fn d_8_posts_that_get_no_rows() {
    let old = Page {
        pg_now: Micros(501_000),
        ..page(PostState::Live, &[1])
    };
    for (page, outcome) in [
        (page(PostState::Deleted, &[1, 2]), Outcome::SkippedDeleted),
        (page(PostState::Foreign, &[]), Outcome::Ghost),
        (old, Outcome::PastHorizon),
    ] {
        let (mut delivery, _) = Delivery::new(Plan::Direct(POST), RULES);
        assert_eq!(delivery.page_read(&page), [Step::Finished(outcome)]);
    }
}

#[test]
fn d_8_post_deleted_between_two_pages_ends_after_the_running_write() {
    let (mut delivery, _) = Delivery::new(Plan::Direct(POST), RULES);
    let _steps = delivery.page_read(&page(PostState::Live, &[1, 2]));
    assert_eq!(delivery.page_read(&page(PostState::Deleted, &[3, 4])), []);
    assert_eq!(
        delivery.written(),
        [Step::Finished(Outcome::SkippedDeleted)]
    );
}

#[test]
fn delete_pages_the_followers_whatever_the_post_says() {
    for state in [PostState::Deleted, PostState::Live] {
        let (mut delivery, _) = Delivery::new(
            Plan::Delete {
                post: POST,
                del_us: Micros(9_000),
            },
            RULES,
        );
        // Deletes have no horizon.
        let first = Page {
            pg_now: Micros(i64::MAX),
            ..page(state, &[1, 2])
        };
        let owners = vec![UserId(1), UserId(2)];
        assert_eq!(
            delivery.page_read(&first),
            [
                Step::Delete {
                    owners,
                    del_us: Micros(9_000)
                },
                read(Some(2))
            ]
        );
        assert_eq!(delivery.page_read(&page(state, &[])), []);
        assert_eq!(delivery.written(), [Step::Finished(Outcome::Removed)]);
    }
}

#[test]
fn a_post_of_another_database_is_a_ghost_for_both_plans() {
    let judge = |found| PostState::judge(&POST, found);
    assert_eq!(
        judge(Some((POST.author, POST.post_us, false))),
        PostState::Live
    );
    assert_eq!(
        judge(Some((POST.author, POST.post_us, true))),
        PostState::Deleted
    );
    assert_eq!(
        judge(Some((UserId(8), POST.post_us, false))),
        PostState::Foreign
    );
    assert_eq!(
        judge(Some((POST.author, Micros(999), true))),
        PostState::Foreign
    );
    assert_eq!(judge(None), PostState::Absent);
    for plan in [
        Plan::Direct(POST),
        Plan::Delete {
            post: POST,
            del_us: Micros(9_000),
        },
    ] {
        let (mut delivery, _) = Delivery::new(plan, RULES);
        assert_eq!(
            delivery.page_read(&page(PostState::Foreign, &[1, 2])),
            [Step::Finished(Outcome::Ghost)]
        );
    }
}

/// The replication stream is ahead of what other snapshots see.
#[test]
fn an_absent_post_is_looked_for_again_until_it_is_visible_or_a_ghost() {
    let absent = |at| Page {
        pg_now: Micros(at),
        ..page(PostState::Absent, &[])
    };
    let later = |millis| Step::ReadLater {
        after: None,
        pause: Duration::from_millis(millis),
    };
    let (mut delivery, _) = Delivery::new(Plan::Direct(POST), RULES);
    assert_eq!(delivery.page_read(&absent(2_000)), [later(50)]);
    assert_eq!(delivery.page_read(&absent(2_059)), [later(100)]);
    let visible = page(PostState::Live, &[1]);
    assert_eq!(delivery.page_read(&visible), [Step::Write(rows(&[1]))]);
    assert_eq!(delivery.written(), [Step::Finished(Outcome::Delivered)]);

    let (mut delivery, _) = Delivery::new(Plan::Direct(POST), RULES);
    assert_eq!(delivery.page_read(&absent(2_000)), [later(50)]);
    assert_eq!(
        delivery.page_read(&absent(2_060)),
        [Step::Finished(Outcome::Ghost)]
    );
}

#[test]
fn an_event_of_another_lane_is_nothing() {
    let (_, steps) = Delivery::new(Plan::Nothing, RULES);
    assert_eq!(steps, [Step::Finished(Outcome::Nothing)]);
}

proptest! {
    /// Whatever comes first, read or write: every follower gets one row before the end.
    #[test]
    fn every_follower_is_written_before_the_end(
        followers in proptest::collection::btree_set(1_i64..500, 0..40),
        reads_first in proptest::collection::vec(any::<bool>(), 200),
    ) {
        let (mut delivery, mut todo) = Delivery::new(Plan::Direct(POST), RULES);
        let mut written = BTreeSet::new();
        let mut order = reads_first.into_iter();
        let mut finished = None;
        while !todo.is_empty() {
            prop_assert!(finished.is_none(), "nothing follows the end");
            prop_assert!(todo.len() <= 2);
            let index = usize::from(!order.next().unwrap_or(true)).min(todo.len() - 1);
            let more = match todo.remove(index) {
                Step::Read { after } => {
                    let from = after.map_or(0, |user| user.0 + 1);
                    let next: Vec<_> = followers.range(from..).copied().take(2).collect();
                    delivery.page_read(&page(PostState::Live, &next))
                }
                Step::Write(rows) => {
                    for row in rows {
                        prop_assert!(written.insert(row.owner.0), "written once");
                    }
                    delivery.written()
                }
                Step::Delete { .. } | Step::ReadLater { .. } => {
                    return Err(TestCaseError::fail("nothing is deleted or absent"));
                }
                Step::Finished(outcome) => {
                    finished = Some(outcome);
                    Vec::new()
                }
            };
            todo.extend(more);
        }
        prop_assert_eq!(finished, Some(Outcome::Delivered));
        prop_assert_eq!(written, followers);
    }
}
