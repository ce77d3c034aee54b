//! Small scenarios on real servers and services, from the graph to the verdict.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use load::play::{Played, play};
use load::scenario::{Overrides, Scenario};
use load::screen::Screen;
use load::target::{Target, Unfit};
use report::{Fact, Outcome};
use testkit::{Pipeline, Service, ServiceProcess};
use tokio::sync::watch;

const SMALL: &str = r#"
duration = "6s"
warm_up = "1s"
[graph]
users = 300
celebrities = [250]
[posts]
arrivals = { process = "poisson", rate = 20.0 }
delete_share = 0.1
delete_within = "1s"
repeat_share = 0.1
[[celebrities]]
at = "2s"
readers_share = 0.1
readers_within = "2s"
[readers]
arrivals = { process = "poisson", rate = 5.0 }
pages = 2
[churn]
unfollow_rate = 4.0
follow_rate = 2.0
back_after = "500ms"
celebrity_share = 0.5
[probe]
share = 0.2
# The machine that runs tests has other things to do.
[thresholds]
scheduler_lag_p99 = "30s"
[thresholds.last_follower_p99]
under_100 = "60s"
under_1k = "60s"
"#;

/// Without Postgres: the graph is made through the API and only walks are judged.
const BY_API: &str = r#"
duration = "3s"
[graph]
users = 20
smallest = 2
[posts]
arrivals = { process = "constant", rate = 10.0 }
[hot_reader]
follows = 5
arrivals = { process = "constant", rate = 3.0 }
[thresholds]
scheduler_lag_p99 = "30s"
"#;

async fn services(pipeline: &Pipeline) -> Vec<ServiceProcess> {
    let mut running = Vec::new();
    for service in [
        Service::WriteApi,
        Service::Relay,
        Service::Fanout,
        Service::Sweep,
        Service::ReadApi,
    ] {
        running.push(pipeline.start(service, &[]).await);
    }
    running
}

fn target(pipeline: &Pipeline) -> Target {
    let setting = |key: &str| {
        let found = pipeline.env().iter().find(|(name, _)| name == key);
        found.unwrap().1.clone()
    };
    Target {
        write_api: setting("TIDELINE_WRITE_API__LISTEN"),
        read_api: setting("TIDELINE_READ_API__LISTEN"),
        secret_file: PathBuf::from(setting("TIDELINE_AUTH__SECRET_FILE")),
        postgres: Some(setting("TIDELINE_POSTGRES__URL")),
        cql: Some(setting("TIDELINE_CQL__NODES")),
        keyspace: setting("TIDELINE_CQL__KEYSPACE"),
        metrics: vec![
            setting("TIDELINE_FANOUT__ADMIN"),
            setting("TIDELINE_SWEEP__ADMIN"),
        ],
        notes: vec![Fact::new("told", "by the test")],
    }
}

/// What a run ended with. Preparing and judging ask some servers once, and a request is given up
/// some time: where a server has stalled, the run is made again, if that begins within a minute. A
/// promise that was broken is told at once.
async fn played(text: &str, target: &Target) -> Played {
    let scenario = Scenario::parse("small", text, &Overrides::default()).unwrap();
    let begun = Instant::now();
    loop {
        let folder = std::env::temp_dir().join(testkit::unique("load_run"));
        let screen = Arc::new(Screen::new(Duration::from_secs(1)));
        let (_told, stop) = watch::channel(false);
        let played = play(&scenario, target, &folder, String::new(), &screen, stop).await;
        // Not there when the run did not begin.
        let _removed = std::fs::remove_dir_all(folder);
        match played {
            Err(Unfit::Gone(error)) if begun.elapsed() < Duration::from_secs(60) => {
                eprintln!("again: {error:#}");
            }
            Ok(played)
                if played.run.outcome() == Outcome::Missed
                    && begun.elapsed() < Duration::from_secs(60) =>
            {
                eprintln!("again: {}", played.run.sentence());
            }
            played => return played.unwrap_or_else(|unfit| panic!("{unfit:?}")),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_small_run_is_measured_and_judged() {
    let pipeline = Pipeline::new().await;
    let _services = services(&pipeline).await;
    let target = target(&pipeline);
    let first = played(SMALL, &target).await;
    println!("{}\n{}", report::text(&first.run), first.last_line);
    assert_eq!(
        first.run.outcome(),
        Outcome::Held,
        "{}",
        first.run.sentence()
    );
    let judged = first.run.judged.as_ref().unwrap();
    assert!(judged.posts > 80, "{judged:?}");
    assert!(judged.rows_expected > 250, "{judged:?}");
    assert_eq!(judged.rows_found, judged.rows_expected);
    assert!(judged.walks > 40 && judged.walked_posts > 0, "{judged:?}");
    for (what, count) in [
        ("classes", first.run.classes.len()),
        ("writes", first.run.requests.len()),
        ("pages", first.run.pages.len()),
        ("lag", first.run.lag.len()),
    ] {
        assert!(count >= 2, "{what}");
    }
    assert!(
        first.last_line.ends_with("lost=0 duplicated=0"),
        "{}",
        first.last_line
    );
    assert!(first.run.versions.contains(&target.notes[0]));
    // The rows of the first run are no business of the second one.
    let second = played(
        BY_API,
        &Target {
            postgres: None,
            cql: None,
            ..target
        },
    )
    .await;
    println!("{}", second.last_line);
    assert_eq!(
        second.run.outcome(),
        Outcome::Held,
        "{}",
        second.run.sentence()
    );
    assert_eq!(second.run.judged.as_ref().unwrap().rows_stored, 0);
}
