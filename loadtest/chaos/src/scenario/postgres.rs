//! Postgres restarts under load.

use std::time::Duration;

use sandbox::State;
use testkit::{Server, Servers, Signal};

use super::{Cast, LIMIT, Proof, Scenario, Stands, Sweep};
use crate::Run;

const WITHIN: Duration = Duration::from_secs(60);

/// The faults of this family.
pub(super) const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "postgres-restarted",
        about: "Postgres is stopped in good order and started again",
        covers: &[8],
        cast: Cast::ONE_OF_EACH,
        fault: |run| Box::pin(restarted(run, Way::Fast)),
        sweep: Sweep::May,
        limit: LIMIT,
        quick: true,
        stands: Stands::Green,
    },
    Scenario {
        name: "postgres-cut",
        about: "Postgres is stopped at once and recovers from its log",
        covers: &[8],
        cast: Cast::ONE_OF_EACH,
        fault: |run| Box::pin(restarted(run, Way::Immediate)),
        sweep: Sweep::May,
        limit: LIMIT,
        quick: false,
        stands: Stands::Green,
    },
];

/// How it is stopped.
#[derive(Clone, Copy, Debug)]
enum Way {
    Fast,
    Immediate,
}

async fn restarted(run: &mut Run, way: Way) -> anyhow::Result<Proof> {
    const STARTED: &str = "select pg_postmaster_start_time()::text";
    let servers = Servers::get().await;
    let sql = run.flow().sql().get().await?;
    let before: String = sql.query_one(STARTED, &[]).await?.get(0);
    drop(sql);
    let failures = run.sent()?.failures;
    match way {
        Way::Fast => servers.stop(Server::Postgres).await,
        Way::Immediate => {
            servers.instance().signal(Server::Postgres, Signal::Quit)?;
            // Starting would find the old one as long as it is there.
            run.until(WITHIN, "Postgres ends", async |_| {
                let gone = servers.instance().status().into_iter().any(|status| {
                    status.name == Server::Postgres.name()
                        && matches!(status.state, State::Died { .. } | State::Stopped)
                });
                Ok(gone.then_some(()))
            })
            .await?;
        }
    }
    servers.start(Server::Postgres).await;
    run.fault_over().await?;
    let sql = run.flow().sql().get().await?;
    let after: String = sql.query_one(STARTED, &[]).await?.get(0);
    drop(sql);
    run.more_posts(20).await?;
    let failed = run.sent()?.failures - failures;
    Ok((before != after && failed > 0)
        .then(|| format!("another server process, and {failed} requests met its absence")))
}
