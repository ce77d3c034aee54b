//! A release program of the product as a process, ended with its handle.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::{ExitStatus, Stdio},
};

use anyhow::{Context, bail};
use tokio::process::{Child, Command};

/// Where logs and results go, below the root of the checkout.
pub(crate) const FOLDER: &str = "target/bench";

/// A running program.
#[derive(Debug)]
pub(crate) struct Process {
    name: &'static str,
    log: PathBuf,
    child: Child,
}

impl Process {
    /// Starts a program that lies beside this one; what it logs goes to a file, what it prints
    /// to the pipe.
    pub(crate) fn start(
        name: &'static str,
        arguments: &[&str],
        env: &[(String, String)],
    ) -> anyhow::Result<Self> {
        let own = std::env::current_exe().context("finding this program's own folder")?;
        let folder = own.parent().context("a program lies in a folder")?;
        fs::create_dir_all(FOLDER).with_context(|| format!("making {FOLDER}"))?;
        let log = Path::new(FOLDER).join(format!("{name}.log"));
        let file = File::create(&log).with_context(|| format!("making {}", log.display()))?;
        let child = Command::new(folder.join(name))
            .args(arguments)
            .envs(env.iter().map(|(key, value)| (key, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(file)
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("starting {name}"))?;
        Ok(Self { name, log, child })
    }

    /// Fails when it has ended.
    pub(crate) fn check(&mut self) -> anyhow::Result<()> {
        match self.child.try_wait()? {
            None => Ok(()),
            Some(status) => bail!("{} ended ({status}), see {}", self.name, self.log.display()),
        }
    }

    /// Processor time so far, in milliseconds; 0 once it has ended.
    pub(crate) fn cpu_millis(&self) -> u64 {
        let stat = self
            .child
            .id()
            .and_then(|pid| fs::read_to_string(format!("/proc/{pid}/stat")).ok());
        stat.as_deref().and_then(cpu_millis).unwrap_or(0)
    }

    /// Waits for its end and answers what it printed.
    pub(crate) async fn output(self) -> anyhow::Result<String> {
        let output = self.child.wait_with_output().await?;
        succeeded(self.name, &self.log, output.status)?;
        Ok(String::from_utf8(output.stdout)?)
    }

    /// Ends it at once.
    pub(crate) async fn kill(mut self) -> anyhow::Result<()> {
        self.check()?;
        Ok(self.child.kill().await?)
    }
}

fn succeeded(name: &str, log: &Path, status: ExitStatus) -> anyhow::Result<()> {
    if status.success() {
        return Ok(());
    }
    bail!("{name} ended ({status}), see {}", log.display())
}

/// Own and system time of all threads, out of `/proc/<pid>/stat` (proc(5)): fields 14 and 15, in
/// hundredths of a second on Linux.
fn cpu_millis(stat: &str) -> Option<u64> {
    // The name in parentheses may hold blanks; what follows begins with field 3.
    let (_, rest) = stat.rsplit_once(") ")?;
    let mut fields = rest.split(' ').skip(11);
    let mut ticks = || fields.next()?.parse::<u64>().ok();
    Some((ticks()? + ticks()?) * 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processor_time_is_read_behind_the_name() {
        let stat = "42 (a) b) S 1 2 3 4 5 6 7 8 9 10 150 50 0 0 20";
        assert_eq!(cpu_millis(stat), Some(2_000));
        assert_eq!(cpu_millis("42 (a) S"), None);
    }
}
