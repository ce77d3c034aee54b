//! The one set of servers that all tests share.

use std::path::{Path, PathBuf};

use sandbox::{Instance, Server};
use tokio::sync::OnceCell;

/// Name of the instance; `./x test` knows it too.
const INSTANCE: &str = "sandbox-test";

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
                    let mut instance = Instance::open(&root(), INSTANCE);
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

/// The checkout: the folder of the workspace's manifest.
pub(crate) fn root() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package
        .ancestors()
        .nth(2)
        .expect("this package lies two folders below the root")
        .to_owned()
}
