//! Every service is asked to stop under load, and leaves nothing to be done twice.

use std::time::Duration;

use anyhow::Context;
use events::{Stage, topic::TopicKind};
use kafka::Admin;
use testkit::Service;

use super::{Cast, LIMIT, Proof, Scenario, Stands, Sweep};
use crate::{Run, census};

/// Long enough for a request to meet the absence: the load asks several times a second.
const AWAY: Duration = Duration::from_secs(1);

/// The faults of this family.
pub(super) const SCENARIOS: &[Scenario] = &[Scenario {
    name: "graceful-stops",
    about: "each service is asked to stop under load and started again",
    covers: &[40],
    cast: Cast {
        sweep_env: &[("TIDELINE_SWEEP__RELAY_PATIENCE", "60s")],
        ..Cast::ONE_OF_EACH
    },
    fault: |run| Box::pin(graceful(run)),
    sweep: Sweep::Silent,
    limit: LIMIT,
    quick: true,
    stands: Stands::Green,
}];

/// Stopping is bounded and good ([`Run::stop`]), and then nothing is repeated: not a post, not a
/// record, not a row.
async fn graceful(run: &mut Run) -> anyhow::Result<Proof> {
    const ROUNDS: u32 = 2;
    let mut met = Vec::new();
    for _ in 0..ROUNDS {
        for service in [
            Service::WriteApi,
            Service::Relay,
            Service::Fanout,
            Service::Sweep,
            Service::ReadApi,
        ] {
            let name = service.name();
            let posts = run.rng().usize(10..30);
            run.more_posts(posts).await?;
            let load = run.sent()?;
            run.stop(name).await?;
            if service == Service::Fanout {
                uncommitted(run).await?;
            }
            if service == Service::WriteApi {
                tokio::time::sleep(AWAY).await;
            }
            run.start_again(service).await;
            if service == Service::WriteApi {
                run.more_posts(10).await?;
                let now = run.sent()?;
                met.push(now.failures - load.failures);
                let cut = now.replayed - load.replayed;
                if cut > 0 {
                    run.complain(format!("{cut} posts were committed and never answered"));
                }
            }
        }
    }
    run.fault_over().await?;
    run.more_posts(10).await?;
    let repeated = census::read(run.flow()).await?.repeated();
    if repeated > 0 {
        run.complain(format!("{repeated} records were sent again after a stop"));
    }
    Ok(met.iter().all(|&failed| failed > 0).then(|| {
        format!(
            "{} stops; {met:?} requests met the absence of write-api",
            ROUNDS * 5
        )
    }))
}

/// What fan-out has finished and not committed will be written again. Each record is an event, as
/// nothing has been sent twice.
async fn uncommitted(run: &mut Run) -> anyhow::Result<()> {
    const DELIVERED: &str = "select count(*) from tideline.outbox o
        where o.aggregatetype = 'post' and exists (select from tideline.delivery_ledger l
            where l.stage = $1 and l.ids @> o.id)";
    let config = run.flow().pipeline().deployment().kafka_config();
    let topic = config.namespace.topic(TopicKind::Posts);
    let group = config.namespace.fanout_posts_group();
    let committed = Admin::new(&config)?.committed(&group, &topic).await?;
    let committed: i64 = committed.values().flatten().sum();
    let sql = run.flow().sql().get().await?;
    let stage = Stage::Delivered.as_str();
    let row = sql.query_one(DELIVERED, &[&stage]).await;
    let finished: i64 = row.context("count what is delivered")?.get(0);
    drop(sql);
    if finished > committed {
        run.complain(format!(
            "fan-out had finished {finished} records when it stopped and committed {committed}"
        ));
    }
    Ok(())
}
