//! `demo`: builds the deployment in release and hands over to the demo program.

use std::os::unix::process::CommandExt;
use std::process::Command;

use crate::cargo;
use crate::failure::Failure;
use crate::repository;

pub(crate) fn demo(rest: &[String]) -> Result<(), Failure> {
    cargo::build_release(None)?;
    // Replaces this process, so Ctrl-C and the exit code are the demo's own.
    let error = Command::new(repository::release_binary("tideline-demo"))
        .args(rest)
        .envs(repository::sandbox().env())
        .current_dir(repository::root())
        .exec();
    Err(Failure::new(format!("cannot run tideline-demo: {error}")))
}
