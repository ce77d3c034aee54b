//! Processes and their pid files: start, look, signal, wait.
//!
//! A pid alone is not an identity, the kernel hands it out again. A pid file
//! therefore holds the pid *and* the start time of the process (field 22 of
//! `/proc/<pid>/stat`, in clock ticks since boot), and nothing is signalled
//! unless both still agree.

use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::error::Error;
use crate::logs;

/// What can be sent to a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// SIGKILL: ends at once, without a chance to tidy up.
    Kill,
    /// SIGTERM: the request to stop.
    Term,
    /// SIGSTOP: freezes, as a long pause of the machine would.
    Stop,
    /// SIGCONT: goes on after [`Signal::Stop`].
    Cont,
    /// SIGINT: Postgres takes it as "fast shutdown".
    Int,
    /// SIGQUIT: Postgres takes it as "immediate shutdown".
    Quit,
}

impl Signal {
    fn name(self) -> &'static str {
        match self {
            Self::Kill => "KILL",
            Self::Term => "TERM",
            Self::Stop => "STOP",
            Self::Cont => "CONT",
            Self::Int => "INT",
            Self::Quit => "QUIT",
        }
    }
}

/// One particular process: its pid and when it was started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Process {
    pub(crate) pid: u32,
    started: u64,
}

/// What a pid file says about now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Noted {
    /// There is no pid file.
    None,
    /// The process that was noted runs.
    Running(Process),
    /// The process that was noted is gone without having been stopped.
    Gone(u32),
    /// The pid runs, but as another process: it must be left alone.
    Reused(u32),
}

impl Process {
    /// The process that has this pid now.
    pub(crate) fn of(pid: u32) -> Option<Self> {
        started(pid).map(|started| Self { pid, started })
    }

    /// Whether this very process still runs; a zombie does not.
    pub(crate) fn alive(self) -> bool {
        started(self.pid) == Some(self.started)
    }

    /// Sends a signal if this very process still runs.
    ///
    /// # Errors
    /// When there is no shell to send it with.
    pub(crate) fn signal(self, signal: Signal) -> Result<(), Error> {
        if self.alive() {
            send(signal, self.pid)
        } else {
            Ok(())
        }
    }

    /// Waits until the process has ended; says whether it has.
    pub(crate) fn wait_gone(self, limit: Duration) -> bool {
        let deadline = Instant::now() + limit;
        while self.alive() {
            if Instant::now() > deadline {
                return false;
            }
            thread::sleep(Duration::from_millis(20));
        }
        true
    }

    /// Resident memory in MiB, when the kernel tells.
    pub(crate) fn resident(self) -> Option<u64> {
        let text = fs::read_to_string(format!("/proc/{}/status", self.pid)).ok()?;
        let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
        let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
        Some(kib / 1024)
    }

    /// The text of its pid file.
    fn render(self) -> String {
        format!("{} {}\n", self.pid, self.started)
    }

    fn parse(text: &str) -> Option<Self> {
        let mut words = text.split_whitespace();
        let pid = words.next()?.parse().ok()?;
        let started = words.next()?.parse().ok()?;
        words.next().is_none().then_some(Self { pid, started })
    }
}

/// Sends a signal through the shell's own `kill`, which every machine has;
/// the standard library can only kill.
pub(crate) fn send(signal: Signal, pid: u32) -> Result<(), Error> {
    Command::new("sh")
        .args([
            "-c",
            "kill -s \"$1\" \"$2\"",
            "sh",
            signal.name(),
            &pid.to_string(),
        ])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .map_err(|source| Error::Program {
            program: "sh".to_owned(),
            source,
        })?;
    Ok(())
}

/// A file that holds one [`Process`].
#[derive(Debug, Clone)]
pub(crate) struct PidFile {
    path: PathBuf,
}

impl PidFile {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// Compares the file with what runs. A file that cannot be read as one
    /// counts as none: it names no process.
    pub(crate) fn read(&self) -> Noted {
        let noted = fs::read_to_string(&self.path)
            .ok()
            .and_then(|text| Process::parse(&text));
        match noted {
            None => Noted::None,
            Some(process) => match started(process.pid) {
                None => Noted::Gone(process.pid),
                Some(at) if at == process.started => Noted::Running(process),
                Some(_) => Noted::Reused(process.pid),
            },
        }
    }

