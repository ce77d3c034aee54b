//! Three brokers, or three CQL nodes, for tests that lose one of them.
//!
//! Owns: starting them on demand and the life of each node. They are heavy: one such cluster runs
//! at a time on a machine, whoever comes next waits, and dropping it ends it and removes its data.
//! A deployment on them has three copies of everything ([`Deployment::on_three_brokers`] and
//! [`Deployment::on_three_cql_nodes`]).
//!
//! [`Deployment::on_three_brokers`]: crate::Deployment::on_three_brokers
//! [`Deployment::on_three_cql_nodes`]: crate::Deployment::on_three_cql_nodes

use std::sync::Arc;

use sandbox::{Error, Instance, Nodes, Signal};

use crate::servers::instance;

/// Copies of every topic and of the keyspace.
pub(crate) const COPIES: u32 = 3;

/// Three servers of one kind, each with a copy of everything.
#[derive(Debug)]
pub struct ThreeNodes(Arc<Nodes>);

impl ThreeNodes {
    /// Starts three brokers and a controller, new and empty. A record is taken when two brokers
    /// have it.
    ///
    /// # Panics
    /// When they do not start, or another cluster has the machine for 20 min.
    pub async fn brokers() -> Self {
        Self(launch(Nodes::brokers).await)
    }

    /// Starts three CQL nodes, new and empty.
    ///
    /// # Panics
    /// As [`ThreeNodes::brokers`].
    pub async fn cql() -> Self {
        Self(launch(Nodes::cql).await)
    }

    /// `host:port` of each.
    pub fn addresses(&self) -> Vec<String> {
        self.0.addresses()
    }

    /// Ends a node, from 0, as a crash would.
    ///
    /// # Panics
    /// When it does not end.
    pub async fn kill(&self, number: usize) {
        on(&self.0, move |nodes| nodes.kill(number)).await;
    }

    /// Stops a node in order: a broker hands its partitions over first.
    ///
    /// # Panics
    /// When it does not end.
    pub async fn stop(&self, number: usize) {
        on(&self.0, move |nodes| nodes.stop(number)).await;
    }

    /// Starts a node again and waits until it answers.
    ///
    /// # Panics
    /// When it does not answer in time.
    pub async fn start(&self, number: usize) {
        on(&self.0, move |nodes| nodes.start(number)).await;
    }

    /// Sends a signal to a node, as for a pause.
    ///
    /// # Panics
    /// When it cannot be sent.
    pub async fn signal(&self, number: usize, signal: Signal) {
        on(&self.0, move |nodes| nodes.signal(number, signal)).await;
    }
}

type Start = fn(&Instance, &mut dyn FnMut(&str)) -> Result<Nodes, Error>;

async fn launch(start: Start) -> Arc<Nodes> {
    let started = tokio::task::spawn_blocking(move || {
        start(&instance(), &mut |line| eprintln!("{line}")).map(Arc::new)
    });
    let outcome = started
        .await
        .expect("the thread that starts nodes does not panic");
    outcome.unwrap_or_else(|error| panic!("a cluster of three: {error}"))
}

/// Does something to a node that may take its time.
async fn on(nodes: &Arc<Nodes>, act: impl FnOnce(&Nodes) -> Result<(), Error> + Send + 'static) {
    let nodes = nodes.clone();
    let done = tokio::task::spawn_blocking(move || act(&nodes));
    let outcome = done
        .await
        .expect("a node's number is 0, 1 or 2, and nothing else panics");
    outcome.unwrap_or_else(|error| panic!("{error}"));
}
