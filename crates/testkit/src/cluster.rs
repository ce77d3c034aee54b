//! A Postgres server of one test's own: to fail over, and to put back to an earlier state.
//!
//! Owns: primary, streaming standby, base backup, and what an operator does with them: kill,
//! promote, restore. Each has a data folder of its own among the test instance's data and a port
//! that no other has. Dropping it ends the server and removes its data; `Instance::down` does it
//! for a test that was killed. The instance's own servers need not run for it.
//!
//! Durable against the death of processes only: nothing is synced to the disk.

use std::{
    fs,
    io::Write,
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Child, Stdio},
    sync::atomic::{AtomicU16, Ordering},
    time::Duration,
};

use sandbox::{PostgresTools, tail};
use tokio_postgres::NoTls;

use crate::{names::unique, servers::instance, wait::eventually_within};

/// Behind the sandbox's blocks and below the ports that the system hands out, so that no client's
/// own port is in the way of a server that comes back.
const PORTS: std::ops::Range<u16> = 17_800..18_400;
/// Longer than any start or promotion takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);
const LINES: usize = 30;

const SETTINGS: &str = "
listen_addresses = '127.0.0.1'
unix_socket_directories = ''
fsync = off
wal_level = logical
max_connections = 100
shared_buffers = 32MB
wal_retrieve_retry_interval = 200ms
timezone = 'UTC'
log_timezone = 'UTC'
log_line_prefix = '%m [%p] %a '
lc_messages = 'C'
";

/// A server. It runs from the call that makes it until it is killed or dropped.
#[derive(Debug)]
pub struct Cluster {
    folder: DataFolder,
    port: u16,
    log: PathBuf,
    server: Option<Child>,
}

/// A base backup: a data folder, and no server.
#[derive(Debug)]
pub struct Backup {
    folder: DataFolder,
}

impl Cluster {
    /// A primary with no databases but its own, ready for logical and physical replication.
    ///
    /// # Panics
    /// When Postgres is not installed or does not start.
    pub async fn primary() -> Self {
        let folder = DataFolder::new();
        let words = ["-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-locale"];
        let words = words.into_iter().chain(["--no-sync", "-D"]);
        run("initdb", words, &folder.0).await;
        let mut settings = fs::OpenOptions::new()
            .append(true)
            .open(folder.0.join("postgresql.conf"))
            .expect("initdb has written the settings");
        settings
            .write_all(SETTINGS.as_bytes())
            .expect("append to the settings");
        Self::started(folder).await
    }

    /// A streaming standby of this server, asynchronous. Readable, and up to date at its start.
    ///
    /// # Panics
    /// When the server does not answer.
    pub async fn standby(&self) -> Self {
        Self::started(self.copy(&["-R"]).await).await
    }

    /// A base backup of this server.
    ///
    /// # Panics
    /// When the server does not answer.
    pub async fn backup(&self) -> Backup {
        let folder = self.copy(&[]).await;
        Backup { folder }
    }

    /// URL of a database; it need not exist.
    pub fn url(&self, database: &str) -> String {
        format!("postgresql://postgres@127.0.0.1:{}/{database}", self.port)
    }

    /// A connection to a database.
    ///
    /// # Panics
    /// When the server does not answer.
    pub async fn sql(&self, database: &str) -> tokio_postgres::Client {
        let connected = tokio_postgres::connect(&self.url(database), NoTls).await;
        let (client, connection) = connected.expect("connect to the cluster");
        // Ends when the client is dropped.
        let _connection = tokio::spawn(connection);
        client
    }

    /// Ends the server as a crash of its machine would.
    ///
    /// # Panics
    /// When it does not end.
    pub async fn kill(&mut self) {
        let data = self.folder.0.clone();
        let killed = tokio::task::spawn_blocking(move || PostgresTools::kill(&data)).await;
        let outcome = killed.expect("the thread that kills a server does not panic");
        outcome.unwrap_or_else(|error| panic!("{error}"));
        self.reap();
    }

    /// Cuts a standby off: it keeps what it has, and gets no more.
    ///
    /// # Panics
    /// When it does not answer.
    pub async fn cut_off(&self) {
        let sql = self.sql("postgres").await;
        for statement in [
            "alter system set primary_conninfo = ''",
            "select pg_reload_conf()",
        ] {
            let _rows = sql
                .simple_query(statement)
                .await
                .expect("change the settings of the standby");
        }
        // It has replayed what it got when its startup process waits to ask for more.
        let query = "select from pg_stat_activity
            where backend_type = 'startup' and wait_event = 'RecoveryRetrieveRetryInterval'
                and not exists (select from pg_stat_wal_receiver)";
        eventually_within(PATIENCE, "the standby is cut off", async || {
            sql.query_opt(query, &[]).await.ok()?.map(drop)
        })
        .await;
    }

