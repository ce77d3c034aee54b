//! `bench`: builds the bench program in release and hands over to it.
//!
//! The servers are those of the tests. They are left as they were found: stopped afterwards,
//! unless they ran before. Cassandra is stopped meanwhile unless it ran: nothing here is about it,
//! and it would take its share of the machine.

use std::process::Command;

use sandbox::{Server, State};

use crate::cargo;
use crate::failure::Failure;
use crate::repository;
use crate::screen;
use crate::servers::say;

pub(crate) fn bench(rest: &[String]) -> Result<(), Failure> {
    cargo::build_release(Some("bench"))?;
    let only_asks = rest.is_empty()
        || rest
            .iter()
            .any(|word| ["--help", "-h"].contains(&word.as_str()));
    let needs_servers = rest.first().is_some_and(|what| what == "sweep");
    if only_asks || !needs_servers {
        return hand_over(rest, Vec::new());
    }
    let mut servers = repository::test_sandbox();
    let found_running = servers
        .status()
        .iter()
        .any(|status| matches!(status.state, State::Running { .. }));
    let outcome = servers.up(&mut say).map_err(Failure::from).and_then(|()| {
        if !found_running {
            servers.stop(Server::Cql)?;
        }
        hand_over(rest, servers.env())
    });
    if found_running {
        return outcome;
    }
    screen::line("stopping the test servers …");
    let stopped = servers.down(&mut say).map_err(Failure::from);
    outcome.and(stopped)
}

fn hand_over(rest: &[String], env: Vec<(String, String)>) -> Result<(), Failure> {
    let status = Command::new(repository::release_binary("bench"))
        .args(rest)
        .envs(env)
        .current_dir(repository::root())
        .status()
        .map_err(|error| Failure::new(format!("cannot run bench: {error}")))?;
    if status.success() {
        return Ok(());
    }
    Err(Failure::program("bench", status))
}
