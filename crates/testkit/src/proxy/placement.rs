//! Where a proxy is put so that a client goes through it, for each of the three servers.
//!
//! Each function answers the proxy and the settings that send a service through it. The deployment
//! keeps the direct addresses, so whoever looks at the outcome is not in the fault's way.

use super::Proxy;
use crate::Deployment;

/// The settings of a service that goes through a proxy.
type Env = Vec<(String, String)>;

/// A proxy for sessions and replication connections alike: both go by the same URL.
///
/// # Panics
/// When the system has no free port.
pub fn in_front_of_postgres(deployment: &Deployment) -> (Proxy, Env) {
    let url = deployment.database_url();
    let (before, rest) = url
        .split_once('@')
        .expect("the sandbox's URLs name the user");
    let (server, database) = rest
        .split_once('/')
        .expect("a Postgres URL ends in /database");
    let proxy = Proxy::start(server);
    let through = format!("{before}@{}/{database}", proxy.address());
    (proxy, env("TIDELINE_POSTGRES__URL", through))
}

/// A proxy for the shared broker. Clients go where the broker tells them, whatever address they
/// began with, so the broker has a second listener that sends them to one fixed address. There is
/// one such proxy at a time for each test instance; the next one waits.
///
/// # Panics
/// When the broker has no such listener, because it was started by an older version of this
/// sandbox, or the address is not free within 300 s.
pub async fn in_front_of_kafka(deployment: &Deployment) -> (Proxy, Env) {
    let door = deployment.servers().instance().broker_behind_proxy();
    let reached = tokio::net::TcpStream::connect(&door.broker).await;
    if let Err(error) = reached {
        panic!(
            "no listener of the broker at {}: {error}; stop this test instance, so that it starts \
             with one",
            door.broker
        );
    }
    let proxy = Proxy::at(&door.proxy, &door.broker).await;
    let through = proxy.address();
    (proxy, env("TIDELINE_KAFKA__BROKERS", through))
}

/// A proxy for the shared CQL node. The driver connects to the addresses that nodes tell, with the
/// port of its contact point (`system.local` and `system.peers` have no port): with one node, at
/// 127.0.0.1, everything goes through the proxy.
///
/// # Panics
/// When the system has no free port.
pub fn in_front_of_cql(deployment: &Deployment) -> (Proxy, Env) {
    let proxy = Proxy::start(&deployment.servers().cql_node());
    let through = proxy.address();
    (proxy, env("TIDELINE_CQL__NODES", through))
}

fn env(key: &str, value: String) -> Env {
    vec![(key.to_owned(), value)]
}
