//! What the processes of an instance are doing, as far as their pid files and
//! their answers tell.

use crate::process::{Noted, PidFile};

/// What a process of the instance is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// It runs and answers.
    Running {
        /// Its process id.
        pid: u32,
        /// Its resident memory in MiB.
        mebibytes: u64,
    },
    /// It runs and does not answer (yet).
    Silent {
        /// Its process id.
        pid: u32,
    },
    /// It was stopped, or never started.
    Stopped,
    /// It ended without being stopped; its pid file is stale.
    Died {
        /// The pid it had.
        pid: u32,
    },
    /// It is gone and its pid belongs to another program now.
    PidReused {
        /// The pid that is no longer its own.
        pid: u32,
    },
}

/// One line of a status report.
#[derive(Debug, Clone)]
pub struct Status {
    /// Name of the server or service.
    pub name: &'static str,
    /// Where it listens, or would.
    pub address: String,
    /// What it is doing.
    pub state: State,
}

/// Compares a pid file with what runs, and asks what runs.
pub(super) fn state(file: &PidFile, answers: impl Fn() -> bool) -> State {
    match file.read() {
        Noted::None => State::Stopped,
        Noted::Gone(pid) => State::Died { pid },
        Noted::Reused(pid) => State::PidReused { pid },
        Noted::Running(process) if answers() => State::Running {
            pid: process.pid,
            mebibytes: process.resident().unwrap_or(0),
        },
        Noted::Running(process) => State::Silent { pid: process.pid },
    }
}