    pub(crate) fn write(&self, process: Process) -> Result<(), Error> {
        if let Some(folder) = self.path.parent() {
            fs::create_dir_all(folder).map_err(|e| Error::file("creating", folder, e))?;
        }
        fs::write(&self.path, process.render()).map_err(|e| Error::file("writing", &self.path, e))
    }

    pub(crate) fn remove(&self) -> Result<(), Error> {
        match fs::remove_file(&self.path) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                Err(Error::file("removing", &self.path, e))
            }
            _ => Ok(()),
        }
    }
}

/// Starts a program that outlives its caller: own process group, no terminal,
/// output to a fresh log file.
pub(crate) fn spawn(command: &mut Command, log: &Path) -> Result<Child, Error> {
    let out = logs::fresh(log)?;
    let err = File::try_clone(&out).map_err(|e| Error::file("opening", log, e))?;
    let program = command.get_program().to_string_lossy().into_owned();
    command
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(out)
        .stderr(err)
        .spawn()
        .map_err(|source| Error::Program { program, source })
}

/// Start time of a living process: field 22 of `/proc/<pid>/stat` (proc(5)).
fn started(pid: u32) -> Option<u64> {
    parse_stat(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// The program's name may hold blanks and brackets, so fields are counted
/// from the last closing bracket on. A zombie counts as ended, unless other
/// threads of it still run: its sockets are open until the last one is gone.
fn parse_stat(text: &str) -> Option<u64> {
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    let threads: u64 = fields.get(17)?.parse().ok()?;
    if matches!(*fields.first()?, "Z" | "X") && threads <= 1 {
        return None;
    }
    fields.get(19)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(name: &str) -> PidFile {
        PidFile::new(
            std::env::temp_dir().join(format!("tideline-{name}-{}.pid", std::process::id())),
        )
    }

    #[test]
    fn stat_is_read_behind_a_strange_name() {
        let line = "42 (a ) b) S 1 42 42 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 987654 1000 10";
        assert_eq!(parse_stat(line), Some(987_654));
        assert_eq!(parse_stat(&line.replace(") S", ") Z")), None);
        let dying = line
            .replace(") S", ") Z")
            .replace(" 20 0 1 0 ", " 20 0 7 0 ");
        assert_eq!(parse_stat(&dying), Some(987_654), "its threads still run");
        assert_eq!(parse_stat("42"), None);
    }

    #[test]
    fn own_process_is_recognised() {
        let file = file("own");
        file.write(Process::of(std::process::id()).expect("it runs"))
            .expect("written");
        assert!(matches!(file.read(), Noted::Running(p) if p.pid == std::process::id()));
        file.remove().expect("removed");
        assert_eq!(file.read(), Noted::None);
        file.remove().expect("removing twice is fine");
    }

    #[test]
    fn a_reused_pid_is_told_apart_and_never_signalled() {
        let file = file("reused");
        let other = Process {
            pid: std::process::id(),
            started: 1,
        };
        file.write(other).expect("written");
        assert_eq!(file.read(), Noted::Reused(std::process::id()));
        other.signal(Signal::Kill).expect("nothing is sent");
        file.remove().expect("removed");
    }

    #[test]
    fn a_dead_process_is_gone() {
        let mut child = Command::new("true").spawn().expect("true runs");
        let process = Process {
            pid: child.id(),
            started: 1,
        };
        child.wait().expect("it ends");
        let file = file("gone");
        file.write(process).expect("written");
        assert_eq!(file.read(), Noted::Gone(process.pid));
        file.remove().expect("removed");
    }

    #[test]
    fn damaged_pid_files_name_nobody() {
        for text in ["", "12", "x y", "1 2 3", "-1 5"] {
            assert_eq!(Process::parse(text), None, "{text}");
        }
        let process = Process { pid: 7, started: 9 };
        assert_eq!(Process::parse(&process.render()), Some(process));
    }

    #[test]
    fn signals_reach_a_child() {
        let mut child = Command::new("sleep").arg("60").spawn().expect("sleep runs");
        let process = Process::of(child.id()).expect("it runs");
        process.signal(Signal::Term).expect("sent");
        child.wait().expect("it ends");
        assert!(process.wait_gone(Duration::from_secs(1)));
    }
}
