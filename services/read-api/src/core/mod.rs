//! How a timeline page is put together: pure, no IO, no clock.
//!
//! ```text
//!  loaded windows ─▶ merge ─▶ fill (visible? yes: page, no: on) ─▶ page + position ─▶ cursor
//!        ▲                      │ not full: load further
//!        └──────────────────────┘
//! ```

pub mod cursor;
pub mod fill;
pub mod merge;
pub mod retention;
#[cfg(test)]
mod walk_tests;
