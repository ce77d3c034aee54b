//! Mode `dispatch`: no logical replication, several dispatchers.

use events::{Stage, id_ranges::BLOCK, topic::TopicKind};
use testkit::{Service, eventually};

use crate::rig::Rig;

const DISPATCH: (&str, &str) = ("TIDELINE_SWEEP__MODE", "dispatch");

/// D-10: three dispatchers share; one dies between the acknowledgement and its commit. Every row
/// is published, and only rows of that one batch are repeated.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn d_10_three_dispatchers_publish_everything_though_one_dies() {
    let rig = Rig::new().await;
    let options = [DISPATCH, ("TIDELINE_SWEEP__CLAIM_BATCH", "40")];
    let posts = rig.posts(400).await;
    let follows = rig.follows(60).await;
    let mut doomed = options.to_vec();
    doomed.push(("FAILPOINTS", "sweep::produced=2*off->panic"));
    // It may die before anybody has asked whether it is ready.
    let dying = rig.spawn(Service::Sweep, &doomed);
    let (first, second) = tokio::join!(rig.start(&options), rig.start(&options));
    // Whoever finishes the first rows: there are always more until one has died.
    let more = std::cell::RefCell::new(Vec::new());
    let dying = std::cell::RefCell::new(dying);
    let status = eventually("one dies", async || {
        let new = rig.posts(20).await;
        more.borrow_mut().extend(new);
        dying.borrow_mut().exit_status()
    })
    .await;
    let more = more.into_inner();
    assert!(!status.success());
    rig.complete(Stage::Published).await;

    let copies = rig.copies(TopicKind::Posts).await;
    assert_eq!(copies.len(), posts.len() + more.len());
    let repeated = copies.values().map(|copies| copies - 1).sum::<usize>();
    assert!(repeated <= 40, "{repeated} repeats");
    assert_eq!(rig.copies(TopicKind::Follows).await.len(), follows.len());
    // Nothing consumes follows, and the ledger says so.
    let sql = format!(
        "select coalesce(range_agg(r), '{{}}') @> int8multirange(int8range({}, {}, '[]'))
         from tideline.delivery_ledger l, unnest(l.ids) r where stage = 'delivered'",
        follows[0],
        follows[follows.len() - 1]
    );
    eventually("follows are entered as not consumed", async || {
        rig.one::<bool>(&sql).await.then_some(())
    })
    .await;
    first.stop().await;
    second.stop().await;
}

/// D-10: rows of many blocks, claimed side by side by two dispatchers at once: each is published
/// once, and the dead letter of a row that can never be produced is accounted for.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn d_10_claims_side_by_side_publish_each_row_once() {
    let rig = Rig::new().await;
    let mut posts = Vec::new();
    for block in 0..6 {
        let jump = format!(
            "select setval(pg_get_serial_sequence('tideline.outbox', 'id'), {})",
            block * BLOCK + 100
        );
        let _at: i64 = rig.one(&jump).await;
        posts.extend(rig.posts(150).await);
    }
    let unknown: i64 = rig
        .one(
            "insert into tideline.outbox (aggregatetype, aggregateid, partition_key, type, payload)
            values ('follow', '1:2', '2', 'tideline.unknown.v1', '{}') returning id",
        )
        .await;
    let options = [DISPATCH, ("TIDELINE_SWEEP__CLAIM_BATCH", "40")];
    let (first, second) = tokio::join!(rig.start(&options), rig.start(&options));
    rig.complete(Stage::Published).await;
    let letters = format!(
        "select count(*) from tideline.dead_letters where event_id = {unknown} and state = 'open'"
    );
    eventually("the dead letter has its row", async || {
        (rig.one::<i64>(&letters).await == 1).then_some(())
    })
    .await;
    let copies = rig.copies(TopicKind::Posts).await;
    assert_eq!(copies.len(), posts.len());
    assert!(copies.values().all(|&copies| copies == 1), "{copies:?}");
    let notes: i64 = rig.one("select count(*) from tideline.redelivery").await;
    assert_eq!(
        notes, 0,
        "what is sent for the first time is not sent again"
    );
    first.stop().await;
    second.stop().await;
}
