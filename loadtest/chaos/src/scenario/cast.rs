//! Who is on stage when the load begins, and how it plays.

use std::time::Duration;

use testkit::Service;

use crate::load::PACE;

/// Who is on stage when the load begins, besides the two APIs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cast {
    /// Whether there is a relay.
    pub(crate) relay: bool,
    pub(crate) relay_env: Env,
    /// The fan-out workers.
    pub(crate) fanouts: &'static [&'static str],
    pub(crate) fanout_env: Env,
    pub(crate) sweeps: &'static [&'static str],
    pub(crate) sweep_env: Env,
    /// Between two posts of one client.
    pub(crate) pace: Duration,
    /// The servers that every service reaches through a proxy; nobody else does.
    pub(crate) through: &'static [Link],
    /// Whose nodes there are three of.
    pub(crate) nodes: Nodes,
}

/// A server as a service sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Link {
    Postgres,
    Kafka,
    Cql,
}

/// The servers of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Nodes {
    /// One of each, shared with every other run.
    Shared,
    /// Three brokers of its own.
    ThreeBrokers,
    /// Three CQL nodes of its own.
    ThreeStores,
}

/// Settings that differ from those of every run.
pub(crate) type Env = &'static [(&'static str, &'static str)];

impl Cast {
    /// One of each.
    pub(crate) const ONE_OF_EACH: Self = Self {
        relay: true,
        relay_env: &[],
        fanouts: &["fanout"],
        fanout_env: &[],
        sweeps: &["sweep"],
        sweep_env: &[],
        pace: PACE,
        through: &[],
        nodes: Nodes::Shared,
    };

    /// The settings of a service in this cast.
    pub(crate) const fn env(&self, service: Service) -> Env {
        match service {
            Service::Relay => self.relay_env,
            Service::Fanout => self.fanout_env,
            Service::Sweep => self.sweep_env,
            Service::WriteApi | Service::ReadApi => &[],
        }
    }
}
