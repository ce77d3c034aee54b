//! The generated graph against published figures, and edge lists into a real Postgres.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod figures;
mod loading;
mod program;
