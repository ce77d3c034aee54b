//! Fan-out workers die, come and go, and meet records that are no events.

use std::{collections::HashMap, time::Duration};

use anyhow::Context;
use bytes::Bytes;
use events::{PostId, Stage, topic::TopicKind};
use kafka::{Header, Producer, Record};
use testkit::Service;

use super::{
    Cast, LIMIT, Proof, Scenario, Stands, Sweep,
    still::{STANDS, Still},
};
use crate::{Run, metrics, report::Planted, run::STAYING};

const WITHIN: Duration = Duration::from_secs(40);
/// Ten pages for the followers of an author.
const SMALL_PAGES: (&str, &str) = ("TIDELINE_FANOUT__PAGE_ROWS", "2");
/// A member that leaves when it is asked to stop.
const DYNAMIC: &[(&str, &str)] = &[("TIDELINE_FANOUT__INSTANCE_ID", "")];
const WORKERS: &[&str] = &["fanout", "fanout-2", "fanout-3"];
/// Later than any event of a run.
const NO_EVENT: i64 = 9_000_000_000;

/// The faults of this family.
pub(super) const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "fanout-killed-mid-page",
        about: "fan-out is killed when some followers of a post have it and others do not",
        covers: &[22, 30],
        cast: Cast::ONE_OF_EACH,
        fault: |run| Box::pin(killed_mid_page(run)),
        sweep: Sweep::Counts,
        limit: LIMIT,
        quick: false,
        stands: Stands::Green,
    },
    Scenario {
        name: "fanout-rolling-restart",
        about: "three fan-out workers are restarted one after the other, twice",
        covers: &[23],
        cast: Cast {
            fanouts: WORKERS,
            fanout_env: DYNAMIC,
            ..Cast::ONE_OF_EACH
        },
        fault: |run| Box::pin(rolling_restart(run)),
        sweep: Sweep::Silent,
        limit: LIMIT,
        quick: false,
        stands: Stands::Green,
    },
    Scenario {
        name: "poison-records",
        about: "records that are no events are put into the posts topic",
        covers: &[25],
        cast: Cast::ONE_OF_EACH,
        fault: |run| Box::pin(poison(run)),
        sweep: Sweep::Silent,
        limit: LIMIT,
        quick: true,
        stands: Stands::Green,
    },
    Scenario {
        name: "poison-panics",
        about: "the work on one record panics",
        covers: &[25],
        cast: Cast::ONE_OF_EACH,
        fault: |run| Box::pin(panics(run)),
        sweep: Sweep::May,
        limit: LIMIT,
        quick: false,
        stands: Stands::Green,
    },
];

/// The rest is written by the next worker, and nothing twice.
async fn killed_mid_page(run: &mut Run) -> anyhow::Result<Proof> {
    const TRIES: u32 = 6;
    let mut proof = None;
    for _ in 0..TRIES {
        run.kill("fanout")?;
        // So that there is work when it starts.
        run.more_posts(20).await?;
        let pages = run.rng().u32(5..40);
        let stop_there = format!("fanout::page-written={pages}*off->pause");
        let extra = [("FAILPOINTS", stop_there.as_str()), SMALL_PAGES];
        run.spawn("fanout", Service::Fanout, &extra);
        until_it_stands(run).await?;
        let partly = partly_written(run).await?;
        if partly > 0 {
            proof = Some(format!(
                "killed when {partly} posts were at some of their followers"
            ));
            break;
        }
    }
    run.kill("fanout")?;
    run.start("fanout", Service::Fanout, &[SMALL_PAGES]).await;
    run.fault_over().await?;
    Ok(proof)
}

/// Partitions change hands again and again.
async fn rolling_restart(run: &mut Run) -> anyhow::Result<Proof> {
    const CHANGES: &str = "tideline_fanout_rebalances_total";
    const ROUNDS: u32 = 2;
    let (mut changes, mut restarts) = (0.0, 0);
    for _ in 0..ROUNDS {
        for name in WORKERS {
            changes += metrics::sum(&run.scrape(name)?, CHANGES).context("no such metric")?;
            run.stop(name).await?;
            let posts = run.rng().usize(5..25);
            run.more_posts(posts).await?;
            run.start(name, Service::Fanout, DYNAMIC).await;
            let posts = run.rng().usize(5..25);
            run.more_posts(posts).await?;
            restarts += 1;
        }
    }
    for name in WORKERS {
        changes += metrics::sum(&run.scrape(name)?, CHANGES).context("no such metric")?;
    }
    run.fault_over().await?;
    // Each of them moves partitions of somebody.
    let enough = changes >= f64::from(restarts);
    Ok(enough.then(|| format!("{restarts} restarts, {changes} changes of the assignment")))
}

