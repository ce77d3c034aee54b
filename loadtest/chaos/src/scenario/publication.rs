//! The publication is dropped while the relay streams from it.

use events::Stage;

use super::{Cast, LIMIT, Proof, Scenario, Stands, Sweep};
use crate::{Run, account};

/// The faults of this family.
pub(super) const SCENARIOS: &[Scenario] = &[Scenario {
    name: "publication-dropped",
    about: "the publication is dropped, rows are inserted, it is made again",
    covers: &[],
    cast: Cast::ONE_OF_EACH,
    fault: |run| Box::pin(dropped(run)),
    sweep: Sweep::May,
    limit: LIMIT,
    quick: false,
    stands: Stands::Green,
}];

const DROP: &str = "drop publication tideline_outbox";
/// As the migration makes it.
const CREATE: &str = "create publication tideline_outbox for table tideline.outbox
    with (publish = 'insert', publish_via_partition_root = true)";

/// Rows are inserted that belong to no publication; then it is made again.
async fn dropped(run: &mut Run) -> anyhow::Result<Proof> {
    execute(run, DROP).await?;
    let before = account::newest(run.flow()).await?;
    let posts = run.rng().usize(30..60);
    run.more_posts(posts).await?;
    let after = account::newest(run.flow()).await?;
    let unpublished = run.missing(Stage::Published).await?.count;
    execute(run, CREATE).await?;
    run.fault_over().await?;
    let inserted = after.0 - before.0;
    Ok((inserted > 0 && unpublished > 0).then(|| {
        format!("{inserted} ids drawn without a publication, {unpublished} events not published")
    }))
}

async fn execute(run: &Run, sql: &str) -> anyhow::Result<()> {
    Ok(run.flow().sql().get().await?.batch_execute(sql).await?)
}
