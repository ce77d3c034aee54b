//! Cassandra, the CQL server: nodes with a small heap whose acknowledged
//! writes survive a SIGKILL.
//!
//! The instance's own server is a cluster of one. Nodes of a cluster of several have an address
//! each and the same ports, since clients take the port from their contact point.

use std::fs;
use std::path::Path;
use std::process::Child;

use super::Server;
use super::java_process::{self, Place};
use crate::error::Error;
use crate::instance::Home;
use crate::ports::Ports;

/// Packages Cassandra 5.0 needs opened on Java 17 (its own start script has the same list).
const EXPORTS: [&str; 7] = [
    "java.base/jdk.internal.misc",
    "java.management.rmi/com.sun.jmx.remote.internal.rmi",
    "java.rmi/sun.rmi.registry",
    "java.rmi/sun.rmi.server",
    "java.rmi/sun.rmi.transport.tcp",
    "java.sql/java.sql",
    "java.base/sun.nio.ch",
];
const OPENS: [&str; 14] = [
    "java.base/java.lang.module",
    "java.base/jdk.internal.loader",
    "java.base/jdk.internal.ref",
    "java.base/jdk.internal.reflect",
    "java.base/jdk.internal.math",
    "java.base/jdk.internal.module",
    "java.base/jdk.internal.util.jar",
    "jdk.management/com.sun.management.internal",
    "java.base/sun.nio.ch",
    "java.base/java.io",
    "java.base/java.nio",
    "java.base/java.util",
    "java.base/java.util.concurrent",
    "java.base/java.util.concurrent.atomic",
];

const LOGGING: &str = r#"<configuration>
  <appender name="out" class="ch.qos.logback.core.ConsoleAppender">
    <encoder><pattern>%d{HH:mm:ss.SSS} %-5level %logger{0} %msg%n</pattern></encoder>
  </appender>
  <root level="INFO"><appender-ref ref="out"/></root>
</configuration>
"#;

/// What one node is to its cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Layout {
    /// Its own address, one for each node.
    pub(crate) address: String,
    /// The same for all nodes.
    pub(crate) cql: u16,
    pub(crate) storage: u16,
    pub(crate) ssl_storage: u16,
    /// The end of its part of the ring.
    pub(crate) token: i64,
    /// Addresses of the nodes that know the others.
    pub(crate) seeds: Vec<String>,
}

impl Layout {
    fn single(ports: Ports) -> Self {
        Self {
            address: "127.0.0.1".to_owned(),
            cql: ports.cql(),
            storage: ports.cql_storage(),
            ssl_storage: ports.cql_ssl_storage(),
            token: 0,
            seeds: vec!["127.0.0.1".to_owned()],
        }
    }

    /// How long a node that is joining may be silent before the others forget it. Without any
    /// patience, nodes that start together forget each other at once, and half of the time their
    /// schemas differ for minutes.
    const fn ring_delay_ms(&self) -> u32 {
        if self.seeds.len() > 1 { 5_000 } else { 0 }
    }
}

pub(super) fn spawn(home: &Home) -> Result<Child, Error> {
    spawn_at(&Place::of(home, Server::Cql), &Layout::single(home.ports))
}

/// Starts a node; its folder is made when it is new.
pub(crate) fn spawn_at(place: &Place, layout: &Layout) -> Result<Child, Error> {
    let folder = &place.folder;
    fs::create_dir_all(folder).map_err(|e| Error::file("creating", folder, e))?;
    let settings = folder.join("cassandra.yaml");
    let logging = folder.join("logback.xml");
    fs::write(&settings, yaml(layout, folder)).map_err(|e| Error::file("writing", &settings, e))?;
    fs::write(&logging, LOGGING).map_err(|e| Error::file("writing", &logging, e))?;
    // The service does not say what is wrong with a folder that is missing.
    for name in ["data", "commitlog", "saved", "hints", "cdc"] {
        let path = folder.join(name);
        fs::create_dir_all(&path).map_err(|e| Error::file("creating", path, e))?;
    }
    let flags = flags(layout, folder, &settings, &logging);
    java_process::spawn(
        place,
        &flags,
        &["org.apache.cassandra.service.CassandraDaemon"],
    )
}

