//! Mode `dispatch`: no logical replication, several dispatchers.

use events::{Stage, topic::TopicKind};
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
    let dying = rig.process(Service::Sweep, &doomed).await;
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
