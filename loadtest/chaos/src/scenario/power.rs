//! Everything at once: all services, all servers, all sessions.

use std::time::{Duration, Instant};

use testkit::{Server, Servers, Service};

use super::{Cast, LIMIT, LONG, Proof, Scenario, Stands, Sweep};
use crate::Run;

/// How long sessions are ended again and again.
const CUTTING: Duration = Duration::from_secs(10);

/// The faults of this family.
pub(super) const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "all-services-killed",
        about: "all five services are killed at once, three times",
        covers: &[4, 22],
        cast: Cast::ONE_OF_EACH,
        fault: |run| Box::pin(services(run)),
        sweep: Sweep::Counts,
        limit: LIMIT,
        quick: false,
        stands: Stands::Green,
    },
    Scenario {
        name: "power-cut",
        about: "all services and all servers are killed at once",
        covers: &[8, 17, 28],
        cast: Cast::ONE_OF_EACH,
        fault: |run| Box::pin(power_cut(run)),
        sweep: Sweep::May,
        limit: LONG,
        quick: false,
        stands: Stands::Green,
    },
    Scenario {
        name: "sessions-cut",
        about: "every session of Postgres is ended, again and again",
        covers: &[8],
        cast: Cast::ONE_OF_EACH,
        fault: |run| Box::pin(sessions(run)),
        sweep: Sweep::May,
        limit: LIMIT,
        quick: false,
        stands: Stands::Green,
    },
];

const ALL: [Service; 5] = Service::ALL;

async fn services(run: &mut Run) -> anyhow::Result<Proof> {
    const ROUNDS: u32 = 3;
    let mut unfinished = Vec::new();
    for _ in 0..ROUNDS {
        let posts = run.rng().usize(10..50);
        run.more_posts(posts).await?;
        for service in ALL {
            run.kill(service.name())?;
        }
        unfinished.push(run.missing(events::Stage::Delivered).await?.count);
        for service in ALL {
            run.start(service.name(), service, &[]).await;
        }
    }
    run.fault_over().await?;
    let met = unfinished.iter().any(|&count| count > 0);
    Ok(met.then(|| format!("{unfinished:?} events were under way when everything was killed")))
}

async fn power_cut(run: &mut Run) -> anyhow::Result<Proof> {
    let unfinished = run.missing(events::Stage::Delivered).await?.count;
    for service in ALL {
        run.kill(service.name())?;
    }
    let servers = Servers::get().await;
    for server in Server::ALL {
        servers.instance().kill(server)?;
    }
    for server in Server::ALL {
        servers.start(server).await;
    }
    for service in ALL {
        run.start(service.name(), service, &[]).await;
    }
    run.fault_over().await?;
    let failed = run.sent()?.failures;
    Ok((failed > 0).then(|| {
        format!("{unfinished} events were not delivered before it, {failed} requests met it")
    }))
}

/// Reconnecting is all that is needed.
async fn sessions(run: &mut Run) -> anyhow::Result<Proof> {
    const END: &str = "select count(pg_terminate_backend(pid)) from pg_stat_activity
        where datname = $1 and pid <> pg_backend_pid()";
    let database = run.flow().pipeline().deployment().keyspace();
    let mut ended = 0;
    let begun = Instant::now();
    while begun.elapsed() < CUTTING {
        // From another database, or it would end itself with the next round.
        let url = Servers::get().await.postgres_url("postgres");
        let (client, connection) = tokio_postgres::connect(&url, tokio_postgres::NoTls).await?;
        let connection = tokio::spawn(connection);
        let count: i64 = client.query_one(END, &[&database]).await?.get(0);
        drop(client);
        connection.await??;
        ended += count;
        let pause = run.rng().u64(200..900);
        tokio::time::sleep(Duration::from_millis(pause)).await;
    }
    run.fault_over().await?;
    Ok((ended >= 20).then(|| format!("{ended} sessions were ended, replication among them")))
}
