//! The broker is away: nothing can be published, by nobody.

use std::time::{Duration, Instant};

use testkit::{Server, Servers};

use super::{Cast, Proof, relay::Backlog};
use crate::Run;

/// Longer than the relay's and the sweep's patience together.
const DOWN: Duration = Duration::from_secs(20);

/// The relay gives its connection up after 3 s, so the slot is inactive while the broker is away:
/// the sweep has to tell that from a relay that is gone, by its own probe.
pub(super) const CAST: Cast = Cast {
    relay_env: &[("TIDELINE_RELAY__SINK_PATIENCE", "3s")],
    sweep_env: &[("TIDELINE_SWEEP__RELAY_PATIENCE", "15s")],
    ..Cast::ONE_OF_EACH
};

/// Stops the broker and starts it again.
pub(super) async fn down(run: &mut Run) -> anyhow::Result<Proof> {
    let servers = Servers::get().await;
    let stopped = Stopped(servers);
    servers.stop(Server::Kafka).await;
    let mut backlog = Backlog::default();
    let begun = Instant::now();
    while begun.elapsed() < DOWN {
        backlog.see(run).await?;
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    let config = run.flow().pipeline().deployment().kafka_config();
    let silent = kafka::Admin::new(&config)?.ping().await.is_err();
    backlog.see(run).await?;
    drop(stopped);
    run.fault_over().await?;
    Ok(backlog
        .proof("the broker did not answer")
        .filter(|_| silent))
}

/// Starts the broker again, however the run ends.
struct Stopped(&'static Servers);

impl Drop for Stopped {
    fn drop(&mut self) {
        if let Err(error) = self.0.instance().start(Server::Kafka) {
            eprintln!("the broker is not back: {error}");
        }
    }
}
