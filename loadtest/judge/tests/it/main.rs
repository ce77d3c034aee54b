//! The judge against real servers and against a read API that is broken on purpose.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod planted;
mod program;
mod walk;
