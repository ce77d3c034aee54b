//! Servers move to other addresses behind their names.

use std::time::Duration;

use testkit::{Addresses, Service};

use super::{Cast, LIMIT, Proof, Scenario, Stands, Sweep};
use crate::Run;

const WITHIN: Duration = Duration::from_secs(30);

/// The faults of this family.
pub(super) const SCENARIOS: &[Scenario] = &[Scenario {
    name: "addresses-moved",
    about: "the names of Postgres and the broker get other addresses, and the old ones refuse",
    covers: &[38],
    cast: Cast::ONE_OF_EACH,
    fault: |run| Box::pin(moved(run)),
    sweep: Sweep::Counts,
    limit: LIMIT,
    quick: false,
    stands: Stands::Green,
}];

/// Everybody asks for the address again when connecting anew.
async fn moved(run: &mut Run) -> anyhow::Result<Proof> {
    const MOVES: usize = 2;
    let mut addresses = Addresses::of(run.flow().pipeline().deployment()).await;
    let env = addresses.env().to_vec();
    let env: Vec<(&str, &str)> = env
        .iter()
        .map(|(key, value)| (key.as_str(), value.as_str()))
        .collect();
    for service in [
        Service::WriteApi,
        Service::ReadApi,
        Service::Relay,
        Service::Fanout,
        Service::Sweep,
    ] {
        run.stop(service.name()).await?;
        run.start(service.name(), service, &env).await;
    }
    let mut met = Vec::new();
    for moves in 0..=MOVES {
        if moves > 0 {
            addresses.move_on().await;
        }
        run.more_posts(20).await?;
        let came = run.until(WITHIN, "everybody comes to the new address", async |_| {
            let came = addresses.accepted();
            Ok((came.iter().all(|&count| count > 0)).then_some(came))
        });
        met.push(came.await?);
    }
    run.fault_over().await?;
    // Until the end of the run it is where the services find their servers.
    run.keep(addresses);
    Ok(Some(format!(
        "connections to Postgres and the broker, address by address: {met:?}"
    )))
}
