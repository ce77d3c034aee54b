//! The installed Postgres programs, and whom they run as.
//!
//! Owns: finding the newest installation, the unprivileged user that root needs, folders that are
//! that user's, and the processes of a data folder, which are known by where they work. Does not
//! own any data folder: the instance's server and a test's own servers both start from here.

use std::env;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::error::Error;
use crate::process::{self, Process, Signal};

const OLDEST: u32 = 15;

/// How long killed processes may take to be gone.
const GONE_WITHIN: Duration = Duration::from_secs(10);

/// Whom the server and its tools run as.
#[derive(Debug, Clone, Copy)]
struct User {
    uid: u32,
    gid: u32,
}

/// Postgres's programs.
#[derive(Debug, Clone)]
pub struct PostgresTools {
    bin: PathBuf,
    /// `None` is the caller itself.
    user: Option<User>,
}

impl PostgresTools {
    /// The newest installation that is new enough.
    ///
    /// # Errors
    /// [`Error::NoPostgres`]; [`Error::NoUnprivilegedUser`] when the caller is root.
    pub fn find() -> Result<Self, Error> {
        Ok(Self {
            bin: find_bin()?,
            user: unprivileged()?,
        })
    }

    /// One of the programs, as Postgres's user.
    pub fn command(&self, program: &str) -> Command {
        as_user(&self.bin.join(program), self.user)
    }

    /// Makes a folder, and those above it, that only Postgres's user can open. One that is there
    /// is left as it is.
    ///
    /// # Errors
    /// [`Error::ForeignFolder`] when it is there and somebody else's.
    pub fn make_folder(&self, folder: &Path) -> Result<(), Error> {
        if let Some(parent) = folder.parent() {
            fs::create_dir_all(parent).map_err(|e| Error::file("creating", parent, e))?;
        }
        if let Ok(metadata) = fs::symlink_metadata(folder) {
            let wanted = self.user.map(|user| user.uid);
            // A folder in the shared temporary folder could have been put there by anybody.
            if !metadata.is_dir() || wanted.is_some_and(|uid| uid != metadata.uid()) {
                return Err(Error::ForeignFolder {
                    path: folder.to_owned(),
                });
            }
            return Ok(());
        }
        fs::create_dir(folder).map_err(|e| Error::file("creating", folder, e))?;
        fs::set_permissions(folder, fs::Permissions::from_mode(0o700))
            .map_err(|e| Error::file("closing", folder, e))?;
        if let Some(user) = self.user {
            chown(folder, Some(user.uid), Some(user.gid))
                .map_err(|e| Error::file("handing over", folder, e))?;
        }
        Ok(())
    }

    /// Starts a server on a data folder; its output goes to a fresh `log`. `settings` are
    /// `name=value` and win over the folder's own.
    ///
    /// # Errors
    /// When it cannot be started, or the log not be written.
    pub fn spawn(&self, data: &Path, settings: &[String], log: &Path) -> Result<Child, Error> {
        forget_dead_postmaster(data)?;
        let mut command = self.command("postgres");
        command.arg("-D").arg(data);
        for setting in settings {
            command.arg("-c").arg(setting);
        }
        process::spawn(&mut command, log)
    }

    /// Ends every process of a data folder's server with SIGKILL, as a crash of its machine would.
    ///
    /// # Errors
    /// [`Error::Unstoppable`].
    pub fn kill(data: &Path) -> Result<(), Error> {
        let all = processes_in(data);
        for process in &all {
            process.signal(Signal::Kill)?;
        }
        match all.iter().find(|process| !process.wait_gone(GONE_WITHIN)) {
            None => Ok(()),
            Some(process) => Err(Error::Unstoppable {
                name: format!("postgres in {}", data.display()),
                pid: process.pid,
            }),
        }
    }
}

/// Whether Postgres's user can open a folder.
pub(crate) fn reaches(folder: &Path) -> Result<bool, Error> {
    let Some(user) = unprivileged()? else {
        return Ok(true);
    };
    let status = as_user(Path::new("/bin/sh"), Some(user))
        .args(["-c", "cd \"$1\"", "sh"])
        .arg(folder)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .status();
    Ok(status.is_ok_and(|status| status.success()))
}

