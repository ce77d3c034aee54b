//! Hands over to a release program, with the sandbox's configuration around it.

use std::os::unix::process::CommandExt;
use std::process::Command;

use crate::cargo;
use crate::failure::Failure;
use crate::repository;

/// Builds the program of the package `name` in release and becomes it: Ctrl-C and the exit code are
/// its own. What the environment says already wins over the sandbox.
pub(crate) fn hand_over(name: &str, rest: &[String]) -> Result<(), Failure> {
    cargo::build_release(Some(name))?;
    let sandbox = repository::sandbox().env();
    let missing = sandbox
        .into_iter()
        .filter(|(key, _)| std::env::var_os(key).is_none());
    let error = Command::new(repository::release_binary(name))
        .args(rest)
        .envs(missing)
        .current_dir(repository::root())
        .exec();
    Err(Failure::new(format!("cannot run {name}: {error}")))
}
