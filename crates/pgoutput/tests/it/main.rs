//! Tests of the decoder: streams captured from real servers, round trips and
//! input that is wrong on purpose.

#![allow(clippy::unwrap_used, reason = "what a test does not expect ends it")]

mod golden;
mod malformed;
mod properties;
mod render;
mod strategies;
