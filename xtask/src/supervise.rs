//! The inner half of `run` and `load`: starts everything and watches it.
//!
//! Order: servers, migrations, services in flow order, readiness. The run ends
//! when it is asked to (see [`crate::run`]), when a service dies, or when the
//! program ends that it was started for; the servers are stopped last, unless
//! they ran before a program came.

use std::fs;
use std::os::unix::process::parent_id;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use sandbox::{Instance, State};

use crate::failure::Failure;
use crate::repository;
use crate::run::KEEP_SERVERS;
use crate::screen;
use crate::servers::say;
use crate::services::{self, Services, tideline};

const STEP: Duration = Duration::from_millis(100);

/// A program that was asked to stop writes down what it has.
const PROGRAM_STOPS_WITHIN: Duration = Duration::from_secs(60);

/// What ends the run.
struct Stop<'a> {
    file: &'a Path,
    parent: u32,
}

impl Stop<'_> {
    fn asked(&self) -> bool {
        self.file.exists() || parent_id() != self.parent
    }
}

/// `rest`: the file that asks to stop, flags, then a program and its words, if any.
pub(crate) fn supervise(rest: &[String]) -> Result<(), Failure> {
    let Some((file, rest)) = rest.split_first() else {
        return Err(Failure::usage(
            "this command is the inner half of `run`; call ./x run",
        ));
    };
    let stop = Stop {
        file: Path::new(file),
        parent: parent_id(),
    };
    let (keep, program) = match rest.split_first() {
        Some((flag, program)) if flag == KEEP_SERVERS => (true, program),
        _ => (false, rest),
    };
    // A file left by a run that was killed must not end this one.
    let _ = fs::remove_file(stop.file);
    let mut sandbox = repository::sandbox();
    services::refuse_second(&sandbox)?;
    let found = found_running(&sandbox);
    say("starting the servers …");
    let outcome = sandbox
        .up(&mut say)
        .map_err(Failure::from)
        .and_then(|()| serve(&sandbox, &stop, program));
    let _ = fs::remove_file(stop.file);
    if keep || found && !program.is_empty() {
        say("servers stay up; ./x down stops them");
        return outcome;
    }
    say("stopping the servers …");
    outcome.and(sandbox.down(&mut say).map_err(Failure::from))
}

fn found_running(sandbox: &Instance) -> bool {
    let status = sandbox.status();
    status
        .iter()
        .any(|line| matches!(line.state, State::Running { .. }))
}

fn serve(sandbox: &Instance, stop: &Stop<'_>, program: &[String]) -> Result<(), Failure> {
    if stop.asked() {
        return Ok(());
    }
    say("migrating …");
    tideline(sandbox, &["migrate"])?;
    let mut services = Services::default();
    let outcome = services.start(sandbox, || stop.asked()).and_then(|()| {
        if stop.asked() {
            return Ok(());
        }
        let Some((name, words)) = program.split_first() else {
            announce(sandbox)?;
            return watch(stop, &mut services);
        };
        let child = ahead_of_the_services(&repository::release_binary(name))
            .args(words)
            .envs(sandbox.env())
            .current_dir(repository::root())
            .spawn()
            .map_err(|error| Failure::new(format!("cannot run {name}: {error}")))?;
        accompany(stop, &mut services, name, child)
    });
    let stopped = services.stop();
    outcome.and(stopped)
}

/// A generator that waits for a core behind the services it loads measures that wait. Where this
/// user may do so, it goes first; it takes a few percent of a core.
fn ahead_of_the_services(program: &Path) -> Command {
    const LEVEL: &str = "-10";
    // nice(1) prints the level when it is given no command.
    let allowed = Command::new("nice")
        .args(["-n", LEVEL, "nice"])
        .stderr(Stdio::null())
        .output();
    if !allowed.is_ok_and(|found| String::from_utf8_lossy(&found.stdout).trim() == LEVEL) {
        return Command::new(program);
    }
    let mut command = Command::new("nice");
    command.args(["-n", LEVEL]).arg(program);
    command
}

/// Returns when asked to stop, fails when a service ends by itself.
fn watch(stop: &Stop<'_>, services: &mut Services) -> Result<(), Failure> {
    while !stop.asked() {
        services.check()?;
        thread::sleep(STEP);
    }
    Ok(())
}

/// Returns when the program ends well. It is asked to stop when we are, and when a service ends by
/// itself.
fn accompany(
    stop: &Stop<'_>,
    services: &mut Services,
    name: &str,
    mut child: Child,
) -> Result<(), Failure> {
    let mut fault = None;
    let mut asked: Option<Instant> = None;
    loop {
        let status = child
            .try_wait()
            .map_err(|error| Failure::new(format!("cannot wait for {name}: {error}")))?;
        if let Some(status) = status {
            return match fault {
                Some(fault) => Err(fault),
                None if status.success() => Ok(()),
                None => Err(Failure::program(name, status)),
            };
        }
        if fault.is_none() {
            fault = services.check().err();
        }
        match asked {
            None if stop.asked() || fault.is_some() => {
                // `std` has no gentler signal than SIGKILL.
                let _ = Command::new("kill")
                    .args(["-TERM", &child.id().to_string()])
                    .status();
                asked = Some(Instant::now());
            }
            Some(since) if since.elapsed() > PROGRAM_STOPS_WITHIN => {
                let _ = child.kill();
            }
            _ => {}
        }
        thread::sleep(STEP);
    }
}

fn announce(sandbox: &Instance) -> Result<(), Failure> {
    let token = tideline(sandbox, &["token", "--user", "1", "--admin"])?;
    let env = sandbox.env();
    let get = |key: &str| {
        env.iter()
            .find(|(k, _)| k == key)
            .map_or("", |(_, value)| value.as_str())
    };
    let (write, read) = (
        get("TIDELINE_WRITE_API__LISTEN"),
        get("TIDELINE_READ_API__LISTEN"),
    );
    screen::line(format!(
        "\nwrite API  http://{write}\nread API   http://{read}\nlogs       {}",
        sandbox.dir().join("log").display()
    ));
    let post = |path: &str, body: &str| {
        screen::line(format!(
            "  curl -sS -H \"$AUTH\" -H 'content-type: application/json' http://{write}{path} -d '{body}'"
        ));
    };
    screen::line("\ntry, as user 1 and administrator (on fresh data the first account is user 1):");
    screen::line(format!("  AUTH='authorization: Bearer {}'", token.trim()));
    post("/v1/users", r#"{"handle":"ada"}"#);
    post("/v1/posts", r#"{"client_post_id":"first","body":"hello"}"#);
    screen::line(format!(
        "  curl -sS -H \"$AUTH\" http://{read}/v1/timelines/home\n\nCtrl-C stops.\n"
    ));
    Ok(())
}
