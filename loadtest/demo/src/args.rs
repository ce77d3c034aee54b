//! The command line.

use std::path::PathBuf;

use clap::Parser;

/// Starts real servers and all services, lets posts travel, kills a relay and a fan-out worker in
/// the middle of their work, and compares every timeline with what was promised.
///
/// Exit codes: 0 the promise held and both kills hit work in flight, 1 it did not, 64 a file is
/// malformed (nothing was started), 130 interrupted.
#[derive(Clone, Debug, Parser)]
#[command(name = "demo", version)]
pub(crate) struct Args {
    /// A small run, for build servers.
    #[arg(long)]
    pub(crate) once: bool,
    /// Leave everything running at the end and print what to try.
    #[arg(long)]
    pub(crate) keep: bool,
    /// Seed of the follow graph and the traffic.
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub(crate) seed: u64,
    /// Your posts: one JSON object a line, {"author": "handle", "text": "…", "time": …}. The time
    /// is optional (RFC 3339 or Unix seconds) and only spaces the posts.
    #[arg(long, value_name = "FILE")]
    pub(crate) posts: Option<PathBuf>,
    /// Your follow graph: one line for each edge, "follower followee".
    #[arg(long, value_name = "FILE")]
    pub(crate) follows: Option<PathBuf>,
}