    /// Moves a standby to the address of a primary that is dead, as a floating address does. It
    /// stays a standby: clients of the old primary meet a server in recovery.
    ///
    /// # Panics
    /// When the primary still runs, or the standby does not come back.
    pub async fn take_address_of(&mut self, primary: &Self) {
        assert!(primary.server.is_none(), "the primary still runs");
        let words = ["stop", "-m", "fast", "-w", "-D"];
        run("pg_ctl", words, &self.folder.0).await;
        self.reap();
        self.port = primary.port;
        self.start().await;
    }

    /// Makes a primary of a standby, which begins a history of its own.
    ///
    /// # Panics
    /// When that is not done in 60 s.
    pub async fn promote(&self) {
        let sql = self.sql("postgres").await;
        let promoted = sql.query_one("select pg_promote(true, 60)", &[]).await;
        let done: bool = promoted.expect("ask for the promotion").get(0);
        assert!(done, "the standby was not promoted in 60 s");
    }

    /// Replaces this server and all its data by a backup, which begins a history of its own.
    ///
    /// # Panics
    /// When the restored server does not start.
    pub async fn restore(&mut self, backup: Backup) {
        self.kill().await;
        self.folder = backup.folder;
        // Recovery that ends by a promotion branches off; plain crash recovery would go on in the
        // history that the lost primary had.
        fs::write(self.folder.0.join("standby.signal"), "").expect("ask for recovery");
        self.start().await;
        self.promote().await;
    }

    async fn copy(&self, extra: &[&str]) -> DataFolder {
        let folder = DataFolder::new();
        let port = self.port.to_string();
        let words = ["-h", "127.0.0.1", "-U", "postgres", "-p", &port];
        let words = words.into_iter().chain(extra.iter().copied());
        let words = words.chain(["-X", "stream", "-c", "fast", "--no-sync", "-D"]);
        run("pg_basebackup", words, &folder.0).await;
        folder
    }

    async fn started(folder: DataFolder) -> Self {
        let name = folder.0.file_name().unwrap_or_default().to_string_lossy();
        let log = instance().log_path(&name);
        let mut cluster = Self {
            folder,
            port: free_port(),
            log,
            server: None,
        };
        cluster.start().await;
        cluster
    }

    /// Starts it and waits until it accepts clients; a standby does when it is consistent.
    async fn start(&mut self) {
        let settings = [format!("port={}", self.port)];
        let server = tools().spawn(&self.folder.0, &settings, &self.log);
        let mut server = server.unwrap_or_else(|error| panic!("start a cluster: {error}"));
        let url = self.url("postgres");
        eventually_within(PATIENCE, "the cluster accepts clients", || {
            if let Ok(Some(status)) = server.try_wait() {
                let lines = tail(&self.log, LINES);
                panic!("the cluster ended, {status}:\n{lines}");
            }
            let connect = tokio_postgres::connect(&url, NoTls);
            async move {
                let (client, connection) = connect.await.ok()?;
                drop(client);
                connection.await.ok()
            }
        })
        .await;
        self.server = Some(server);
    }

    /// Forgets a server that has ended.
    fn reap(&mut self) {
        if let Some(mut server) = self.server.take() {
            // It was the last to go, and there is nobody to tell how.
            let _status = server.wait();
        }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // Before its folder goes. What cannot be ended here is ended with the instance.
        if PostgresTools::kill(&self.folder.0).is_ok() {
            self.reap();
        }
    }
}

/// A data folder; removed when it is dropped.
#[derive(Debug)]
struct DataFolder(PathBuf);

impl DataFolder {
    fn new() -> Self {
        let clusters = instance()
            .clusters()
            .unwrap_or_else(|error| panic!("{error}"));
        let folder = clusters.join(unique("postgres"));
        tools()
            .make_folder(&folder)
            .unwrap_or_else(|error| panic!("{error}"));
        Self(folder)
    }
}

impl Drop for DataFolder {
    fn drop(&mut self) {
        // What stays goes with the instance's next stop.
        let _outcome = fs::remove_dir_all(&self.0);
    }
}

fn tools() -> PostgresTools {
    PostgresTools::find().unwrap_or_else(|error| panic!("{error}"))
}

async fn run<'a>(program: &str, words: impl IntoIterator<Item = &'a str>, folder: &Path) {
    let mut command = tools().command(program);
    command.args(words).arg(folder).stdin(Stdio::null());
    let output = tokio::process::Command::from(command).output().await;
    let output = output.unwrap_or_else(|error| panic!("run {program}: {error}"));
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program}: {text}");
}

/// A port that nobody listens on, different for every call of this process.
fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let count = PORTS.end - PORTS.start;
    // Test processes begin at different places.
    let own = u16::try_from(std::process::id() % u32::from(count)).unwrap_or(0);
    for _ in 0..count {
        let number = own.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed)) % count;
        let port = PORTS.start + number;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
    panic!("every port of {PORTS:?} is busy");
}
