//! `run`: the inner half, which starts everything and watches it.
//!
//! Order: servers, migrations, services in flow order, readiness. The run ends
//! when it is asked to (see [`crate::run`]) or when a service dies; services
//! are then asked to stop in flow order, so that what was accepted still
//! travels as far as it can, and the servers are stopped last.

use std::fs;
use std::os::unix::process::parent_id;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Duration;

use sandbox::{Instance, Service, ServiceProcess, State};

use crate::failure::Failure;
use crate::repository;
use crate::run::KEEP_SERVERS;
use crate::screen;
use crate::servers::say;

/// Services ride over servers that boot, so readiness may take a while.
const READY_WITHIN: Duration = Duration::from_secs(60);

/// Longer than a service's own deadline for draining.
const GRACE: Duration = Duration::from_secs(30);

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

pub(crate) fn supervise(rest: &[String]) -> Result<(), Failure> {
    let Some((file, flags)) = rest.split_first() else {
        return Err(Failure::usage(
            "this command is the inner half of `run`; call ./x run",
        ));
    };
    let stop = Stop {
        file: Path::new(file),
        parent: parent_id(),
    };
    // A file left by a run that was killed must not end this one.
    let _ = fs::remove_file(stop.file);
    let mut sandbox = repository::sandbox();
    refuse_second(&sandbox)?;
    say("starting the servers …");
    let outcome = sandbox
        .up(&mut say)
        .map_err(Failure::from)
        .and_then(|()| serve(&sandbox, &stop));
    let _ = fs::remove_file(stop.file);
    if flags.iter().any(|flag| flag == KEEP_SERVERS) {
        say("servers stay up; ./x down stops them");
        return outcome;
    }
    say("stopping the servers …");
    outcome.and(sandbox.down(&mut say).map_err(Failure::from))
}

/// Two sets of services on the same ports would only confuse.
fn refuse_second(sandbox: &Instance) -> Result<(), Failure> {
    let running = |state| matches!(state, State::Running { .. } | State::Silent { .. });
    let is_service = |name| Service::ALL.iter().any(|service| service.name() == name);
    match sandbox
        .status()
        .into_iter()
        .find(|line| is_service(line.name) && running(line.state))
    {
        None => Ok(()),
        Some(line) => Err(Failure::new(format!(
            "{} runs already from an earlier `--keep`; ./x down stops it",
            line.name
        ))),
    }
}

fn serve(sandbox: &Instance, stop: &Stop<'_>) -> Result<(), Failure> {
    if stop.asked() {
        return Ok(());
    }
    say("migrating …");
    tideline(sandbox, &["migrate"])?;
    let mut services = Vec::new();
    let outcome = start_services(sandbox, stop, &mut services).and_then(|()| {
        if !stop.asked() {
            announce(sandbox)?;
        }
        watch(stop, &mut services)
    });
    let stopped = stop_services(&mut services);
    outcome.and(stopped)
}

fn start_services(
    sandbox: &Instance,
    stop: &Stop<'_>,
    services: &mut Vec<ServiceProcess>,
) -> Result<(), Failure> {
    for service in Service::ALL {
        let log = sandbox.log_path(service.name());
        let binary = repository::release_binary(service.binary());
        let process = service.spawn(sandbox, &binary, &[], &log)?;
        say(&format!(
            "{}: started, pid {}, log {}",
            service.name(),
            process.pid(),
            log.display()
        ));
        services.push(process);
    }
    for process in services {
        if stop.asked() {
            return Ok(());
        }
        process.wait_ready(READY_WITHIN)?;
        say(&format!(
            "{}: ready, admin http://{}",
            process.service().name(),
            process.admin()
        ));
    }
    Ok(())
}

/// Returns when asked to stop, fails when a service ends by itself.
fn watch(stop: &Stop<'_>, services: &mut [ServiceProcess]) -> Result<(), Failure> {
    while !stop.asked() {
        for process in services.iter_mut() {
            if let Some(status) = process.exit_status() {
                return Err(process.died(status).into());
            }
        }
        thread::sleep(Duration::from_millis(100));
    }
    Ok(())
}

fn stop_services(services: &mut [ServiceProcess]) -> Result<(), Failure> {
    let mut unclean = Vec::new();
    for process in services {
        let name = process.service().name();
        let ended_before = process.exit_status().is_some();
        let status = process.stop(GRACE)?;
        say(&format!("{name}: ended ({status})"));
        if !ended_before && !status.success() {
            unclean.push(name);
        }
    }
    if unclean.is_empty() {
        return Ok(());
    }
    Err(Failure::new(format!(
        "not stopped cleanly: {}",
        unclean.join(", ")
    )))
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

/// Runs the operator's command line against the sandbox; its output.
fn tideline(sandbox: &Instance, arguments: &[&str]) -> Result<String, Failure> {
    let output = Command::new(repository::release_binary("tideline"))
        .args(arguments)
        .envs(sandbox.env())
        .current_dir(repository::root())
        .output()
        .map_err(|e| Failure::new(format!("cannot run tideline: {e}")))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    Err(Failure::new(format!(
        "tideline {} failed ({}):\n{said}",
        arguments.join(" "),
        output.status
    )))
}
