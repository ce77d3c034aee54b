//! Open-loop load against any deployment, measured from the intended start.
//!
//! Owns scenarios, plans, arrival processes, the client of both APIs, the run, and what its numbers
//! mean (docs/specs/load.md). Does not own the graph's model (`graph`), the promise (`judge`) or the
//! pages (`report`).
//!
//! ```text
//! scenario ─┐
//! graph ────┴─▶ plan ─▶ run ─▶ write-api, read-api
//!                        │
//!                        ├─▶ journal ────────────▶ judge ─▶ report
//!                        └─▶ tally ◀─ deliveries ──────────────▲
//! ```
//!
//! Promise: how long an answer takes never moves an operation that is due, and a run whose own
//! generator was late says that it proves nothing.

pub mod accounts;
pub mod args;
pub mod arrival;
pub mod audience;
pub mod client;
pub mod clock;
pub mod deliveries;
pub mod judgement;
pub mod metrics;
pub mod partition;
pub mod plan;
pub mod play;
pub mod process;
pub mod progress;
pub mod run;
pub mod scenario;
pub mod screen;
pub mod settle;
pub mod stage;
pub mod summary;
pub mod tally;
pub mod target;

/// The journal's name in the folder of a run.
pub const JOURNAL: &str = "journal.jsonl";
