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

/// Programs beside the services that are always built: with them every set has the same features of
/// every dependency, so that another tool does not build half of the rest again. A test compares.
const ALWAYS: [&str; 2] = ["cli", "demo"];

/// The package with deliberate bugs.
const SIMULATOR: &str = "sim";

/// Builds the release programs of a deployment, and the package `tool` if one is named.
pub(crate) fn build_release(tool: Option<&str>) -> Result<(), Failure> {
    screen::line(
        "building release programs (from nothing some 9 min on two cores, then seconds) …",
    );
    let mut arguments = vec!["build", "--release", "--bins"];
    for package in SERVICES.iter().chain(&ALWAYS).copied().chain(tool) {
        arguments.extend(["-p", package]);
    }
    if tool == Some(SIMULATOR) {
        // Its deliberate bugs: nothing else has them. Named without its package: that name would
        // be taken for its dependency of tests on itself.
        arguments.extend(["--features", "bugs"]);
    }
    run(&arguments, &[])
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Every dependency that the programs of these packages are built with, and its features.
    fn built_with(packages: &[&str]) -> BTreeSet<String> {
        let words = ["tree", "--locked", "-e", "normal,build", "--prefix", "none"];
        let output = Command::new(env!("CARGO"))
            .args(words)
            .args(["--format", "{p} {f}"])
            .args(packages.iter().flat_map(|package| ["-p", package]))
            .current_dir(repository::root())
            .output()
            .expect("cargo runs");
        assert!(output.status.success(), "{output:?}");
        let text = String::from_utf8(output.stdout).expect("names are text");
        let lines = text.lines().map(|line| line.trim_end_matches(" (*)"));
        lines.map(|line| line.trim_end().to_owned()).collect()
    }

    #[test]
    fn another_tool_changes_no_feature_of_what_is_always_built() {
        const TOOLS: [&str; 5] = ["load", "judge", "graph", "sim", "bench"];
        let base = [&SERVICES[..], &ALWAYS].concat();
        let alone = built_with(&base);
        let with_all = built_with(&[&base[..], &TOOLS].concat());
        let changed: Vec<_> = alone.difference(&with_all).collect();
        assert!(changed.is_empty(), "{changed:?}");
    }
}
