//! Starts and stops real servers on one machine: Postgres, Kafka and a CQL
//! server, from nothing but a package mirror.
//!
//! One [`Instance`] is one set of servers with its own data, below
//! `target/<name>/` of a checkout. The task runner drives the instance
//! `sandbox`, the tests drive `sandbox-test`; both share downloaded jars.
//!
//! ```text
//! target/sandbox/ports      first port of the block this instance uses
//!               /env        TIDELINE_… for every address, sourceable
//!               /pid/       one file per process: pid and its start time
//!               /log/       one file per process, the run before as .old
//!               /postgres/ /kafka/ /cql/    data and settings
//!               /clusters/  Postgres servers of single tests
//!               /nodes/     the nodes of a cluster of several
//!               /jars/      shared by all instances of the checkout
//! ```
//!
//! Promises: servers outlive the process that started them; a process is only
//! ever signalled after its start time has been compared with the one noted
//! when it was started, so a reused pid is never hit (Postgres's children are
//! known by the data folder they work in); two callers of
//! [`Instance::up`] do not race; data survives `down` and a SIGKILL of anything.
//!
//! It does not know topics, tables or keyspaces, and it depends on `std` only,
//! so that the task runner builds in seconds.

mod clock;
mod disk;
mod environment;
mod error;
mod hosts;
mod instance;
mod jars;
mod java;
mod lock;
mod logs;
mod node;
mod ports;
mod postgres_tools;
mod preload;
mod probe;
mod process;
mod server;
mod service;

pub use clock::Clock;
pub use error::Error;
pub use hosts::Hosts;
pub use instance::{BehindName, BehindProxy, Instance, State, Status};
pub use jars::server_versions;
pub use logs::tail;
pub use node::Nodes;
pub use postgres_tools::PostgresTools;
pub use process::Signal;
pub use server::Server;
pub use server::kafka::BROKER_NAME;
pub use service::{Service, ServiceProcess};
