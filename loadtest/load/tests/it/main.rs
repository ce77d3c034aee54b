//! The load program against servers that stand still, that are killed under it, and against the
//! real thing.
#![allow(clippy::unwrap_used)]

mod crash;
mod fake;
mod open_loop;
mod steady;
