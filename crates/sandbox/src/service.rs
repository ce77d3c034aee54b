//! Tideline's own processes: start, look, signal, wait.
//!
//! The sandbox does not build them: it is given the path of a binary. What it
//! starts ends with the handle, unless somebody detaches it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

use crate::error::Error;
use crate::instance::Instance;
use crate::logs;
use crate::probe;
use crate::process::{self, Process, Signal};

const LINES: usize = 30;

/// A request to an admin port takes milliseconds; a frozen service never answers.
const ADMIN_LIMIT: Duration = Duration::from_secs(3);

/// One of Tideline's services.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Service {
    /// Accepts posts and follows.
    WriteApi,
    /// Streams the outbox into Kafka.
    Relay,
    /// Writes timeline rows.
    Fanout,
    /// Serves timelines.
    ReadApi,
    /// Delivers again what the account lacks.
    Sweep,
}

impl Service {
    /// All of them, in the order the data flows.
    pub const ALL: [Self; 5] = [
        Self::WriteApi,
        Self::Relay,
        Self::Sweep,
        Self::Fanout,
        Self::ReadApi,
    ];

    /// Name of its package and its files.
    pub fn name(self) -> &'static str {
        match self {
            Self::WriteApi => "write-api",
            Self::Relay => "relay",
            Self::Fanout => "fanout",
            Self::ReadApi => "read-api",
            Self::Sweep => "sweep",
        }
    }

    /// Name of its binary.
    pub fn binary(self) -> &'static str {
        match self {
            Self::WriteApi => "tideline-write-api",
            Self::Relay => "tideline-relay",
            Self::Fanout => "tideline-fanout",
            Self::ReadApi => "tideline-read-api",
            Self::Sweep => "tideline-sweep",
        }
    }

    /// Its admin address in a configuration.
    pub(crate) fn admin(self, env: &[(String, String)]) -> Option<String> {
        let key = format!(
            "TIDELINE_{}__ADMIN",
            self.name().to_uppercase().replace('-', "_")
        );
        env.iter()
            .rev()
            .find(|(k, _)| *k == key)
            .map(|(_, value)| value.clone())
    }

    pub(crate) fn answers(self, admin: &str) -> bool {
        probe::http_get(admin, "/livez", ADMIN_LIMIT).is_ok_and(|(status, _)| status == 200)
    }

    /// Starts `binary` with the instance's configuration, `extra` winning over
    /// it, and its output in `log` (the run before is kept as `.old`).
    ///
    /// # Errors
    /// When the binary cannot be started or the log not be written.
    pub fn spawn(
        self,
        instance: &Instance,
        binary: &Path,
        extra: &[(String, String)],
        log: &Path,
    ) -> Result<ServiceProcess, Error> {
        let mut env: BTreeMap<String, String> = instance.env().into_iter().collect();
        env.extend(extra.iter().cloned());
        let all: Vec<(String, String)> = env.iter().map(|(k, v)| (k.clone(), v.clone())).collect();
        let child = process::spawn(Command::new(binary).envs(&env), log)?;
        Ok(ServiceProcess {
            service: self,
            child: Some(child),
            admin: self.admin(&all).unwrap_or_default(),
            log: log.to_owned(),
        })
    }
}

/// A service that runs, or has ended and not been looked at yet.
///
/// Dropping it ends the process with SIGKILL; [`ServiceProcess::detach`] leaves it running.
#[derive(Debug)]
pub struct ServiceProcess {
    service: Service,
    /// Empty once detached.
    child: Option<Child>,
    admin: String,
    log: PathBuf,
}

impl ServiceProcess {
    /// Which service it is.
    pub fn service(&self) -> Service {
        self.service
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.as_ref().map_or(0, Child::id)
    }

    /// Its admin address, `host:port`.
    pub fn admin(&self) -> &str {
        &self.admin
    }

    /// Its log file.
    pub fn log(&self) -> &Path {
        &self.log
    }

    /// Sends a signal, unless the process has ended.
    ///
    /// # Errors
    /// When there is no shell to send it with.
    pub fn signal(&mut self, signal: Signal) -> Result<(), Error> {
        // Not yet waited for, so its pid cannot have been handed out again.
        match self.exit_status() {
            None => process::send(signal, self.pid()),
            Some(_) => Ok(()),
        }
    }

    /// How it ended; `None` while it runs.
    pub fn exit_status(&mut self) -> Option<ExitStatus> {
        self.child.as_mut()?.try_wait().ok().flatten()
    }

