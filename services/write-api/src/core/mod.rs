//! What a request means: pure, no IO, no clock.

pub mod idempotency;
pub mod validate;
