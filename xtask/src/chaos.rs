//! `chaos`: builds the services with crash points and the chaos program, and hands over to it.
//!
//! The servers are those of the tests. They are left as they were found: stopped afterwards,
//! unless they ran before.

use std::process::Command;

use sandbox::State;

use crate::cargo;
use crate::failure::Failure;
use crate::repository;
use crate::screen;
use crate::servers::say;
use crate::test;

pub(crate) fn chaos(rest: &[String]) -> Result<(), Failure> {
    cargo::run(&["build", "--quiet", "-p", "chaos", "--bins"], &[])?;
    if rest
        .iter()
        .any(|word| ["--list", "--summary", "--help", "-h"].contains(&word.as_str()))
    {
        return hand_over(rest);
    }
    test::build_services()?;
    let mut servers = repository::test_sandbox();
    let found_running = servers
        .status()
        .iter()
        .any(|status| matches!(status.state, State::Running { .. }));
    let outcome = servers
        .up(&mut say)
        .map_err(Failure::from)
        .and_then(|()| hand_over(rest));
    if found_running {
        return outcome;
    }
    screen::line("stopping the test servers …");
    let stopped = servers.down(&mut say).map_err(Failure::from);
    outcome.and(stopped)
}

fn hand_over(rest: &[String]) -> Result<(), Failure> {
    let program = repository::debug_binary("chaos");
    let mut command = Command::new(&program);
    // The services lie beside it and are fresh: an edit in the middle of a run changes nothing.
    if let Some(folder) = program.parent() {
        let _set = command.env("TESTKIT_BINARIES", folder);
    }
    let status = command
        .args(rest)
        .current_dir(repository::root())
        .status()
        .map_err(|error| Failure::new(format!("cannot run chaos: {error}")))?;
    if status.success() {
        return Ok(());
    }
    Err(Failure::program("chaos", status))
}
