//! Kafka: one node that is broker and controller, small, and back within
//! seconds after a SIGKILL.

use std::fs;
use std::process::Child;

use super::{Server, java_process};
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

pub(super) fn spawn(home: &Home, say: &mut dyn FnMut(&str)) -> Result<Child, Error> {
    let folder = home.folder("kafka");
    fs::create_dir_all(&folder).map_err(|e| Error::file("creating", &folder, e))?;
    let data = folder.join("data");
    let settings = folder.join("server.properties");
    let logging = folder.join("log4j2.properties");
    fs::write(
        &settings,
        properties(home.ports, &data.display().to_string()),
    )
    .map_err(|e| Error::file("writing", &settings, e))?;
    fs::write(&logging, LOGGING).map_err(|e| Error::file("writing", &logging, e))?;
    let settings = settings.display().to_string();
    if !data.join("meta.properties").is_file() {
        say("kafka: formatting its data folder");
        let arguments = [
            "kafka.tools.StorageTool",
            "format",
            "--ignore-formatted",
            "-t",
            CLUSTER,
            "-c",
            &settings,
        ];
        java_process::run_tool(home, Server::Kafka, &arguments)?;
    }
    // Heap grows only when many tests make many topics; 128 MB is enough for one deployment.
    let flags = [
        "-Xms32m".to_owned(),
        "-Xmx256m".to_owned(),
        format!("-Dlog4j2.configurationFile={}", logging.display()),
    ];
    java_process::spawn(home, Server::Kafka, &flags, &["kafka.Kafka", &settings])
}

fn properties(ports: Ports, data: &str) -> String {
    let (broker, controller) = (ports.kafka(), ports.kafka_controller());
    format!(
        "# Written by the sandbox before each start.
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{broker},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{broker}
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs={data}
auto.create.topics.enable=false
offsets.topic.num.partitions=3
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=3
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.num.partitions=3
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
# After a SIGKILL the old registration has to expire before the node may come back.
broker.session.timeout.ms=3000
broker.heartbeat.interval.ms=300
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_name_the_ports_and_listen_on_loopback_only() {
        let text = properties(Ports::preferred("sandbox"), "/t/data");
        assert!(
            text.contains("listeners=PLAINTEXT://127.0.0.1:17401,CONTROLLER://127.0.0.1:17402\n"),
            "{text}"
        );
        assert!(
            text.contains("controller.quorum.voters=1@127.0.0.1:17402\n"),
            "{text}"
        );
        assert!(text.contains("log.dirs=/t/data\n"), "{text}");
    }
}
