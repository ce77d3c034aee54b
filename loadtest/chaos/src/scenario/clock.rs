//! The wall clocks of services jump.
//!
//! Fan-out and the sweep get a clock of their own, which is set an hour ahead, and later an hour
//! back, while they work. Nothing that they write may come from it (D-7, D-11).

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::Context;
use events::Stage;
use testkit::{Clock, Service};
use timeline_store::{ScannedRow, TimelineStore as _};

use super::{Cast, Proof, Scenario, Stands, Sweep, slot};
use crate::{Run, account};

const HOUR: i64 = 3_600;
/// A run is shorter than this, and an hour is longer.
const RUN: i64 = 1_200;
const WITHIN: Duration = Duration::from_secs(60);
const LIMIT: Duration = Duration::from_secs(300);
const WHO: [(&str, Service); 2] = [("fanout", Service::Fanout), ("sweep", Service::Sweep)];

/// The faults of this family.
pub(super) const SCENARIOS: &[Scenario] = &[Scenario {
    name: "clocks-jump",
    about: "fan-out's and the sweep's clock jump an hour ahead, and an hour back, as they work",
    covers: &[],
    cast: Cast::ONE_OF_EACH,
    fault: |run| Box::pin(jump(run)),
    sweep: Sweep::Heals,
    limit: LIMIT,
    quick: false,
    stands: Stands::Green,
}];

async fn jump(run: &mut Run) -> anyhow::Result<Proof> {
    let clock = testkit::clock();
    let mut seen = Vec::new();
    let mut rounds = [HOUR, -HOUR];
    run.rng().shuffle(&mut rounds);
    for ahead in rounds {
        clock.set(0)?;
        restart(run, Some(&clock)).await?;
        run.more_posts(20).await?;
        clock.set(ahead)?;
        // The sweep has work to do as well.
        let _proof = slot::lose(run).await?;
        run.more_posts(40).await?;
        all_delivered(run).await?;
        for (name, log) in stopped(run).await? {
            seen.push((name, ahead, off(run, &log).await?));
        }
    }
    restart(run, None).await?;
    run.fault_over().await?;
    let (ttl, written) = spread(run).await?;
    if ttl > RUN || written > RUN {
        run.complain(format!(
            "the ends of rows are {ttl} s apart and their timestamps {written} s (D-7)"
        ));
    }
    // The last line of a log is a few seconds old.
    let hit = |(_, ahead, off): &(&str, i64, i64)| (ahead - off).abs() < 60;
    Ok(seen
        .iter()
        .all(hit)
        .then(|| format!("by their logs the clocks were off by so many seconds: {seen:?}")))
}

/// Starts fan-out and the sweep, and stops them first where they run.
async fn restart(run: &mut Run, clock: Option<&Clock>) -> anyhow::Result<()> {
    let env = clock.map(Clock::env).unwrap_or_default();
    let env: Vec<_> = env.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
    for (name, service) in WHO {
        if run.process(name).is_ok() {
            run.stop(name).await?;
        }
        run.start(name, service, &env).await;
    }
    Ok(())
}

/// Stops fan-out and the sweep; answers their logs, whose last line is of the end.
async fn stopped(run: &mut Run) -> anyhow::Result<Vec<(&'static str, PathBuf)>> {
    let mut logs = Vec::new();
    for (name, _) in WHO {
        logs.push((name, run.process(name)?.log().to_owned()));
        run.stop(name).await?;
    }
    Ok(logs)
}

/// By how many seconds the time of a log's last line is ahead of the real time.
async fn off(run: &Run, log: &Path) -> anyhow::Result<i64> {
    const SQL: &str = "select round(extract(epoch from
        $1::text::timestamptz - clock_timestamp()))::bigint";
    let last = sandbox::tail(log, 1);
    let time = last.split(' ').next().unwrap_or_default();
    let sql = run.flow().sql().get().await?;
    let row = sql.query_one(SQL, &[&time]).await;
    let row = row.with_context(|| format!("the last line of a log: {last}"))?;
    Ok(row.get(0))
}

/// Waits until everything up to now is delivered, by whom ever.
async fn all_delivered(run: &mut Run) -> anyhow::Result<()> {
    let newest = account::newest(run.flow()).await?;
    run.until(WITHIN, "everything is delivered", async |run| {
        let missing = account::missing(run.flow(), Stage::Delivered, newest).await?;
        Ok((missing.count == 0).then_some(()))
    })
    .await
}

/// How far apart the ends of all rows are, and their write timestamps, in seconds.
async fn spread(run: &Run) -> anyhow::Result<(i64, i64)> {
    let mut rows: Vec<(i64, i64)> = Vec::new();
    let take = |page: Vec<ScannedRow>| {
        for row in page {
            let left = row.ttl_seconds.map_or(i64::MAX, i64::from);
            rows.push((left, row.write_us.0 / 1_000_000));
        }
    };
    let _total = run.flow().store.scan(5_000, take).await?;
    let apart = |values: &mut dyn Iterator<Item = i64>| {
        let all: Vec<i64> = values.collect();
        let (least, most) = (all.iter().min(), all.iter().max());
        least.zip(most).map_or(0, |(least, most)| most - least)
    };
    Ok((
        apart(&mut rows.iter().map(|row| row.0)),
        apart(&mut rows.iter().map(|row| row.1)),
    ))
}
