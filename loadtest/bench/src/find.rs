//! How long the sweep's own look takes.
//!
//! The look is `sweep::Looks`, with everything it does in a running sweep: the life of the server,
//! the span, the ledger, the notes of gaps, the rows, the mark. Two kinds are timed: the first one
//! of a process, which reads the whole ledger and every gap again, and a later one with the notes
//! due, which is what a sweep does all day. Time is the client's, of rounds with nothing missing
//! the server's too.
//!
//! A round with nothing missing is one of a sweep that has run for a while: it reads what has
//! changed in the ledger and in the notes, and nothing has. Once an hour, and when somebody asks
//! for a look, a round is like the first one of a process; that price is told as the first look.

use std::{
    fs,
    time::{Duration, Instant},
};

use anyhow::{Context, ensure};
use database::Pool;
use events::{EventId, Stage};
use prometheus::Registry;
use serde::Serialize;
use sweep::{
    Asked, Looks, Scope,
    core::{Look, Mode},
    metrics::SweepMetrics,
};

use crate::{
    ledger,
    numbers::{Runs, millis},
    outbox::Outbox,
};

/// A sweep reads the notes of gaps again after 10 s.
const NOTES_ARE_OLD: Duration = Duration::from_millis(10_100);
/// Rounds before those that count: every connection of the pool has then met each statement often
/// enough to keep its plan, as in a sweep that has run for a minute.
const WARM: usize = 40;
/// As by default.
const LOOK_IDS: usize = 100_000;

/// Looks at `published` with so much missing.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Found {
    pub(crate) rows: i64,
    pub(crate) missing: usize,
    pub(crate) first_look_ms: Runs,
    pub(crate) look_ms: Runs,
}

/// Times looks while `missing` rows are in no stage, and enters them again.
pub(crate) async fn missing(
    pool: &Pool,
    outbox: &mut Outbox,
    missing: usize,
    runs: u32,
    epoch: i64,
) -> anyhow::Result<Found> {
    let ids = outbox.some(missing);
    let mut client = pool.get().await?;
    ledger::forget(&mut client, &ids).await?;
    let mut found = Found {
        rows: outbox.rows(),
        missing,
        first_look_ms: Runs::default(),
        look_ms: Runs::default(),
    };
    for _ in 0..runs {
        let mut looks = looks(pool, Stage::Published)?;
        found
            .first_look_ms
            .push(timed(&mut looks, &ids).await.context("a first look")?);
        tokio::time::sleep(NOTES_ARE_OLD).await;
        found
            .look_ms
            .push(timed(&mut looks, &ids).await.context("a later look")?);
    }
    ledger::enter(&mut client, &ids, epoch).await?;
    Ok(found)
}

/// Rounds of both stages with nothing missing.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Idle {
    /// By the client's clock.
    pub(crate) elapsed_ms: Runs,
    /// Processor time of the server's processes.
    pub(crate) database_ms: Runs,
}

/// Times rounds of both stages with nothing missing.
pub(crate) async fn idle(pool: &Pool, runs: u32) -> anyhow::Result<Idle> {
    let mut published = looks(pool, Stage::Published)?;
    let mut delivered = looks(pool, Stage::Delivered)?;
    for _ in 0..WARM {
        let _span = timed(&mut published, &[]).await? + timed(&mut delivered, &[]).await?;
    }
    let server = Server::behind(pool).await?;
    let mut idle = Idle::default();
    for _ in 0..runs {
        tokio::time::sleep(NOTES_ARE_OLD).await;
        let before = server.millis()?;
        let elapsed = timed(&mut published, &[]).await? + timed(&mut delivered, &[]).await?;
        idle.elapsed_ms.push(elapsed);
        idle.database_ms.push(server.millis()? - before);
    }
    Ok(idle)
}

/// The server's processes behind a pool, all of whose connections are open. The servers of the
/// sandbox run on this machine.
struct Server(Vec<i32>);

impl Server {
    async fn behind(pool: &Pool) -> anyhow::Result<Self> {
        const PIDS: &str = "select pid from pg_stat_activity
            where datname = current_database() and application_name = 'tideline-bench'";
        let rows = pool.get().await?.query(PIDS, &[]).await?;
        let pids: Result<_, _> = rows.iter().map(|row| row.try_get(0)).collect();
        Ok(Self(pids?))
    }

    /// Processor time they have had, from `/proc/<pid>/schedstat`: nanoseconds first.
    fn millis(&self) -> anyhow::Result<f64> {
        let mut nanos = 0;
        for pid in &self.0 {
            let path = format!("/proc/{pid}/schedstat");
            let text = fs::read_to_string(&path).with_context(|| format!("reading {path}"))?;
            let first = text.split_whitespace().next().context("it has a number")?;
            nanos += first.parse::<u64>()?;
        }
        Ok(millis(Duration::from_nanos(nanos)))
    }
}

/// Lets a look note the gaps, and makes the notes old enough to be settled.
pub(crate) async fn settle_gaps(pool: &Pool) -> anyhow::Result<()> {
    const AGE: &str = "update tideline.outbox_void set seen_at = seen_at - interval '2 hours'";
    let _look = take(&mut looks(pool, Stage::Published)?).await?;
    let client = pool.get().await?;
    client.execute(AGE, &[]).await?;
    // Beside the old version, which would only be in the way of the measurement.
    client
        .batch_execute("vacuum (analyze) tideline.outbox_void")
        .await?;
    Ok(())
}

/// Milliseconds of a look that has to find exactly these.
async fn timed(looks: &mut Looks, expected: &[EventId]) -> anyhow::Result<f64> {
    let began = Instant::now();
    let look = take(looks).await?;
    let span = millis(began.elapsed());
    ensure!(
        look.ids == expected,
        "{} ids were missing, and the look found {}",
        expected.len(),
        look.ids.len()
    );
    Ok(span)
}

async fn take(looks: &mut Looks) -> anyhow::Result<Look> {
    Ok(looks.take(Asked::default()).await?)
}

fn looks(pool: &Pool, stage: Stage) -> anyhow::Result<Looks> {
    let scope = Scope {
        within: None,
        made: None,
        limit: LOOK_IDS,
        dry: false,
    };
    let metrics = SweepMetrics::new(&Registry::new())?;
    Ok(Looks::new(stage, pool.clone(), Mode::Sweep, scope, metrics))
}
