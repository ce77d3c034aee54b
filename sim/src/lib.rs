//! The cores of relay, fan-out and sweep under a seeded scheduler.
//!
//! ```text
//!   seed ──▶ scheduler ──▶ actors: the real cores, and what their event loops do ──▶ world
//!               │              ▲                                                      │
//!               ├─▶ faults     └──────────── answers, late, lost or wrong ◀───────────┤
//!               └─▶ time                                                              ▼
//!                                            D-1 … D-13 after every step ◀──── truth, invariants
//! ```
//!
//! Owns the world (Postgres, the log, the store, time), the hands of the processes and the judging
//! of what happened. Does not own a decision of Tideline: those are `relay::core`, `fanout::core`,
//! `sweep::core` and `events`, as they are in the programs.
//!
//! Promise: one seed is one history, on every machine; a history that breaks an invariant is told
//! with its seed and its last steps. What is real, what is modelled and what is missing is in
//! `docs/specs/simulation.md`.

mod actors;
mod bugs;
mod fault;
mod history;
mod invariants;
mod profile;
mod run;
mod scheduler;
mod world;

pub use bugs::Bug;
pub use invariants::{Invariant, Violation};
pub use run::{Outcome, Seeds, Summary, many, one, tell};
