//! Two faults of `./x chaos` that are quick enough for every test run: what is lost is found in
//! the account and delivered again.

use anyhow::Context;
use chaos::Scenario;

async fn heals(name: &str) -> anyhow::Result<()> {
    let _turn = crate::ONE_AT_A_TIME.lock().await;
    let scenario = Scenario::find(name).context("it is in the list")?;
    let report = Box::pin(scenario.run(1)).await?;
    let faults = report.faults(scenario.sweep);
    assert!(faults.is_empty(), "{}", faults.join("; "));
    Ok(())
}

/// D-9: what no slot ever decoded reaches its audience.
#[tokio::test(flavor = "multi_thread")]
async fn a_dropped_slot_under_load() {
    heals("slot-dropped").await.unwrap();
}

/// D-9: what a group skipped reaches its audience.
#[tokio::test(flavor = "multi_thread")]
async fn offsets_set_to_the_end_under_load() {
    heals("offsets-reset").await.unwrap();
}
