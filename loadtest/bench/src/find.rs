//! How long the sweep's own look takes.
//!
//! The look is `sweep::Looks`, with everything it does in a running sweep: the life of the server,
//! the span, the ledger, the notes of gaps, the rows, the mark. Two kinds are timed: the first one
//! of a process, which reads the whole ledger and every gap again, and a later one with the notes
//! due, which is what a sweep does all day. Time is the client's.

use std::time::{Duration, Instant};

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
pub(crate) const NOTES_ARE_OLD: Duration = Duration::from_millis(10_100);
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
pub(crate) async fn timed(looks: &mut Looks, expected: &[EventId]) -> anyhow::Result<f64> {
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

/// The looks of one stage, as a sweep takes them.
pub(crate) fn looks(pool: &Pool, stage: Stage) -> anyhow::Result<Looks> {
    let scope = Scope {
        within: None,
        made: None,
        limit: LOOK_IDS,
        dry: false,
    };
    let metrics = SweepMetrics::new(&Registry::new())?;
    Ok(Looks::new(stage, pool.clone(), Mode::Sweep, scope, metrics))
}
