//! Who follows whom: made to published figures, or loaded from a list.
//!
//! Owns the model of a follow graph (how many followers, drawn from whom), the figures it is held
//! against, and the way of an edge list into Postgres. Does not own posts, load, or what becomes of
//! a follow later.
//!
//! ```text
//! Shape ──▶ Graph ──▶ followers of any author ──▶ load generator, judge
//!                └──▶ edges ──▶ `follower followee` lines
//!                        └────┐
//! SNAP and other lists ───────┴──▶ loader ──▶ users, follows
//! ```
//!
//! Promise: the same shape is the same graph on every machine; an author with a million followers
//! costs a kilobyte. Everything but [`loader`] is pure. The model is told in `docs/specs/graph.md`.

mod activity;
mod audience;
pub mod figures;
pub mod loader;
mod model;
mod permutation;
mod shape;

pub use model::Graph;
pub use shape::{Shape, ShapeError};
