//! Faults against the whole system, on real servers, with load going on.
//!
//! Owns: a deployment with all its services as processes and a small follow graph ([`Flow`]),
//! operations sent the way a client sends them, with a journal ([`Client`]), load in the
//! background ([`Load`]), the faults as data ([`scenario`]), what each of them left behind
//! ([`report`]), which of them run with which seeds ([`campaign`]) and the file of all outcomes
//! ([`results`], [`summary`]). `./x chaos` runs them; tests of single steps are in `tests/it`, one
//! file each. A database that fails over or is restored has a view of its own ([`failover`]). Every fault
//! proves that it was hit.
//!
//! Does not own: servers and processes (`testkit`, `sandbox`), right and wrong (`judge`).

pub mod account;
mod bulk;
pub mod campaign;
pub mod census;
mod client;
pub mod failover;
mod flow;
mod load;
pub mod metrics;
pub mod report;
mod rest;
pub mod results;
mod run;
pub mod scenario;
pub mod server_settings;
pub mod summary;
mod verdict;

pub use client::{Client, Posted};
pub use flow::Flow;
pub use load::{Load, Sent};
pub use run::Run;
pub use scenario::Scenario;
pub use verdict::Verdict;
