//! The one set of servers that all tests share.

use std::path::{Path, PathBuf};

use sandbox::{Instance, Server};
use tokio::sync::OnceCell;

/// Name of the instance, unless [`INSTANCE_VARIABLE`] says another; `./x test` knows it too.
const INSTANCE: &str = "sandbox-test";
/// For a second run beside the first: fault runs stop servers that all tests of an instance share.
/// No `TIDELINE_` in front, which the services would take for a section they do not know.
const INSTANCE_VARIABLE: &str = "TESTKIT_INSTANCE";

/// The test instance, up.
#[derive(Debug)]
pub struct Servers {
    instance: Instance,
}

static SERVERS: OnceCell<Servers> = OnceCell::const_new();

impl Servers {
    /// The servers; started by the first caller of the process when they are not up.
    ///
    /// # Panics
    /// When they cannot be started.
    pub async fn get() -> &'static Self {
        SERVERS
            .get_or_init(|| async {
                let up = tokio::task::spawn_blocking(|| {
                    let mut instance = instance();
                    instance
                        .up(&mut |line| eprintln!("{line}"))
                        .map(|()| instance)
                });
                let outcome = up
                    .await
                    .expect("the thread that starts the servers does not panic");
                let instance = outcome.unwrap_or_else(|error| panic!("the test servers: {error}"));
                Self { instance }
            })
            .await
    }

    /// The sandbox instance, to stop, kill and start servers.
    pub const fn instance(&self) -> &Instance {
        &self.instance
    }

    /// `host:port` of the broker.
    pub fn kafka_brokers(&self) -> String {
        self.setting("TIDELINE_KAFKA__BROKERS")
    }

    /// `host:port` of the CQL node.
    pub fn cql_node(&self) -> String {
        self.setting("TIDELINE_CQL__NODES")
    }

    /// URL of a database; it need not exist.
    pub fn postgres_url(&self, database: &str) -> String {
        let url = self.setting("TIDELINE_POSTGRES__URL");
        let (server, _) = url
            .rsplit_once('/')
            .expect("a Postgres URL ends in /database");
        format!("{server}/{database}")
    }

    /// Stops a server with its data intact.
    ///
    /// # Panics
    /// When it does not stop.
    pub async fn stop(&'static self, server: Server) {
        let stop = tokio::task::spawn_blocking(move || self.instance.stop(server));
        let outcome = stop
            .await
            .expect("the thread that stops a server does not panic");
        outcome.unwrap_or_else(|error| panic!("stop {}: {error}", server.name()));
    }

    /// Starts a server and waits until it answers.
    ///
    /// # Panics
    /// When it does not answer in time.
    pub async fn start(&'static self, server: Server) {
        let start = tokio::task::spawn_blocking(move || self.instance.start(server));
        let outcome = start
            .await
            .expect("the thread that starts a server does not panic");
        outcome.unwrap_or_else(|error| panic!("start {}: {error}", server.name()));
    }

    /// Ends a server as a crash would, and starts it again.
    ///
    /// # Panics
    /// When it does not come back.
    pub async fn crash_and_restart(&'static self, server: Server) {
        let crash = tokio::task::spawn_blocking(move || {
            self.instance.kill(server)?;
            self.instance.start(server)
        });
        let outcome = crash
            .await
            .expect("the thread that restarts a server does not panic");
        outcome.unwrap_or_else(|error| panic!("restart {}: {error}", server.name()));
    }

    pub(crate) fn setting(&self, key: &str) -> String {
        let env = self.instance.env();
        let found = env.into_iter().find(|(name, _)| name == key);
        found
            .unwrap_or_else(|| panic!("the sandbox has no {key}"))
            .1
    }
}

/// The test instance, up or not.
pub(crate) fn instance() -> Instance {
    let name = std::env::var(INSTANCE_VARIABLE).unwrap_or_else(|_| INSTANCE.to_owned());
    Instance::open(&root(), &name)
}

/// The checkout: the folder of the workspace's manifest.
pub(crate) fn root() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package
        .ancestors()
        .nth(2)
        .expect("this package lies two folders below the root")
        .to_owned()
}
