//! `run`, and the outer half of what is supervised, which is what Ctrl-C meets.
//!
//! `std` cannot catch a signal, a shell can. So this process becomes a small
//! shell that starts the supervisor in the background (where POSIX has it
//! ignore SIGINT), turns SIGINT, SIGTERM and SIGHUP into a file that the
//! supervisor looks for, and ends with the supervisor's exit code. When the
//! shell itself is killed, the supervisor notices that its parent has changed.

use std::env;
use std::os::unix::process::CommandExt;
use std::process::Command;

use crate::cargo;
use crate::command;
use crate::failure::Failure;
use crate::repository;

/// Asks [`crate::supervise`] to leave the servers running.
pub(crate) const KEEP_SERVERS: &str = "--keep-servers";

/// `wait` returns early when a signal was trapped: it is called again until
/// the supervisor is gone, and the last call has its exit code.
const SHELL: &str = r#"
stop=$1; shift
trap ': > "$stop"' INT TERM HUP
(trap '' HUP; exec "$@") &
pid=$!
while :; do
  wait "$pid"; code=$?
  [ -d "/proc/$pid" ] || exit "$code"
done
"#;

pub(crate) fn run(rest: &[String]) -> Result<(), Failure> {
    if let Some(word) = rest.iter().find(|word| *word != KEEP_SERVERS) {
        return Err(Failure::usage(format!(
            "run takes only {KEEP_SERVERS}, got `{word}`"
        )));
    }
    // Built here, where Ctrl-C still simply ends cargo.
    cargo::build_release(None)?;
    supervised(rest)
}

/// Becomes the shell, with the supervisor behind it. `words` are the supervisor's.
pub(crate) fn supervised(words: &[String]) -> Result<(), Failure> {
    let own =
        env::current_exe().map_err(|e| Failure::new(format!("cannot find this program: {e}")))?;
    let stop = repository::sandbox().dir().join("run.stop");
    let error = Command::new("sh")
        .args(["-c", SHELL, "sh"])
        .arg(&stop)
        .arg(own)
        .arg(command::supervise_name())
        .arg(&stop)
        .args(words)
        .exec();
    Err(Failure::new(format!("cannot run sh: {error}")))
}
