//! The load is open: what the server does moves no arrival, and shows in the times instead.

use std::sync::Arc;
use std::time::Duration;

use graph::{Graph, Shape};
use judge::JournalWriter;
use load::accounts::Accounts;
use load::client::{Client, Tokens};
use load::plan::{Plan, Population};
use load::run::{Arrived, Shared, dispatch};
use load::scenario::{Overrides, Scenario};
use load::tally::Request;

use crate::fake::Fake;

const SECRET: &[u8] = b"0123456789abcdef0123456789abcdef";

struct Stage {
    shared: Arc<Shared>,
    plan: Plan,
    planned: u64,
}

/// So many seconds of posts at 100/s against the fake.
fn stage(fake: &Fake, seconds: u32, in_flight: usize) -> Stage {
    let text = format!(
        "duration = \"{seconds}s\"\n[graph]\nusers = 50\n[posts.arrivals]\nprocess = \"constant\"\nrate = 100.0\n\
         [limits]\nin_flight = {in_flight}\n"
    );
    let scenario = Scenario::parse("test", &text, &Overrides::default()).unwrap();
    let graph = Graph::new(Shape::of(50, 1)).unwrap();
    let population = Arc::new(Population::new(graph, false).unwrap());
    let plan = || Plan::new(&scenario, &population).unwrap();
    let client = Client::new(fake.url(), fake.url(), Tokens::new(SECRET).unwrap()).unwrap();
    let folder = std::env::temp_dir().join(testkit::unique("load"));
    std::fs::create_dir_all(&folder).unwrap();
    let shared = Shared::new(
        client,
        JournalWriter::create(&folder.join("journal")).unwrap(),
        Accounts::behind(0),
        &scenario,
        "test".to_owned(),
    );
    Stage {
        shared: Arc::new(shared),
        planned: plan().count() as u64,
        plan: plan(),
    }
}

#[tokio::test]
async fn a_server_that_stands_still_slows_no_arrival_and_shows_in_the_times() {
    let fake = Fake::start(false).await;
    let stage = stage(&fake, 1, 512);
    // Nothing is answered before 60 posts have arrived: whoever waits for answers never gets there.
    let opens = {
        let fake = fake.clone();
        tokio::spawn(async move {
            testkit::eventually("60 posts arrive unanswered", async || {
                (fake.arrived() >= 60).then_some(())
            })
            .await;
            fake.open();
        })
    };
    let arrived = dispatch(stage.plan, &stage.shared, std::future::pending()).await;
    assert_eq!(arrived.unwrap(), Arrived::All);
    opens.await.unwrap();
    let tally = stage.shared.tally();
    assert_eq!(tally.counts.planned, stage.planned);
    assert_eq!((tally.counts.posts, tally.counts.shed), (stage.planned, 0));
    // The first post was due at 0 ms and not answered before the 60th was due, at 590 ms.
    let times = tally.request(Request::Post).unwrap();
    let slowest = times.quantile(1.0).unwrap();
    assert!(slowest >= Duration::from_millis(585), "{slowest:?}");
    let median = times.quantile(0.5).unwrap();
    assert!(median < slowest, "later posts waited for less: {median:?}");
}

#[tokio::test]
async fn what_is_due_beyond_the_bound_is_counted_and_not_delayed() {
    let fake = Fake::start(false).await;
    let stage = stage(&fake, 1, 5);
    let opens = {
        let (fake, shared) = (fake.clone(), Arc::clone(&stage.shared));
        tokio::spawn(async move {
            testkit::eventually("operations are left out", async || {
                (shared.counts().shed >= 20).then_some(())
            })
            .await;
            assert_eq!(shared.in_flight(), 5);
            fake.open();
        })
    };
    let arrived = dispatch(stage.plan, &stage.shared, std::future::pending()).await;
    assert_eq!(arrived.unwrap(), Arrived::All);
    opens.await.unwrap();
    let counts = stage.shared.counts();
    assert_eq!(counts.planned, stage.planned);
    assert!(counts.shed >= 20, "{counts:?}");
    assert_eq!(counts.posts + counts.shed, stage.planned);
    assert_eq!(stage.shared.in_flight(), 0);
}

#[tokio::test]
async fn whoever_asks_to_stop_gets_what_is_under_way_answered() {
    let fake = Fake::start(true).await;
    // So many that not all have arrived when this process is stalled for a while.
    let stage = stage(&fake, 60, 512);
    let stop = {
        let shared = Arc::clone(&stage.shared);
        async move {
            testkit::eventually("some posts are acknowledged", async || {
                (shared.counts().posts >= 5).then_some(())
            })
            .await;
        }
    };
    let arrived = dispatch(stage.plan, &stage.shared, stop).await;
    assert_eq!(arrived.unwrap(), Arrived::Stopped);
    let counts = stage.shared.counts();
    assert!(counts.planned < stage.planned, "{counts:?}");
    assert_eq!(counts.posts, counts.planned);
}
