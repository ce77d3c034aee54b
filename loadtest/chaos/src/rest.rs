//! The end of a run: waiting until everything is accounted for, and saying where one that failed
//! stands.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use events::Stage;

use crate::{Run, metrics, run::GRACE};

/// The account and its gauge come to zero within so long after the load.
const REST: Duration = Duration::from_secs(60);

/// Waits until nothing is unaccounted for, by Postgres and by each sweep's own gauge; answers what
/// is left when that does not come about.
///
/// # Errors
/// When Postgres or a sweep does not answer.
pub(crate) async fn reached(run: &mut Run) -> anyhow::Result<i64> {
    let begun = Instant::now();
    loop {
        let left = unaccounted(run).await?;
        if left.values().all(|&count| count == 0) || begun.elapsed() > REST {
            // A sweep that is about to send something for nothing gets the time to do so.
            tokio::time::sleep(GRACE * 2).await;
            return Ok(left.into_values().max().unwrap_or(0));
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// Says where a run that failed stands.
pub(crate) async fn tell(run: &Run) {
    match unaccounted(run).await {
        Ok(left) => eprintln!("unaccounted: {left:?}"),
        Err(error) => eprintln!("unaccounted: {error:#}"),
    }
    for (name, log) in run.logs() {
        eprintln!("── {name}, {}\n{}", log.display(), sandbox::tail(log, 8));
    }
}

/// What is unaccounted for, by who says so.
async fn unaccounted(run: &Run) -> anyhow::Result<BTreeMap<String, i64>> {
    const GAUGE: &str = "tideline_ledger_unaccounted";
    let mut left = BTreeMap::new();
    let sql = run.flow().sql().get().await?;
    for stage in Stage::ALL.into_iter().filter(|stage| stage.critical()) {
        let account = database::account::of_stage(&sql, stage).await?;
        let count = i64::try_from(account.unaccounted)?;
        let _none = left.insert(format!("postgres {}", stage.as_str()), count);
    }
    for (number, sweep) in run.sweeps().enumerate() {
        let text = sweep.scrape()?;
        let stages =
            metrics::series(&text, GAUGE).map(|(labels, value)| (labels.to_owned(), value));
        let stages: Vec<_> = stages.collect();
        anyhow::ensure!(
            stages.len() == Stage::ALL.len(),
            "a sweep does not tell {GAUGE} of every stage"
        );
        for (labels, value) in stages {
            #[expect(
                clippy::cast_possible_truncation,
                reason = "a count of events of one run"
            )]
            let _none = left.insert(format!("sweep {number} {labels}"), value.round() as i64);
        }
    }
    Ok(left)
}
