//! Temporary Postgres clusters, because these tests change what a shared server
//! must not: password methods, limits on kept log, and whether it runs.
//!
//! A cluster stops when the test process ends, however it ends: a shell waits
//! for the end of its standard input, which only this process holds open.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use replication::{Connection, ReplicationConfig};
use tokio_postgres::{Client, NoTls};

pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// A running server.
pub(crate) struct Cluster {
    port: u16,
    data: PathBuf,
    bin: PathBuf,
    /// Holds the cleaning shell's standard input.
    _guard: Child,
}

/// Who logs in how; the first line that fits counts.
const HBA: &str = "\
host all scram_user 127.0.0.1/32 scram-sha-256
host all md5_user 127.0.0.1/32 md5
host all clear_user 127.0.0.1/32 password
host all all 127.0.0.1/32 trust
";

const ROLES: &str = "\
CREATE ROLE scram_user LOGIN REPLICATION PASSWORD 'right: pass/word %';
CREATE ROLE clear_user LOGIN REPLICATION PASSWORD 'right';
SET password_encryption = md5;
CREATE ROLE md5_user LOGIN REPLICATION PASSWORD 'right';
";

/// The cluster for tests that leave it as it is, apart from their own tables,
/// slots and publications.
pub(crate) fn shared() -> &'static Cluster {
    static SHARED: OnceLock<Cluster> = OnceLock::new();
    SHARED.get_or_init(Cluster::start)
}

/// A name that no other test uses.
pub(crate) fn unique(name: &str) -> String {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    format!("{name}_{}", NEXT.fetch_add(1, Ordering::Relaxed))
}

impl Cluster {
    /// Creates and starts a cluster.
    pub(crate) fn start() -> Self {
        let bin = server_programs();
        let root =
            std::env::temp_dir().join(unique(&format!("tideline-pg-{}", std::process::id())));
        fs::create_dir(&root).unwrap();
        if is_root() {
            run(Command::new("chown").arg("postgres").arg(&root));
        }
        let guard = guard(&bin, &root);
        let data = root.join("data");
        let arguments = [
            "-N",
            "-A",
            "trust",
            "-U",
            "postgres",
            "-E",
            "UTF8",
            "--locale=C",
            "-D",
        ];
        run(as_postgres(&bin.join("initdb")).args(arguments).arg(&data));
        fs::write(data.join("pg_hba.conf"), HBA).unwrap();

        let port = TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        let options = format!(
            "-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c fsync=off \
             -c wal_level=logical -c max_replication_slots=50 -c max_wal_senders=50"
        );
        let start = ["-w", "-o", &options, "start", "-l"];
        run(as_postgres(&bin.join("pg_ctl"))
            .arg("-D")
            .arg(&data)
            .args(start)
            .arg(root.join("log")));
        let cluster = Self {
            port,
            data,
            bin,
            _guard: guard,
        };
        cluster.batch(ROLES);
        cluster
    }

    /// Asks the server to stop in good order, without waiting for it.
    pub(crate) fn stop_fast(&self) {
        let arguments = ["stop", "-W", "-m", "fast", "-D"];
        run(as_postgres(&self.bin.join("pg_ctl"))
            .args(arguments)
            .arg(&self.data));
    }

    /// Whether the server has ended.
    pub(crate) fn is_stopped(&self) -> bool {
        !self.data.join("postmaster.pid").exists()
    }

    /// A URL with this login (`user` or `user:password`).
    pub(crate) fn url(&self, login: &str) -> String {
        format!("postgresql://{login}@127.0.0.1:{}/postgres", self.port)
    }

    /// The configuration of a superuser.
    pub(crate) fn config(&self) -> ReplicationConfig {
        ReplicationConfig::from_url(&self.url("postgres")).unwrap()
    }

    /// A replication connection of a superuser.
    pub(crate) async fn connect(&self) -> Connection {
        Connection::connect(&self.config()).await.unwrap()
    }

    /// An ordinary connection.
    pub(crate) async fn client(&self) -> Client {
        let (client, connection) = tokio_postgres::connect(&self.url("postgres"), NoTls)
            .await
            .unwrap();
        // Ends with an error when a test stops the server.
        tokio::spawn(async move { drop(connection.await) });
        client
    }

    /// Runs SQL from outside of any runtime.
    fn batch(&self, sql: &str) {
        let work = async { self.client().await.batch_execute(sql).await.unwrap() };
        let run = || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build();
            runtime.unwrap().block_on(work);
        };
        // A runtime cannot start inside another one's thread.
        std::thread::scope(|scope| scope.spawn(run).join().unwrap());
    }
}

/// A table with a publication and a slot for it.
pub(crate) struct Feed {
    pub(crate) table: String,
    pub(crate) slot: String,
    pub(crate) publication: String,
}

impl Feed {
    pub(crate) async fn create(client: &Client) -> Self {
        let name = unique("feed");
        let feed = Self {
            table: name.clone(),
            slot: name.clone(),
            publication: name,
        };
        let Self {
            table,
            slot,
            publication,
        } = &feed;
        // One by one: a slot cannot be created where something was written.
        for sql in [
            format!("CREATE TABLE {table} (id bigint PRIMARY KEY, body text)"),
            format!("CREATE PUBLICATION {publication} FOR TABLE {table}"),
            format!("SELECT pg_create_logical_replication_slot('{slot}', 'pgoutput')"),
        ] {
            client.batch_execute(&sql).await.unwrap();
        }
        feed
    }

    pub(crate) async fn insert(&self, client: &Client, id: i64) {
        let sql = format!("INSERT INTO {} VALUES ({id}, 'body')", self.table);
        client.batch_execute(&sql).await.unwrap();
    }
}

/// Asks a yes-or-no question until the answer is yes.
pub(crate) async fn eventually(client: &Client, question: &str) {
    let deadline = Instant::now() + PATIENCE;
    while !client
        .query_one(question, &[])
        .await
        .unwrap()
        .get::<_, bool>(0)
    {
        assert!(Instant::now() < deadline, "still not true: {question}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

fn guard(bin: &Path, root: &Path) -> Child {
    let script = "cat; \"$1/pg_ctl\" stop -m immediate -D \"$2/data\"; rm -rf \"$2\"";
    let mut guard = as_postgres(Path::new("sh"));
    guard.args(["-c", script, "guard"]).arg(bin).arg(root);
    guard
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    guard.spawn().unwrap()
}

/// The server refuses to run as root.
fn as_postgres(program: &Path) -> Command {
    if !is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("runuser");
    command.args(["-u", "postgres", "--"]).arg(program);
    command
}

fn is_root() -> bool {
    Command::new("id").arg("-u").output().unwrap().stdout == b"0\n"
}

fn run(command: &mut Command) {
    // No pipes: a server would keep them open for ever.
    let output = command
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    let status = output.status().unwrap();
    assert!(status.success(), "{command:?}: {status}");
}

/// The folder of initdb: on the path, or where Debian keeps server programs.
fn server_programs() -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let on_path = std::env::split_paths(&path).collect::<Vec<_>>();
    let mut versions: Vec<_> = fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .map(|entry| entry.unwrap().path().join("bin"))
        .collect();
    versions.sort();
    let mut places = on_path.into_iter().chain(versions.into_iter().rev());
    places
        .find(|place| place.join("initdb").exists())
        .expect("no initdb on this machine")
}
