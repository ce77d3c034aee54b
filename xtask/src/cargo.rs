//! Runs cargo, the way all tasks do: from the root, with its output shown.

use std::env;
use std::process::Command;

use crate::failure::Failure;
use crate::repository;
use crate::screen;

/// The packages that make the running system, in flow order.
pub(crate) const SERVICES: [&str; 5] = ["write-api", "relay", "sweep", "fanout", "read-api"];

/// Runs `cargo` with the given words.
pub(crate) fn run(arguments: &[&str], variables: &[(&str, &str)]) -> Result<(), Failure> {
    // Cargo names itself to what it runs, so a chosen toolchain is kept.
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args(arguments)
        .envs(variables.iter().copied())
        .current_dir(repository::root())
        .status()
        .map_err(|e| {
            Failure::new(format!(
                "cannot run cargo: {e}; is the Rust toolchain installed?"
            ))
        })?;
    if status.success() {
        return Ok(());
    }
    let shown = arguments
        .iter()
        .take(2)
        .copied()
        .collect::<Vec<_>>()
        .join(" ");
    Err(Failure::program(&format!("cargo {shown}"), status))
}

/// Programs beside the services that people start from here.
const TOOLS: [&str; 7] = ["cli", "demo", "load", "judge", "graph", "sim", "bench"];

/// Builds the release programs of the services and all tools. Always the same set: another one
/// would make cargo unify features anew and build half of it again.
pub(crate) fn build_release() -> Result<(), Failure> {
    screen::line(
        "building release programs (from nothing about 12 min on two cores, then seconds) …",
    );
    let mut arguments = vec!["build", "--release", "--bins"];
    for package in SERVICES.iter().chain(&TOOLS) {
        arguments.extend(["-p", package]);
    }
    // The simulator's deliberate bugs: nothing else has them.
    // Named without its package: that name would be taken for its dependency of tests on itself.
    arguments.extend(["--features", "bugs"]);
    run(&arguments, &[])
}
