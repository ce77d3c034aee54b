//! The end of a run: waiting until everything is accounted for, and saying where one that failed
//! stands.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use events::Stage;

use crate::{Run, metrics};

/// The account and its gauge come to zero within so long after the load.
const REST: Duration = Duration::from_secs(60);

/// Waits until nothing is unaccounted for, by Postgres and by each sweep's own gauge, and until each
/// sweep has had its time to send something for nothing; answers what is left when the first does
/// not come about.
///
/// # Errors
/// When Postgres or a sweep does not answer.
pub(crate) async fn reached(run: &mut Run) -> anyhow::Result<i64> {
    let begun = Instant::now();
    loop {
        let left = unaccounted(run).await?;
        if left.values().all(|&count| count == 0) {
            two_rounds(run).await?;
            return Ok(0);
        }
        if begun.elapsed() > REST {
            return Ok(left.into_values().max().unwrap_or(0));
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// Waits until each sweep has come to the end of two rounds in each stage: of the one that it is
/// in, and of one whose look is of the rest. What it is about to send for nothing, it sends in them.
async fn two_rounds(run: &mut Run) -> anyhow::Result<()> {
    const ROUNDS: &str = "tideline_sweep_rounds_total";
    let before = of_sweeps(run, ROUNDS)?;
    run.until(REST, "each sweep ends two rounds", async |run| {
        let now = of_sweeps(run, ROUNDS)?;
        let ended =
            |(series, count): (&String, &i64)| now.get(series).is_some_and(|now| now - count >= 2);
        Ok(before.iter().all(ended).then_some(()))
    })
    .await
}

/// Says where a run that failed stands.
pub(crate) async fn tell(run: &mut Run) {
    match unaccounted(run).await {
        Ok(left) => eprintln!("unaccounted: {left:?}"),
        Err(error) => eprintln!("unaccounted: {error:#}"),
    }
    for (name, log) in run.logs() {
        eprintln!("── {name}, {}\n{}", log.display(), sandbox::tail(log, 8));
    }
}

/// What is unaccounted for, by who says so.
async fn unaccounted(run: &mut Run) -> anyhow::Result<BTreeMap<String, i64>> {
    let mut left = of_sweeps(run, "tideline_ledger_unaccounted")?;
    let sql = run.flow().sql().get().await?;
    for stage in Stage::ALL.into_iter().filter(|stage| stage.critical()) {
        let account = database::account::of_stage(&sql, stage).await?;
        let count = i64::try_from(account.unaccounted)?;
        let _none = left.insert(format!("postgres {}", stage.as_str()), count);
    }
    Ok(left)
}

/// A metric of each sweep in each stage.
fn of_sweeps(run: &mut Run, metric: &str) -> anyhow::Result<BTreeMap<String, i64>> {
    let mut found = BTreeMap::new();
    for name in run.sweeps() {
        let text = run.scrape(name)?;
        let before = found.len();
        for (labels, value) in metrics::series(&text, metric) {
            #[expect(
                clippy::cast_possible_truncation,
                reason = "a count of events of one run"
            )]
            let _none = found.insert(format!("{name} {labels}"), value.round() as i64);
        }
        anyhow::ensure!(
            found.len() - before == Stage::ALL.len(),
            "a sweep does not tell {metric} of every stage"
        );
    }
    Ok(found)
}
