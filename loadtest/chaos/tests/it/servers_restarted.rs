//! Each server is killed and started again while posts go on.

use chaos::Flow;
use testkit::{Server, Servers, Service};

const QUICK: [(&str, &str); 2] = [
    ("TIDELINE_SWEEP__INTERVAL", "1s"),
    ("TIDELINE_SWEEP__GRACE", "5s"),
];

async fn restart_under_load(server: Server) -> anyhow::Result<()> {
    let _turn = crate::ONE_AT_A_TIME.lock().await;
    let flow = Flow::new(4, 20).await?;
    let mut services = Vec::from(flow.start_all().await);
    if server == Server::Postgres {
        // A fan-out that cannot enter deliveries for some seconds leaves them to the sweep.
        services.push(flow.start(Service::Sweep, &QUICK).await);
    }
    let load = flow.load(1);
    load.wait_for_more(40).await;
    Servers::get().await.crash_and_restart(server).await;
    load.wait_for_more(40).await;
    let sent = load.stop().await?;
    if server == Server::Postgres {
        assert!(sent.failures > 0, "no request met the restart");
    }
    let verdict = flow.verdict().await?;
    assert!(
        verdict.is_clean(),
        "{verdict}after a restart of {}",
        server.name()
    );
    for service in &mut services {
        assert_eq!(
            service.exit_status(),
            None,
            "{} ended",
            service.service().name()
        );
    }
    Ok(())
}

/// D-12: an outage pauses the work and sends nothing to the dead letters.
#[tokio::test(flavor = "multi_thread")]
async fn postgres_is_killed_under_load() {
    restart_under_load(Server::Postgres).await.unwrap();
}

/// D-12: the relay confirms nothing meanwhile, fan-out keeps its work.
#[tokio::test(flavor = "multi_thread")]
async fn the_broker_is_killed_under_load() {
    restart_under_load(Server::Kafka).await.unwrap();
}

/// D-12: fan-out retries in place.
#[tokio::test(flavor = "multi_thread")]
async fn the_cql_node_is_killed_under_load() {
    restart_under_load(Server::Cql).await.unwrap();
}
