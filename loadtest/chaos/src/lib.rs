//! Faults against the whole system, on real servers, with load going on.
//!
//! Owns: a deployment with all its services as processes and a small follow graph ([`Flow`]),
//! posts sent the way a client sends them ([`Client`]), load in the background ([`Load`]), and
//! the comparison of every timeline row with what was acknowledged ([`Verdict`]). The faults
//! themselves are in `tests/it`, one file each; each proves that it was hit.
//!
//! Does not own: servers and processes (`testkit`, `sandbox`).

mod client;
mod flow;
mod load;
mod verdict;

pub use client::{Client, Posted};
pub use flow::Flow;
pub use load::Load;
pub use verdict::Verdict;
