//! Postgres: data folder, settings, and whom it runs as.
//!
//! It refuses to run as root, so root starts it as the user `postgres`. When
//! that user cannot reach the checkout (a home with mode 700), the data folder
//! goes to the temporary folder, under a name made from the checkout's path.

use std::env;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::error::Error;
use crate::instance::Home;
use crate::process::{self, Process};

const OLDEST: u32 = 15;

/// Whom the server and its tools run as; `None` is the caller itself.
#[derive(Debug, Clone, Copy)]
struct User {
    uid: u32,
    gid: u32,
}

pub(super) fn spawn(home: &Home, say: &mut dyn FnMut(&str)) -> Result<Child, Error> {
    let bin = find_bin()?;
    let user = unprivileged()?;
    let data = data(home)?;
    if !data.starts_with(&home.dir) {
        say(&format!(
            "postgres: its user cannot reach the checkout, data is in {}",
            data.display()
        ));
    }
    prepare(&data, user)?;
    if !data.join("global/pg_control").is_file() {
        initialise(&bin, &data, user)?;
    }
    for leftover in leftovers_in(&data) {
        // After a SIGKILL of the postmaster its children notice a moment later;
        // until then their shared memory keeps a new one from starting.
        leftover.signal(process::Signal::Kill)?;
        leftover.wait_gone(std::time::Duration::from_secs(5));
    }
    let settings = data.join("postgresql.conf");
    fs::write(&settings, conf(home.ports.postgres()))
        .map_err(|e| Error::file("writing", &settings, e))?;
    forget_dead_postmaster(&data)?;
    let mut command = as_user(&bin.join("postgres"), user);
    command.arg("-D").arg(&data);
    process::spawn(&mut command, &home.log_path("postgres"))
}

/// Makes the database `tideline` unless it is there.
pub(super) fn create_database(home: &Home) -> Result<(), Error> {
    let bin = find_bin()?;
    let port = home.ports.postgres().to_string();
    let psql = |database: &str, sql: &str| {
        Command::new(bin.join("psql"))
            .args([
                "-X",
                "-q",
                "-tA",
                "-h",
                "127.0.0.1",
                "-U",
                "postgres",
                "-p",
                &port,
                "-d",
                database,
                "-c",
                sql,
            ])
            .current_dir("/")
            .stdin(Stdio::null())
            .output()
            .map_err(|source| Error::Program {
                program: "psql".to_owned(),
                source,
            })
    };
    let there = psql(
        "postgres",
        "SELECT 1 FROM pg_database WHERE datname = 'tideline'",
    )?;
    if there.status.success() && there.stdout.starts_with(b"1") {
        return Ok(());
    }
    let made = psql("postgres", "CREATE DATABASE tideline")?;
    if made.status.success() {
        return Ok(());
    }
    let output = String::from_utf8_lossy(&made.stderr).into_owned();
    Err(Error::Failed {
        doing: "creating the database tideline".to_owned(),
        output,
    })
}

/// The data folder: in the instance's folder, or where its user can reach it.
pub(super) fn data(home: &Home) -> Result<PathBuf, Error> {
    match unprivileged()? {
        Some(user) if !reachable(&home.dir, user) => {
            Ok(env::temp_dir().join(away_name(&home.dir)).join("postgres"))
        }
        _ => Ok(home.folder("postgres")),
    }
}

/// All Postgres processes of this data folder.
pub(super) fn leftovers(home: &Home) -> Vec<Process> {
    data(home)
        .map(|data| leftovers_in(&data))
        .unwrap_or_default()
}

/// Postgres processes work in their data folder, which tells them apart.
fn leftovers_in(data: &Path) -> Vec<Process> {
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
    if !path.exists() || !leftovers_in(data).is_empty() {
        return Ok(());
    }
    fs::remove_file(&path).map_err(|e| Error::file("removing", path, e))
}

fn conf(port: u16) -> String {
    format!(
        "# Written by the sandbox before each start.
listen_addresses = '127.0.0.1'
port = {port}
unix_socket_directories = ''
max_connections = 300
shared_buffers = 64MB
wal_level = logical
# After a crash one call syncs the file system, instead of one for each file of every database.
recovery_init_sync_method = syncfs
max_wal_senders = 20
max_replication_slots = 20
max_slot_wal_keep_size = 2GB
max_wal_size = 512MB
timezone = 'UTC'
log_timezone = 'UTC'
log_line_prefix = '%m [%p] %a '
lc_messages = 'C'
"
    )
}

fn prepare(data: &Path, user: Option<User>) -> Result<(), Error> {
    if let Some(parent) = data.parent() {
        fs::create_dir_all(parent).map_err(|e| Error::file("creating", parent, e))?;
    }
    if let Ok(metadata) = fs::symlink_metadata(data) {
        let wanted = user.map(|user| user.uid);
        // A folder in the shared temporary folder could have been put there by anybody.
        if !metadata.is_dir() || wanted.is_some_and(|uid| uid != metadata.uid()) {
            return Err(Error::ForeignFolder {
                path: data.to_owned(),
            });
        }
        return Ok(());
    }
    fs::create_dir(data).map_err(|e| Error::file("creating", data, e))?;
    fs::set_permissions(data, fs::Permissions::from_mode(0o700))
        .map_err(|e| Error::file("closing", data, e))?;
    if let Some(user) = user {
        chown(data, Some(user.uid), Some(user.gid))
            .map_err(|e| Error::file("handing over", data, e))?;
    }
    Ok(())
}

fn initialise(bin: &Path, data: &Path, user: Option<User>) -> Result<(), Error> {
    // A first attempt that was interrupted leaves a folder initdb refuses.
    if let Ok(entries) = fs::read_dir(data) {
        for path in entries.flatten().map(|entry| entry.path()) {
            let removed = if path.is_dir() {
                fs::remove_dir_all(&path)
            } else {
                fs::remove_file(&path)
            };
            removed.map_err(|e| Error::file("removing", path, e))?;
        }
    }
    let output = as_user(&bin.join("initdb"), user)
        .arg("-D")
        .arg(data)
        .args([
            "-U",
            "postgres",
            "-A",
            "trust",
            "-E",
            "UTF8",
            "--no-locale",
            "-N",
        ])
        .stdin(Stdio::null())
        .output()
        .map_err(|source| Error::Program {
            program: "initdb".to_owned(),
            source,
        })?;
    if output.status.success() {
        return Ok(());
    }
    let output = String::from_utf8_lossy(&output.stderr).into_owned();
    Err(Error::Failed {
        doing: "initdb".to_owned(),
        output,
    })
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

fn reachable(path: &Path, user: User) -> bool {
    as_user(Path::new("/bin/sh"), Some(user))
        .args(["-c", "cd \"$1\"", "sh"])
        .arg(path)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

fn away_name(dir: &Path) -> String {
    let mut hasher = DefaultHasher::new();
    dir.hash(&mut hasher);
    let name = dir
        .file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default();
    format!("tideline-{name}-{:016x}", hasher.finish())
}

/// The newest installation that is new enough.
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
    fn settings_listen_on_loopback_only() {
        let text = conf(17400);
        assert!(
            text.contains("listen_addresses = '127.0.0.1'\nport = 17400\n"),
            "{text}"
        );
        assert!(text.contains("wal_level = logical"), "{text}");
    }

    #[test]
    fn the_folder_outside_is_named_after_the_checkout() {
        let one = away_name(Path::new("/srv/a/target/sandbox"));
        let other = away_name(Path::new("/srv/b/target/sandbox"));
        assert!(
            one.starts_with("tideline-sandbox-") && one != other,
            "{one} {other}"
        );
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
