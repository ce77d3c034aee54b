//! Several sweepers at once.

use std::time::Duration;

use events::{Stage, id_ranges::BLOCK, topic::TopicKind};

use crate::rig::{Rig, command};

/// D-10: two sweepers that find the same rows missing publish each of them exactly once.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn d_10_two_sweepers_publish_each_row_once() {
    let rig = Rig::new().await;
    rig.drop_slot().await;
    // Across the borders of more blocks than one of them claims at once, so that both have
    // something to do.
    let mut posts = Vec::new();
    for border in 1..4 {
        let jump = format!(
            "select setval(pg_get_serial_sequence('tideline.outbox', 'id'), {} - 500)",
            2 * border * BLOCK
        );
        let _at: i64 = rig.one(&jump).await;
        posts.extend(rig.posts(1_000).await);
    }
    // One alone would take a quarter of a minute, so the other has time to come.
    let small = [
        ("TIDELINE_SWEEP__RATE", "200"),
        ("TIDELINE_SWEEP__CLAIM_BATCH", "50"),
        ("TIDELINE_POSTGRES__POOL_SIZE", "6"),
    ];
    let both = command(Stage::Published, Duration::from_secs(60));
    let (first, second) = tokio::join!(rig.once(&both, &small), rig.once(&both, &small));
    let sent: Vec<u64> = [&first, &second]
        .iter()
        .map(|summary| summary.stages[0].redelivered)
        .collect();
    // What one of them left to the other is missing still if both have left.
    let rest = rig.once(&both, &small).await;
    let copies = rig.copies(TopicKind::Posts).await;
    assert_eq!(copies.len(), posts.len());
    assert!(
        copies.values().all(|&copies| copies == 1),
        "a row was sent twice"
    );
    assert_eq!(rig.missing(Stage::Published).await, 0);
    println!(
        "sent by each: {sent:?}, by a third: {}",
        rest.stages[0].redelivered
    );
    assert!(
        sent.iter().all(|&sent| sent > 0),
        "both took part: {sent:?}"
    );
}
