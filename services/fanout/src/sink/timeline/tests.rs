//! Replays and races against the twin store: what D-7 and D-8 promise, driven through the core.

use std::time::Instant;

use events::PostId;
use proptest::prelude::*;
use timeline_store::{MemoryTimelines, ScannedRow};

use super::*;
use crate::core::{
    delivery::{Delivery, Page, PostState, Rules, Step},
    plan::Plan,
    row::Edge,
};

const POST: Post = Post {
    id: PostId(77),
    author: UserId(7),
    post_us: Micros(1_000_000),
};
const DEL_US: Micros = Micros(9_000_000_000);
const RULES: Rules = Rules {
    retention_us: 60_000_000_000,
    horizon_us: 50_000_000_000,
    page_rows: 3,
    visible_within_us: 1,
};

/// Delivers once, as the lane does; `stop_after` writes a crash comes.
async fn deliver(
    timelines: &Timelines<MemoryTimelines>,
    plan: Plan,
    edges: &[Edge],
    state: PostState,
    stop_after: usize,
) {
    let (mut delivery, mut todo) = Delivery::new(plan, RULES);
    let now = PgNow::new(Micros(2_000_000), Instant::now());
    let mut writes = 0;
    while let Some(step) = todo.pop() {
        let more = match step {
            Step::Read { after } => {
                let from =
                    edges.partition_point(|edge| after.is_some_and(|after| edge.follower <= after));
                let edges = edges
                    .iter()
                    .skip(from)
                    .take(RULES.page_rows)
                    .copied()
                    .collect();
                delivery.page_read(&Page {
                    post: state,
                    pg_now: Micros(2_000_000),
                    edges,
                })
            }
            Step::Finished(_) | Step::ReadLater { .. } => return,
            Step::Write(_) | Step::Delete { .. } if writes == stop_after => return,
            Step::Write(rows) => {
                writes += 1;
                let _written = timelines
                    .write(&POST, &rows, &now)
                    .await
                    .expect("the twin never fails");
                delivery.written()
            }
            Step::Delete { owners, del_us } => {
                writes += 1;
                timelines
                    .delete(&POST, &owners, del_us)
                    .await
                    .expect("the twin never fails");
                delivery.written()
            }
        };
        todo.extend(more);
    }
}

async fn cells(timelines: &Timelines<MemoryTimelines>) -> Vec<ScannedRow> {
    let mut rows = Vec::new();
    let _count = timelines
        .store
        .scan(100, |page| rows.extend(page))
        .await
        .expect("the twin never fails");
    rows
}

fn edges() -> impl Strategy<Value = Vec<Edge>> {
    proptest::collection::btree_map(1_i64..200, 0_i64..8_000_000_000, 0..20).prop_map(|edges| {
        edges
            .into_iter()
            .map(|(f, us)| Edge {
                follower: UserId(f),
                edge_us: Micros(us),
            })
            .collect()
    })
}

proptest! {
    /// D-7: crashes and replays leave the cells and write timestamps of one clean delivery.
    #[test]
    fn d_7_replay_changes_nothing(edges in edges(), crashes in proptest::collection::vec(0_usize..8, 0..4)) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        runtime.block_on(async {
            let once = Timelines::new(MemoryTimelines::new());
            deliver(&once, Plan::Direct(POST), &edges, PostState::Live, usize::MAX).await;
            let often = Timelines::new(MemoryTimelines::new());
            for crash in crashes {
                deliver(&often, Plan::Direct(POST), &edges, PostState::Live, crash).await;
            }
            deliver(&often, Plan::Direct(POST), &edges, PostState::Live, usize::MAX).await;
            let (once, often) = (cells(&once).await, cells(&often).await);
            prop_assert_eq!(once.len(), often.len());
            for (a, b) in once.iter().zip(&often) {
                prop_assert_eq!((a.owner, a.post, a.author, a.write_us), (b.owner, b.post, b.author, b.write_us));
                let apart = a.ttl_seconds.unwrap_or(0) - b.ttl_seconds.unwrap_or(0);
                prop_assert!(apart.abs() <= 5);
            }
            let due = edges.iter().filter(|edge| edge.edge_us <= POST.post_us.plus(Micros::HOUR)).count();
            prop_assert_eq!(once.len(), due);
            Ok(())
        })?;
    }

    /// D-8: whatever comes late, in part, again, after the delete or around it, nothing is left.
    #[test]
    fn d_8_delete_beats_late_inserts(edges in edges(), before in 0_usize..8, late in 0_usize..8) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        runtime.block_on(async {
            let timelines = Timelines::new(MemoryTimelines::new());
            deliver(&timelines, Plan::Direct(POST), &edges, PostState::Live, before).await;
            let delete = Plan::Delete { post: POST, del_us: DEL_US };
            deliver(&timelines, delete, &edges, PostState::Deleted, usize::MAX).await;
            // A worker that read its page before the delete writes it now.
            deliver(&timelines, Plan::Direct(POST), &edges, PostState::Live, late).await;
            deliver(&timelines, Plan::Direct(POST), &edges, PostState::Deleted, usize::MAX).await;
            prop_assert!(cells(&timelines).await.is_empty());
            Ok(())
        })?;
    }
}
