//! Kafka: small, and back within seconds after a SIGKILL.
//!
//! The instance's own server is broker and controller in one. Of a cluster of three each broker is
//! a process and the controller another one, so that the brokers can be lost one by one.

use std::fs;
use std::process::Child;

use super::Server;
use super::java_process::{self, Place};
use crate::error::Error;
use crate::instance::Home;
use crate::ports::Ports;

/// Any fixed id will do: a sandbox is a cluster of its own.
const CLUSTER: &str = "dGlkZWxpbmUtc2FuZGJveA";

const LOGGING: &str = "status = warn
rootLogger.level = info
rootLogger.appenderRef.out.ref = out
appender.out.type = Console
appender.out.name = out
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %d{HH:mm:ss.SSS} %-5p %c{1} %m%n
";

pub(crate) const LOOPBACK: &str = "127.0.0.1";

/// The name of the single broker, for clients to whom somebody has told what address it has.
pub const BROKER_NAME: &str = "broker.tideline.test";

/// What one process is to its cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) roles: &'static str,
    pub(crate) id: u16,
    /// Where each listener listens, by its name.
    pub(crate) listeners: Vec<(&'static str, u16)>,
    /// Where clients of a listener are sent, by its name.
    pub(crate) advertised: Vec<(&'static str, &'static str, u16)>,
    pub(crate) controller_id: u16,
    pub(crate) controller_port: u16,
    /// Copies of everything that has no number of its own.
    pub(crate) replicas: u16,
    /// Copies that have to be there for a record to be taken.
    pub(crate) min_in_sync: u16,
    /// How long a process that is gone counts as being there, in milliseconds.
    pub(crate) session_ms: u32,
}

impl Layout {
    /// Broker and controller in one.
    fn single(ports: Ports) -> Self {
        Self {
            roles: "broker,controller",
            id: 1,
            listeners: vec![
                ("PLAINTEXT", ports.kafka()),
                ("PROXIED", ports.kafka_behind_proxy()),
                ("NAMED", ports.kafka_behind_name()),
                ("CONTROLLER", ports.kafka_controller()),
            ],
            advertised: vec![
                ("PLAINTEXT", LOOPBACK, ports.kafka()),
                ("PROXIED", LOOPBACK, ports.kafka_proxy()),
                ("NAMED", BROKER_NAME, ports.kafka_named()),
            ],
            controller_id: 1,
            controller_port: ports.kafka_controller(),
            replicas: 1,
            min_in_sync: 1,
            // After a SIGKILL the old registration has to expire before the node may come back.
            session_ms: 3_000,
        }
    }
}

pub(super) fn spawn(home: &Home, say: &mut dyn FnMut(&str)) -> Result<Child, Error> {
    let place = Place::of(home, Server::Kafka);
    spawn_at(&place, &Layout::single(home.ports), say)
}

/// Starts a process of a cluster; its folder is made and formatted when it is new.
pub(crate) fn spawn_at(
    place: &Place,
    layout: &Layout,
    say: &mut dyn FnMut(&str),
) -> Result<Child, Error> {
    let folder = &place.folder;
    fs::create_dir_all(folder).map_err(|e| Error::file("creating", folder, e))?;
    let data = folder.join("data");
    let settings = folder.join("server.properties");
    let logging = folder.join("log4j2.properties");
    let text = properties(layout, &data.display().to_string());
    fs::write(&settings, text).map_err(|e| Error::file("writing", &settings, e))?;
    fs::write(&logging, LOGGING).map_err(|e| Error::file("writing", &logging, e))?;
    let settings = settings.display().to_string();
    if !data.join("meta.properties").is_file() {
        say(&format!("{}: formatting its data folder", place.name));
        let arguments = [
            "kafka.tools.StorageTool",
            "format",
            "--ignore-formatted",
            "-t",
            CLUSTER,
            "-c",
            &settings,
        ];
        java_process::run_tool(place, &arguments)?;
    }
    // Heap grows only when many tests make many topics; 128 MB is enough for one deployment.
    let flags = [
        "-Xms32m".to_owned(),
        "-Xmx256m".to_owned(),
        format!("-Dlog4j2.configurationFile={}", logging.display()),
    ];
    java_process::spawn(place, &flags, &["kafka.Kafka", &settings])
}

fn properties(layout: &Layout, data: &str) -> String {
    let Layout {
        roles,
        id,
        controller_id,
        controller_port,
        replicas,
        min_in_sync,
        session_ms,
        ..
    } = layout;
    let advertised = if layout.advertised.is_empty() {
        String::new()
    } else {
        let all = layout.advertised.iter().copied();
        format!("advertised.listeners={}\n", listeners(all))
    };
    let all = layout.listeners.iter();
    let listeners = listeners(all.map(|(name, port)| (*name, LOOPBACK, *port)));
    format!(
        "# Written by the sandbox before each start.
process.roles={roles}
node.id={id}
controller.quorum.voters={controller_id}@127.0.0.1:{controller_port}
listeners={listeners}
{advertised}controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,PROXIED:PLAINTEXT,NAMED:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs={data}
auto.create.topics.enable=false
default.replication.factor={replicas}
min.insync.replicas={min_in_sync}
offsets.topic.num.partitions=3
offsets.topic.replication.factor={replicas}
transaction.state.log.num.partitions=3
transaction.state.log.replication.factor={replicas}
transaction.state.log.min.isr={min_in_sync}
share.coordinator.state.topic.num.partitions=3
share.coordinator.state.topic.replication.factor={replicas}
share.coordinator.state.topic.min.isr={min_in_sync}
broker.session.timeout.ms={session_ms}
broker.heartbeat.interval.ms=300
# A follower that is gone for so long is no longer waited for.
replica.lag.time.max.ms=5000
# Tests of rebalances do not want to wait for the usual timeouts.
group.initial.rebalance.delay.ms=0
group.min.session.timeout.ms=1000
# Without these the log cleaner alone asks for more than the heap.
log.cleaner.dedupe.buffer.size=4194304
log.cleaner.io.buffer.size=65536
log.index.size.max.bytes=1048576
num.network.threads=2
num.io.threads=4
background.threads=2
"
    )
}

fn listeners<'a>(all: impl Iterator<Item = (&'a str, &'a str, u16)>) -> String {
    let each = all.map(|(name, host, port)| format!("{name}://{host}:{port}"));
    each.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_name_the_ports_and_listen_on_loopback_only() {
        let text = properties(&Layout::single(Ports::preferred("sandbox")), "/t/data");
        assert!(
            text.contains(
                "\nlisteners=PLAINTEXT://127.0.0.1:17401,PROXIED://127.0.0.1:17406,\
                 NAMED://127.0.0.1:17415,CONTROLLER://127.0.0.1:17402\n"
            ),
            "{text}"
        );
        assert!(
            text.contains(
                "\nadvertised.listeners=PLAINTEXT://127.0.0.1:17401,PROXIED://127.0.0.1:17407,\
                 NAMED://broker.tideline.test:17416\n"
            ),
            "{text}"
        );
        assert!(
            text.contains("controller.quorum.voters=1@127.0.0.1:17402\n"),
            "{text}"
        );
        assert!(text.contains("log.dirs=/t/data\n"), "{text}");
    }

    #[test]
    fn a_controller_alone_advertises_nothing() {
        let layout = Layout {
            roles: "controller",
            listeners: vec![("CONTROLLER", 1)],
            advertised: Vec::new(),
            ..Layout::single(Ports::preferred("sandbox"))
        };
        let text = properties(&layout, "/t/data");
        assert!(!text.contains("advertised"), "{text}");
    }
}
