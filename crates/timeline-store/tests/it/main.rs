//! The store and its twin against the same tests; the real one on a server of the test sandbox.

mod contract;
mod fault;
mod model;
mod real;
mod schema;
mod store;
