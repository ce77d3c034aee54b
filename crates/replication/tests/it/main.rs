//! Tests of the connection against real servers of its own (`cluster`) and
//! against a server that misbehaves on demand (`fake`).

#![allow(clippy::unwrap_used, reason = "what a test does not expect ends it")]

mod cluster;
mod fake;
mod login;
mod loss;
mod misbehaviour;
mod queries;
mod stream;