    /// Waits for its end, at most so long; `None` when it still runs then.
    pub fn wait_exit(&mut self, limit: Duration) -> Option<ExitStatus> {
        let deadline = Instant::now() + limit;
        loop {
            let status = self.exit_status();
            if status.is_some() || Instant::now() >= deadline {
                return status;
            }
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Asks it to stop and waits; after `grace` it is killed.
    ///
    /// # Errors
    /// [`Error::Unstoppable`] when not even SIGKILL ends it.
    pub fn stop(&mut self, grace: Duration) -> Result<ExitStatus, Error> {
        self.signal(Signal::Cont)?;
        self.signal(Signal::Term)?;
        if let Some(status) = self.wait_exit(grace) {
            return Ok(status);
        }
        self.signal(Signal::Kill)?;
        let name = self.service.name().to_owned();
        self.wait_exit(Duration::from_secs(5))
            .ok_or(Error::Unstoppable {
                name,
                pid: self.pid(),
            })
    }

    /// Waits until `/readyz` answers 200.
    ///
    /// # Errors
    /// [`Error::Died`] when it ends before, [`Error::NotReady`] after `limit`,
    /// both with what it said last.
    pub fn wait_ready(&mut self, limit: Duration) -> Result<(), Error> {
        let begun = Instant::now();
        loop {
            let answer = probe::http_get(&self.admin, "/readyz", ADMIN_LIMIT);
            // Somebody else may answer on that port: the process has to live too.
            if let Some(status) = self.exit_status() {
                return Err(self.died(status));
            }
            match answer {
                Ok((200, _)) => return Ok(()),
                other if begun.elapsed() > limit => {
                    return Err(self.not_ready(begun.elapsed(), other));
                }
                _ => thread::sleep(Duration::from_millis(50)),
            }
        }
    }

    /// The text of its `/metrics`.
    ///
    /// # Errors
    /// [`Error::Admin`] when there is no proper answer.
    pub fn scrape(&self) -> Result<String, Error> {
        let url = || format!("http://{}/metrics", self.admin);
        match probe::http_get(&self.admin, "/metrics", ADMIN_LIMIT) {
            Ok((200, body)) => Ok(body),
            Ok((status, body)) => Err(Error::Admin {
                url: url(),
                answer: format!("status {status} {body}"),
            }),
            Err(e) => Err(Error::Admin {
                url: url(),
                answer: e.to_string(),
            }),
        }
    }

    /// Leaves it running beyond the caller's end; [`Instance::down`] stops it.
    ///
    /// # Errors
    /// When its pid file cannot be written; it is ended then.
    pub fn detach(mut self, instance: &Instance) -> Result<(), Error> {
        if let Some(process) = Process::of(self.pid()) {
            instance.service_pid_file(self.service).write(process)?;
        }
        self.child = None;
        Ok(())
    }

    /// The fault of having ended.
    pub fn died(&self, status: ExitStatus) -> Error {
        Error::Died {
            name: self.service.name().to_owned(),
            status: Some(status),
            log: self.log.clone(),
            lines: logs::tail(&self.log, LINES),
        }
    }

    fn not_ready(&self, waited: Duration, answer: std::io::Result<(u16, String)>) -> Error {
        let last = match answer {
            Ok((status, body)) => format!("/readyz says {status}: {body}"),
            Err(e) => format!("/readyz: {e}"),
        };
        let lines = format!("{last}\n{}", logs::tail(&self.log, LINES));
        Error::NotReady {
            name: self.service.name().to_owned(),
            waited,
            log: self.log.clone(),
            lines,
        }
    }
}

impl Drop for ServiceProcess {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            // It may have ended already; there is nobody left to tell.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_admin_address_wins() {
        let pair = |value: &str| ("TIDELINE_WRITE_API__ADMIN".to_owned(), value.to_owned());
        assert_eq!(
            Service::WriteApi.admin(&[pair("a:1"), pair("b:2")]),
            Some("b:2".to_owned())
        );
        assert_eq!(Service::Relay.admin(&[pair("a:1")]), None);
    }

    /// Writes a program by another process: while this one had it open for
    /// writing, a thread that forks meanwhile would keep it "busy".
    fn program(root: &Path, lines: &str) -> PathBuf {
        std::fs::create_dir_all(root).expect("made");
        let path = root.join("program");
        let status = Command::new("sh")
            .args([
                "-c",
                "printf '#!/bin/sh\n%s\n' \"$1\" > \"$2\"; chmod 755 \"$2\"",
                "sh",
                lines,
            ])
            .arg(&path)
            .status()
            .expect("sh runs");
        assert!(status.success());
        path
    }

    #[test]
    fn a_service_that_dies_at_start_shows_its_last_words() {
        let root = std::env::temp_dir().join(format!("tideline-service-{}", std::process::id()));
        let instance = Instance::open(&root, "sandbox");
        let binary = program(&root, "echo no configuration >&2; exit 64");
        let extra = [("TIDELINE_RELAY__ADMIN".to_owned(), "127.0.0.1:9".to_owned())];
        let mut process = Service::Relay
            .spawn(&instance, &binary, &extra, &root.join("relay.log"))
            .expect("it starts");
        let error = process
            .wait_ready(Duration::from_secs(5))
            .expect_err("it dies")
            .to_string();
        assert!(
            error.contains("relay died") && error.contains("64"),
            "{error}"
        );
        assert!(error.contains("no configuration"), "{error}");
        std::fs::remove_dir_all(root).expect("removed");
    }

    #[test]
    fn a_detached_one_goes_on_until_the_instance_is_stopped() {
        let root = std::env::temp_dir().join(format!("tideline-detach-{}", std::process::id()));
        let instance = Instance::open(&root, "sandbox");
        let binary = program(&root, "exec sleep 60");
        let process = Service::Fanout
            .spawn(&instance, &binary, &[], &root.join("log"))
            .expect("it starts");
        let identity = Process::of(process.pid()).expect("it runs");
        process.detach(&instance).expect("noted");
        assert!(identity.alive());
        let mut said = Vec::new();
        instance
            .down(&mut |line| said.push(line.to_owned()))
            .expect("stopped");
        assert!(!identity.alive());
        assert_eq!(said, ["fanout: stopped"]);
        std::fs::remove_dir_all(root).expect("removed");
    }

    #[test]
    fn dropping_ends_it() {
        let root = std::env::temp_dir().join(format!("tideline-drop-{}", std::process::id()));
        let instance = Instance::open(&root, "sandbox");
        let binary = program(&root, "exec sleep 60");
        let process = Service::Fanout
            .spawn(&instance, &binary, &[], &root.join("log"))
            .expect("it starts");
        let identity = Process::of(process.pid()).expect("it runs");
        drop(process);
        assert!(!identity.alive());
        std::fs::remove_dir_all(root).expect("removed");
    }
}
