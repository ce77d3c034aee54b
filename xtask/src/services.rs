//! Tideline's services on the sandbox: started in flow order, watched, stopped.
//!
//! Services are asked to stop in flow order too, so that what was accepted still travels as far as
//! it can.

use std::process::Command;
use std::time::Duration;

use sandbox::{Instance, Service, ServiceProcess, State};

use crate::failure::Failure;
use crate::repository;
use crate::servers::say;

/// Services ride over servers that boot, so readiness may take a while.
const READY_WITHIN: Duration = Duration::from_secs(60);

/// Longer than a service's own deadline for draining.
const GRACE: Duration = Duration::from_secs(30);

/// The services that run.
#[derive(Debug, Default)]
pub(crate) struct Services {
    running: Vec<ServiceProcess>,
}

impl Services {
    /// Starts each of them and waits until all are ready, or until `asked` to stop.
    pub(crate) fn start(
        &mut self,
        sandbox: &Instance,
        asked: impl Fn() -> bool,
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
            self.running.push(process);
        }
        for process in &mut self.running {
            if asked() {
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

    /// Fails when one of them has ended by itself.
    pub(crate) fn check(&mut self) -> Result<(), Failure> {
        for process in &mut self.running {
            if let Some(status) = process.exit_status() {
                return Err(process.died(status).into());
            }
        }
        Ok(())
    }

    /// Stops them; fails when one did not end well.
    pub(crate) fn stop(self) -> Result<(), Failure> {
        let mut unclean = Vec::new();
        for mut process in self.running {
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
}

/// Two sets of services on the same ports would only confuse.
pub(crate) fn refuse_second(sandbox: &Instance) -> Result<(), Failure> {
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

/// Runs the operator's command line against the sandbox; its output.
pub(crate) fn tideline(sandbox: &Instance, arguments: &[&str]) -> Result<String, Failure> {
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
