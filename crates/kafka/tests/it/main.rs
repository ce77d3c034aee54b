//! Against a real broker.

mod broker;
mod membership;
mod producing;
mod topics;