/// Each becomes a dead letter, and the records behind it are delivered.
async fn poison(run: &mut Run) -> anyhow::Result<Proof> {
    const SQL: &str = "select count(*) from tideline.dead_letters where stage = 'delivered'";
    let config = run.flow().pipeline().deployment().kafka_config();
    let topic = config.namespace.topic(TopicKind::Posts);
    let (producer, _reports) = Producer::new(&config, "chaos")?;
    let records = poisons(&topic);
    let count = i64::try_from(records.len())?;
    run.expect_letters(count);
    run.plant(Planted {
        strangers: 2,
        ghosts: count - 2,
    });
    for record in records {
        let _position = producer.send(record, Duration::from_secs(10)).await?;
        run.more_posts(2).await?;
    }
    producer.close().await;
    run.fault_over().await?;
    run.until(WITHIN, "each of them is a dead letter", async |run| {
        let sql = run.flow().sql().get().await?;
        let letters: i64 = sql.query_one(SQL, &[]).await?.get(0);
        Ok((letters >= count).then_some(()))
    })
    .await?;
    Ok(Some(format!(
        "{count} records that are no events became dead letters"
    )))
}

/// Two without an envelope, the others with one.
fn poisons(topic: &str) -> Vec<Record> {
    let record = |key: Option<&str>, payload: Option<&str>, event: Option<(i64, &str)>| {
        let headers = event.map(|(number, type_name)| {
            vec![
                Header::text("ce_specversion", "1.0"),
                Header::text("ce_id", (NO_EVENT + number).to_string()),
                Header::text("ce_source", "/somebody/else"),
                Header::text("ce_type", type_name.to_owned()),
            ]
        });
        Record {
            topic: topic.to_owned(),
            key: key.map(|key| Bytes::copy_from_slice(key.as_bytes())),
            payload: payload.map(|payload| Bytes::copy_from_slice(payload.as_bytes())),
            headers: headers.unwrap_or_default(),
        }
    };
    const CREATED: &str = "tideline.post.created.v1";
    const VALID: &str = r#"{"post_id":"1","author_id":"1","post_us":1}"#;
    vec![
        record(Some("1"), Some("\u{0}\u{1}not JSON"), None),
        record(None, None, None),
        record(Some("2"), Some("{"), Some((1, CREATED))),
        record(Some("2"), None, Some((2, CREATED))),
        record(Some("3"), Some(VALID), Some((3, CREATED))),
        record(None, Some(VALID), Some((4, CREATED))),
        record(
            Some("4"),
            Some(VALID),
            Some((5, "tideline.post.created.v9")),
        ),
        record(
            Some("4"),
            Some(r#"{"post_id":"99999999999999999999","author_id":"4","post_us":1}"#),
            Some((6, CREATED)),
        ),
    ]
}

/// The process has to survive it.
async fn panics(run: &mut Run) -> anyhow::Result<Proof> {
    const PANICKED: &str = "panicked";
    let pages = run.rng().u32(10..40);
    let once = format!("fanout::page-written={pages}*off->1*panic->off");
    run.stop("fanout").await?;
    run.start("fanout", Service::Fanout, &[("FAILPOINTS", once.as_str())])
        .await;
    let log = run.process("fanout")?.log().to_owned();
    run.until(WITHIN, "the work on a record panics", async |_| {
        Ok(std::fs::read_to_string(&log)?
            .contains(PANICKED)
            .then_some(()))
    })
    .await?;
    // Time to end, if it is about to.
    tokio::time::sleep(STANDS).await;
    if let Some(status) = run.process("fanout")?.exit_status() {
        run.complain(format!(
            "fan-out ended, {status}, since one record panicked"
        ));
        run.start("fanout", Service::Fanout, &[]).await;
    }
    run.fault_over().await?;
    Ok(Some(format!("a panic behind {pages} pages")))
}

/// Waits until a worker has written something and then stands still with work to do.
async fn until_it_stands(run: &mut Run) -> anyhow::Result<()> {
    let mut still = Still::default();
    let first: usize = rows(run).await?.values().sum();
    run.until(WITHIN, "fan-out stands at its crash point", async |run| {
        let now: usize = rows(run).await?.values().sum();
        let stands = still.see(now) && now != first;
        let work = run.missing(Stage::Delivered).await?.count > 0;
        Ok((stands && work).then_some(()))
    })
    .await
}

/// Posts that some followers have, and others who stay do not.
async fn partly_written(run: &Run) -> anyhow::Result<usize> {
    let rows = rows(run).await?;
    Ok(rows.values().filter(|&&count| count < STAYING).count())
}

/// How many rows each post has.
async fn rows(run: &Run) -> anyhow::Result<HashMap<PostId, usize>> {
    run.flow().rows_by_post().await
}
