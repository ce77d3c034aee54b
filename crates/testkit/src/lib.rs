//! Real servers, unique names and service processes for tests.
//!
//! Owns: the test instance of the sandbox (its own data, apart from `./x up`), a fresh deployment
//! per test, service binaries built with crash points, what is done to connections ([`proxy`]), to
//! single nodes ([`ThreeNodes`]) and to clocks ([`clock()`]), waiting for a state with a deadline
//! ([`eventually`]) and for the outcome of a call on a server to be known ([`answered`]). Everything
//! here panics with a reason: a missing server is a failure, never a skip.
//!
//! Does not own: what a test asserts. `./x test` stops the servers afterwards.

mod addresses;
mod answered;
mod binaries;
mod clock;
mod cluster;
mod deployment;
mod http;
mod names;
mod nodes;
mod pipeline;
pub mod proxy;
mod servers;
mod wait;

pub use addresses::Addresses;
pub use answered::{Classified, answered};
pub use binaries::binary;
pub use clock::clock;
pub use cluster::{Backup, Cluster};
pub use deployment::Deployment;
pub use http::http_get;
pub use names::{free_address, unique};
pub use nodes::ThreeNodes;
pub use pipeline::{Pipeline, ready};
pub use proxy::{Direction, Fault, Proxy};
pub use sandbox::{Clock, Server, Service, ServiceProcess, Signal};
pub use servers::Servers;
pub use wait::{eventually, eventually_within};