fn flags(layout: &Layout, folder: &Path, settings: &Path, logging: &Path) -> Vec<String> {
    let mut flags = vec![
        "-Xms64m".to_owned(),
        // Each table of each test's keyspace holds some heap, hence more than one deployment needs.
        "-Xmx384m".to_owned(),
        // Skips a calibration of 2.5 s at each start; the value is what it finds.
        "-Dcassandra.memtable.row_overhead_size=180".to_owned(),
        format!("-Dcassandra.config={}", file_url(settings)),
        format!("-Dcassandra.storagedir={}", folder.display()),
        format!("-Dcassandra.logdir={}", folder.display()),
        format!("-Dlogback.configurationFile={}", logging.display()),
        "-Dcassandra-foreground=yes".to_owned(),
        // Nobody moves data to a new node here, so there is nothing to wait for.
        "-Dcassandra.skip_wait_for_gossip_to_settle=0".to_owned(),
        format!("-Dcassandra.ring_delay_ms={}", layout.ring_delay_ms()),
        "-Dcassandra.superuser_setup_delay_ms=0".to_owned(),
    ];
    flags.extend(EXPORTS.map(|package| format!("--add-exports={package}=ALL-UNNAMED")));
    flags.extend(OPENS.map(|package| format!("--add-opens={package}=ALL-UNNAMED")));
    flags
}

fn yaml(layout: &Layout, folder: &Path) -> String {
    let Layout {
        address,
        cql,
        storage,
        ssl_storage,
        token,
        seeds,
    } = layout;
    let seeds = seeds.iter().map(|seed| format!("{seed}:{storage}"));
    let seeds = seeds.collect::<Vec<_>>().join(",");
    let dir = folder
        .display()
        .to_string()
        .replace('\\', "\\\\")
        .replace('"', "\\\"");
    format!(
        r#"# Written by the sandbox before each start.
cluster_name: tideline
num_tokens: 1
initial_token: "{token}"
auto_bootstrap: false
partitioner: org.apache.cassandra.dht.Murmur3Partitioner
# "periodic" loses acknowledged writes on SIGKILL, "group" does not.
commitlog_sync: group
commitlog_sync_group_window: 1ms
data_file_directories: ["{dir}/data"]
commitlog_directory: "{dir}/commitlog"
saved_caches_directory: "{dir}/saved"
hints_directory: "{dir}/hints"
cdc_raw_directory: "{dir}/cdc"
listen_address: {address}
rpc_address: {address}
native_transport_port: {cql}
storage_port: {storage}
ssl_storage_port: {ssl_storage}
endpoint_snitch: SimpleSnitch
seed_provider:
  - class_name: org.apache.cassandra.locator.SimpleSeedProvider
    parameters: [{{seeds: "{seeds}"}}]
memtable_heap_space: 64MiB
memtable_offheap_space: 64MiB
commitlog_segment_size: 8MiB
commitlog_total_space: 256MiB
key_cache_size: 0MiB
concurrent_compactors: 1
auto_snapshot: false
"#
    )
}

/// A `file:` URL; blanks are the only characters a checkout's path is likely to have.
fn file_url(path: &Path) -> String {
    format!(
        "file://{}",
        path.display()
            .to_string()
            .replace('%', "%25")
            .replace(' ', "%20")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_name_the_ports_and_listen_on_loopback_only() {
        let layout = Layout::single(Ports::preferred("sandbox"));
        let text = yaml(&layout, Path::new("/t/my cql"));
        assert!(
            text.contains("native_transport_port: 17403\nstorage_port: 17404\n"),
            "{text}"
        );
        assert!(text.contains("seeds: \"127.0.0.1:17404\""), "{text}");
        assert!(
            text.contains("commitlog_directory: \"/t/my cql/commitlog\""),
            "{text}"
        );
    }

    #[test]
    fn urls_escape_blanks() {
        assert_eq!(file_url(Path::new("/a b/c.yaml")), "file:///a%20b/c.yaml");
    }
}
