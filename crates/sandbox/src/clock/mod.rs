//! A wall clock of a process's own, that jumps while the process runs.
//!
//! Owns: the file that says how far the clock is off, and the variables that make a program read
//! it (libfaketime, preloaded). Only the time of day is changed: the monotonic clock, by which
//! programs wait and measure, stays honest, as it does when somebody sets a machine's clock.
//!
//! Waits of C11 threads, which librdkafka has, are not known to libfaketime; a small library of our
//! own, compiled where it is needed, brings them in. A wait that is under way when the clock jumps
//! keeps its length.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::Error;
use crate::preload;

const LIBRARY: &str = "faketime/libfaketimeMT.so.1";
const CONDITION: &str = include_str!("condition.c");

/// A clock. Every process that was started with [`Clock::env`] goes by it.
#[derive(Debug)]
pub struct Clock {
    library: PathBuf,
    /// Our own addition to it.
    condition: PathBuf,
    /// Read anew for each look at the clock.
    file: PathBuf,
}

impl Clock {
    /// A clock that is right, and is kept in `file`.
    ///
    /// # Errors
    /// [`Error::NoFaketime`], when there is no C compiler, or when the file cannot be written.
    pub fn new(file: &Path) -> Result<Self, Error> {
        let library = preload::find(LIBRARY).ok_or(Error::NoFaketime)?;
        if let Some(folder) = file.parent() {
            fs::create_dir_all(folder).map_err(|e| Error::file("creating", folder, e))?;
        }
        let clock = Self {
            library,
            condition: compile(file)?,
            file: file.to_owned(),
        };
        clock.set(0)?;
        Ok(clock)
    }

    /// Sets the clock so many seconds ahead of the real time, or behind it when negative.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn set(&self, ahead: i64) -> Result<(), Error> {
        // In one step: it is being read all the time.
        let fresh = self.file.with_extension("new");
        fs::write(&fresh, format!("{ahead:+}\n")).map_err(|e| Error::file("writing", &fresh, e))?;
        fs::rename(&fresh, &self.file).map_err(|e| Error::file("renaming", &self.file, e))
    }

    /// The variables that make a program go by this clock.
    pub fn env(&self) -> Vec<(String, String)> {
        [
            (
                "LD_PRELOAD",
                format!("{}:{}", self.condition.display(), self.library.display()),
            ),
            ("FAKETIME_TIMESTAMP_FILE", self.file.display().to_string()),
            ("FAKETIME_NO_CACHE", "1".to_owned()),
            // Two names of one switch, by version of the library.
            ("FAKETIME_DONT_FAKE_MONOTONIC", "1".to_owned()),
            ("DONT_FAKE_MONOTONIC", "1".to_owned()),
        ]
        .map(|(key, value)| (key.to_owned(), value))
        .to_vec()
    }
}

impl Drop for Clock {
    fn drop(&mut self) {
        // Without the file the library falls back to the real time.
        for path in [&self.file, &self.condition] {
            let _outcome = fs::remove_file(path);
        }
    }
}

/// Makes the addition, next to the clock's file.
fn compile(file: &Path) -> Result<PathBuf, Error> {
    let (source, made) = (file.with_extension("c"), file.with_extension("so"));
    fs::write(&source, CONDITION).map_err(|e| Error::file("writing", &source, e))?;
    let output = Command::new("cc")
        .args(["-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o"])
        .args([&made, &source])
        .output()
        .map_err(|source| Error::Program {
            program: "cc".to_owned(),
            source,
        })?;
    let _outcome = fs::remove_file(&source);
    if output.status.success() {
        return Ok(made);
    }
    Err(Error::Failed {
        doing: "compiling what libfaketime lacks".to_owned(),
        output: String::from_utf8_lossy(&output.stderr).into_owned(),
    })
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};
    use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

    use super::*;

    /// What one process says the time is, minus the real time, in seconds.
    fn off(said: &str) -> i64 {
        let real = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .expect("past 1970");
        let said: i64 = said.trim().parse().expect("seconds");
        said - i64::try_from(real.as_secs()).expect("not so far off")
    }

    #[test]
    fn the_clock_of_a_process_jumps_while_it_runs() {
        let folder = std::env::temp_dir().join(format!("tideline-clock-{}", std::process::id()));
        let clock = Clock::new(&folder.join("clock")).expect("libfaketime is installed");
        let mut child = Command::new("perl")
            .args([
                "-e",
                "$| = 1; for (1..600) { print time, \"\\n\"; select undef, undef, undef, 0.05 }",
            ])
            .envs(clock.env())
            .stdout(Stdio::piped())
            .spawn()
            .expect("perl runs");
        let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        let mut awaited = |wanted: i64| {
            let begun = Instant::now();
            loop {
                let off = off(&lines.next().expect("it goes on").expect("readable"));
                if (off - wanted).abs() <= 5 {
                    return;
                }
                assert!(
                    begun.elapsed() < Duration::from_secs(20),
                    "{off} not {wanted}"
                );
            }
        };
        awaited(0);
        for ahead in [3_600, -3_600, 0] {
            clock.set(ahead).expect("written");
            awaited(ahead);
        }
        child.kill().expect("it runs");
        let _status = child.wait().expect("it ends");
        drop(clock);
        fs::remove_dir_all(folder).expect("removed");
    }
}
