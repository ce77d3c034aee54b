//! What is asked: which ids are missing, where the slot is, how far the groups are.
//!
//! Reads, and writes only what is harmless to repeat: the mark that makes a slot pass a look, ids
//! that a stage does not consume, and notes of gaps.

pub(crate) mod entries;
pub(crate) mod hops;
pub(crate) mod life;
pub(crate) mod missing;
pub(crate) mod notes;