/// Postgres processes work in their data folder, which tells them apart.
pub(crate) fn processes_in(data: &Path) -> Vec<Process> {
    let (Ok(entries), Ok(data)) = (fs::read_dir("/proc"), fs::canonicalize(data)) else {
        return Vec::new();
    };
    let pids = entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|cwd| cwd == data))
        .filter(|pid| is_postgres(*pid))
        .filter_map(Process::of)
        .collect()
}

fn is_postgres(pid: u32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|comm| comm.trim_end() == "postgres")
}

/// Removes the `postmaster.pid` of a server that is gone: its pid may belong to
/// another program by now, or to a zombie, and a new server would refuse to start.
fn forget_dead_postmaster(data: &Path) -> Result<(), Error> {
    let path = data.join("postmaster.pid");
    if !path.exists() || !processes_in(data).is_empty() {
        return Ok(());
    }
    fs::remove_file(&path).map_err(|e| Error::file("removing", path, e))
}

fn as_user(program: &Path, user: Option<User>) -> Command {
    let mut command = Command::new(program);
    // The caller's folder may be closed to that user.
    command.current_dir("/");
    if let Some(user) = user {
        command.uid(user.uid).gid(user.gid);
    }
    command
}

/// The user to run as when the caller is root.
fn unprivileged() -> Result<Option<User>, Error> {
    let own = fs::metadata("/proc/self")
        .map_err(|e| Error::file("reading", "/proc/self", e))?
        .uid();
    if own != 0 {
        return Ok(None);
    }
    match (id("-u"), id("-g")) {
        (Some(uid), Some(gid)) => Ok(Some(User { uid, gid })),
        _ => Err(Error::NoUnprivilegedUser),
    }
}

fn id(flag: &str) -> Option<u32> {
    let output = Command::new("id").args([flag, "postgres"]).output().ok()?;
    String::from_utf8_lossy(&output.stdout).trim().parse().ok()
}

fn find_bin() -> Result<PathBuf, Error> {
    let mut folders: Vec<PathBuf> = fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path().join("bin"))
        .collect();
    let path = env::var_os("PATH").unwrap_or_default();
    // A link in PATH stands alone; the other programs are where it leads to.
    folders.extend(env::split_paths(&path).filter_map(|folder| {
        let program = fs::canonicalize(folder.join("postgres")).ok()?;
        Some(program.parent()?.to_owned())
    }));
    folders
        .into_iter()
        .filter(|bin| {
            ["postgres", "initdb", "psql"]
                .iter()
                .all(|program| bin.join(program).is_file())
        })
        .filter_map(|bin| Some((major_of(&bin)?, bin)))
        .filter(|(major, _)| *major >= OLDEST)
        .max()
        .map(|(_, bin)| bin)
        .ok_or(Error::NoPostgres)
}

fn major_of(bin: &Path) -> Option<u32> {
    let output = Command::new(bin.join("postgres"))
        .arg("--version")
        .output()
        .ok()?;
    parse_version(&String::from_utf8_lossy(&output.stdout))
}

/// Reads `postgres (PostgreSQL) 15.12 (Debian …)`.
fn parse_version(text: &str) -> Option<u32> {
    text.split_whitespace()
        .find_map(|word| word.split('.').next()?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_line() {
        assert_eq!(
            parse_version("postgres (PostgreSQL) 15.12 (Debian 15.12-0)"),
            Some(15)
        );
        assert_eq!(parse_version("postgres (PostgreSQL) 18beta1"), None);
        assert_eq!(parse_version(""), None);
    }

    #[test]
    fn a_postmaster_file_that_names_no_postgres_is_removed() {
        let data = env::temp_dir().join(format!("tideline-pm-{}", std::process::id()));
        fs::create_dir_all(&data).expect("made");
        let file = data.join("postmaster.pid");
        fs::write(&file, format!("{}\n/data\n", std::process::id())).expect("written");
        forget_dead_postmaster(&data).expect("no fault");
        assert!(!file.exists());
        fs::remove_dir_all(data).expect("removed");
    }
}
