//! The frame, the extractors and the server loop from outside, without any store.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod framing;
mod serving;
