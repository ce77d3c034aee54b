//! `test`: the whole workspace's tests against servers of their own.
//!
//! The test instance starts with fresh data and is stopped whatever happens.
//! Tests that start services use the debug programs built here, with their
//! crash points compiled in.

use crate::cargo::{self, SERVICES};
use crate::failure::Failure;
use crate::repository;
use crate::screen;
use crate::servers::say;

const CRASH_POINTS: &str =
    "write-api/crash-points,relay/crash-points,sweep/crash-points,fanout/crash-points";

/// Builds the debug programs of the services, with their crash points.
pub(crate) fn build_services() -> Result<(), Failure> {
    screen::line("building the services with crash points …");
    // The same words as in testkit, which then finds everything fresh.
    let mut build = vec!["build"];
    for package in SERVICES {
        build.extend(["-p", package]);
    }
    build.extend(["--features", CRASH_POINTS]);
    cargo::run(&build, &[])
}

pub(crate) fn test(rest: &[String]) -> Result<(), Failure> {
    build_services()?;
    cargo::run(&["build", "-p", "cli"], &[])?;

    screen::line("starting the test servers with fresh data …");
    let mut servers = repository::test_sandbox();
    servers.reset(&mut say)?;
    let outcome = servers.up(&mut say).map_err(Failure::from).and_then(|()| {
        // With the features, or cargo would replace the programs by plain ones.
        let mut words = vec![
            "test",
            "--workspace",
            "--no-fail-fast",
            "--features",
            CRASH_POINTS,
        ];
        words.extend(rest.iter().map(String::as_str));
        cargo::run(&words, &[])
    });
    screen::line("stopping the test servers …");
    let stopped = servers.down(&mut say).map_err(Failure::from);
    outcome.and(stopped)
}
