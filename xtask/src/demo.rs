//! `demo`: builds the deployment in release and hands over to the demo program.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use crate::cargo;
use crate::failure::Failure;
use crate::repository;
use crate::test;

pub(crate) fn demo(rest: &[String]) -> Result<(), Failure> {
    cargo::build_release(None)?;
    become_demo(&repository::release_binary(PROGRAM), rest)
}

/// The demo with the programs that the tests have built, for a run that comes after them: in
/// release everything would be compiled once more, which takes as long as the tests.
pub(crate) fn demo_after_tests(rest: &[String]) -> Result<(), Failure> {
    test::build_services()?;
    cargo::run(&["build", "-p", "cli", "-p", "demo", "--bins"], &[])?;
    become_demo(&repository::debug_binary(PROGRAM), rest)
}

const PROGRAM: &str = "tideline-demo";

/// Replaces this process, so Ctrl-C and the exit code are the demo's own.
fn become_demo(program: &Path, rest: &[String]) -> Result<(), Failure> {
    let error = Command::new(program)
        .args(rest)
        .envs(repository::sandbox().env())
        .current_dir(repository::root())
        .exec();
    Err(Failure::new(format!("cannot run tideline-demo: {error}")))
}
