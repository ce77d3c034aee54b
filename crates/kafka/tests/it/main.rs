//! Against a real broker.

mod broker;
mod lookup;
mod membership;
mod producing;
mod topics;
