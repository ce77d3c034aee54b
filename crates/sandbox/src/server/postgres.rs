//! Postgres: data folder, settings, and whom it runs as.
//!
//! It refuses to run as root, so root starts it as the user `postgres`. When
//! that user cannot reach the checkout (a home with mode 700), the data folder
//! goes to the temporary folder, under a name made from the checkout's path.

use std::env;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;

use crate::error::Error;
use crate::instance::Home;
use crate::postgres_tools::{self, PostgresTools, processes_in};
use crate::process::{self, Process};

pub(super) fn spawn(home: &Home, say: &mut dyn FnMut(&str)) -> Result<Child, Error> {
    let tools = PostgresTools::find()?;
    let data = data(home)?;
    if !data.starts_with(&home.dir) {
        say(&format!(
            "postgres: its user cannot reach the checkout, data is in {}",
            data.display()
        ));
    }
    tools.make_folder(&data)?;
    if !data.join("global/pg_control").is_file() {
        initialise(&tools, &data)?;
    }
    for leftover in processes_in(&data) {
        // After a SIGKILL of the postmaster its children notice a moment later;
        // until then their shared memory keeps a new one from starting.
        leftover.signal(process::Signal::Kill)?;
        leftover.wait_gone(Duration::from_secs(5));
    }
    let settings = data.join("postgresql.conf");
    fs::write(&settings, conf(home.ports.postgres()))
        .map_err(|e| Error::file("writing", &settings, e))?;
    tools.spawn(&data, &[], &home.log_path("postgres"))
}

/// Makes the database `tideline` unless it is there.
pub(super) fn create_database(home: &Home) -> Result<(), Error> {
    let tools = PostgresTools::find()?;
    let port = home.ports.postgres().to_string();
    let psql = |database: &str, sql: &str| {
        tools
            .command("psql")
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

/// The data folder.
pub(super) fn data(home: &Home) -> Result<PathBuf, Error> {
    Ok(room(home)?.join("postgres"))
}

/// Where data folders go: the instance's folder, or where Postgres's user can reach them.
pub(crate) fn room(home: &Home) -> Result<PathBuf, Error> {
    if postgres_tools::reaches(&home.dir)? {
        Ok(home.dir.clone())
    } else {
        Ok(env::temp_dir().join(away_name(&home.dir)))
    }
}

/// All Postgres processes of this data folder.
pub(super) fn leftovers(home: &Home) -> Vec<Process> {
    data(home)
        .map(|data| processes_in(&data))
        .unwrap_or_default()
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

fn initialise(tools: &PostgresTools, data: &Path) -> Result<(), Error> {
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
    let output = tools
        .command("initdb")
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

fn away_name(dir: &Path) -> String {
    let mut hasher = DefaultHasher::new();
    dir.hash(&mut hasher);
    let name = dir
        .file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default();
    format!("tideline-{name}-{:016x}", hasher.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
