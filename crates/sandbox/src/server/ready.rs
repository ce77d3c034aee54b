//! Waiting for a server that has just been started: until it serves, ends, or takes too long.

use std::path::PathBuf;
use std::process::Child;
use std::thread;
use std::time::{Duration, Instant};

use super::LINES;
use crate::error::Error;
use crate::logs;
use crate::process::{PidFile, Process};

/// A server that is starting.
#[derive(Debug)]
pub(crate) struct Starting {
    /// How messages call it.
    pub(crate) name: String,
    pub(crate) log: PathBuf,
    pub(crate) pid_file: PidFile,
    pub(crate) process: Process,
    /// How long it may take.
    pub(crate) within: Duration,
}

impl Starting {
    /// Waits until it serves. `child` tells how it ended, where this is the process that started it.
    ///
    /// # Errors
    /// [`Error::Died`] and [`Error::NotReady`] with its last log lines.
    pub(crate) fn wait(
        &self,
        child: Option<&mut Child>,
        serves: &dyn Fn() -> bool,
        say: &mut dyn FnMut(&str),
    ) -> Result<(), Error> {
        let name = &self.name;
        let begun = Instant::now();
        let mut told = 0;
        while !serves() {
            if !self.process.alive() {
                let error = self.died(child);
                self.pid_file.remove()?;
                return Err(error);
            }
            let waited = begun.elapsed();
            if waited > self.within {
                return Err(Error::NotReady {
                    name: name.clone(),
                    waited,
                    lines: logs::tail(&self.log, LINES),
                    log: self.log.clone(),
                });
            }
            if waited.as_secs() / 5 > told {
                told = waited.as_secs() / 5;
                say(&format!(
                    "{name}: starting, {} s so far …",
                    waited.as_secs()
                ));
            }
            thread::sleep(Duration::from_millis(50));
        }
        Ok(())
    }

    fn died(&self, child: Option<&mut Child>) -> Error {
        Error::Died {
            name: self.name.clone(),
            status: child.and_then(|child| child.wait().ok()),
            lines: logs::tail(&self.log, LINES),
            log: self.log.clone(),
        }
    }
}
