//! Servers of several nodes, on demand: three Kafka brokers with a controller, or three Cassandra
//! nodes. For tests that lose a node.
//!
//! Owns: their data, which is new for each cluster and goes with it, and the life of each single
//! node. They are heavy, so one cluster at a time runs on a machine: the lock is the machine's, and
//! the ports are always the same. What a caller that was killed has left behind is ended by the
//! next one, and by [`Instance::down`].
//!
//! Does not own: topics and keyspaces, and whether the nodes have found each other.

use std::env;
use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::thread;
use std::time::{Duration, Instant};

use crate::error::Error;
use crate::instance::Instance;
use crate::jars::{self, JarSet};
use crate::lock::Lock;
use crate::probe;
use crate::process::{Noted, PidFile, Process, Signal};
use crate::server::java_process::Place;
use crate::server::ready::Starting;
use crate::server::{cql, kafka};

/// Nodes of a cluster.
const COUNT: u16 = 3;
/// Another run on this machine may have a cluster for so long.
const FREE_WITHIN: Duration = Duration::from_secs(1_200);
/// Several Java servers that start at once on a small machine take their time.
const READY_WITHIN: Duration = Duration::from_secs(240);
const GONE_WITHIN: Duration = Duration::from_secs(20);
const STOP_WITHIN: Duration = Duration::from_secs(45);

/// Behind the ports of Postgres servers of single tests.
const CONTROLLER_PORT: u16 = 18_410;
const FIRST_BROKER_PORT: u16 = 18_411;
const CQL_PORT: u16 = 18_420;

/// The ring from -2^63 to 2^63 in three equal parts.
const TOKENS: [i64; 3] = [
    -9_223_372_036_854_775_807,
    -3_074_457_345_618_258_603,
    3_074_457_345_618_258_602,
];

/// A cluster that runs. Dropping it kills the nodes and removes their data.
#[derive(Debug)]
pub struct Nodes {
    nodes: Vec<Node>,
    /// Those that no client talks to.
    helpers: Vec<Node>,
    folder: PathBuf,
    /// Freed last.
    _lock: Lock,
}

/// One server of a cluster.
#[derive(Debug, Clone)]
struct Node {
    place: Place,
    pid_file: PidFile,
    kind: Kind,
}

#[derive(Debug, Clone)]
enum Kind {
    Kafka(kafka::Layout),
    Cql(cql::Layout),
}

impl Nodes {
    /// Three brokers; a controller apart from them goes on when brokers are lost. Every topic
    /// may have three copies, and two have to be there for a record to be taken.
    ///
    /// # Errors
    /// When another cluster holds the machine for 20 min, or a node does not start.
    pub fn brokers(instance: &Instance, say: &mut dyn FnMut(&str)) -> Result<Self, Error> {
        let layout = |id: u16, roles, name, port| kafka::Layout {
            roles,
            id,
            listeners: vec![(name, port)],
            advertised: if roles == "broker" {
                vec![(name, kafka::LOOPBACK, port)]
            } else {
                Vec::new()
            },
            controller_id: 100,
            controller_port: CONTROLLER_PORT,
            replicas: COUNT,
            min_in_sync: COUNT - 1,
            // A busy machine must not make the brokers give each other up.
            session_ms: 6_000,
        };
        let controller = layout(100, "controller", "CONTROLLER", CONTROLLER_PORT);
        let helpers = vec![("kafka-controller".to_owned(), Kind::Kafka(controller))];
        let brokers = (0..COUNT).map(|n| {
            let layout = layout(n + 1, "broker", "PLAINTEXT", FIRST_BROKER_PORT + n);
            (format!("kafka-{}", n + 1), Kind::Kafka(layout))
        });
        Self::begin(instance, jars::KAFKA, helpers, brokers.collect(), say)
    }

    /// Three Cassandra nodes at 127.0.0.1, 127.0.0.2 and 127.0.0.3, each with a third of the ring.
    ///
    /// # Errors
    /// When another cluster holds the machine for 20 min, or a node does not start.
    pub fn cql(instance: &Instance, say: &mut dyn FnMut(&str)) -> Result<Self, Error> {
        let address = |n: u16| format!("127.0.0.{}", n + 1);
        let nodes = (0..COUNT).map(|n| {
            let layout = cql::Layout {
                address: address(n),
                cql: CQL_PORT,
                storage: CQL_PORT + 1,
                ssl_storage: CQL_PORT + 2,
                token: TOKENS[usize::from(n)],
                seeds: (0..COUNT).map(address).collect(),
            };
            (format!("cassandra-{}", n + 1), Kind::Cql(layout))
        });
        Self::begin(instance, jars::CASSANDRA, Vec::new(), nodes.collect(), say)
    }

    /// `host:port` of each node.
    pub fn addresses(&self) -> Vec<String> {
        self.nodes.iter().map(Node::address).collect()
    }

    /// Starts the node of this number, from 0, unless it runs, and waits until it answers.
    ///
    /// # Errors
    /// As [`Instance::start`](crate::Instance::start).
    pub fn start(&self, number: usize) -> Result<(), Error> {
        self.node(number).start(&mut |_| {})
    }

    /// Stops a node with its data intact.
    ///
    /// # Errors
    /// When it cannot be stopped.
    pub fn stop(&self, number: usize) -> Result<(), Error> {
        self.node(number).end(&[
            (Signal::Cont, Duration::ZERO),
            (Signal::Term, STOP_WITHIN),
            (Signal::Kill, GONE_WITHIN),
        ])
    }

    /// Ends a node as a crash would, with SIGKILL.
    ///
    /// # Errors
    /// When it does not end.
    pub fn kill(&self, number: usize) -> Result<(), Error> {
        self.node(number).end(&[(Signal::Kill, GONE_WITHIN)])
    }

    /// Sends a signal to a node, as [`Signal::Stop`] and [`Signal::Cont`] for a pause.
    ///
    /// # Errors
    /// When there is no shell to send it with.
    pub fn signal(&self, number: usize, signal: Signal) -> Result<(), Error> {
        match self.node(number).pid_file.read() {
            Noted::Running(process) => process.signal(signal),
            _ => Ok(()),
        }
    }

    fn node(&self, number: usize) -> &Node {
        // A test that asks for another one is wrong, and learns it at once.
        &self.nodes[number]
    }

    fn begin(
        instance: &Instance,
        set: JarSet,
        helpers: Vec<(String, Kind)>,
        nodes: Vec<(String, Kind)>,
        say: &mut dyn FnMut(&str),
    ) -> Result<Self, Error> {
        let room = room();
        fs::create_dir_all(&room).map_err(|e| Error::file("creating", &room, e))?;
        let path = room.join("lock");
        let taken = Lock::take_within(&path, FREE_WITHIN, &mut || {
            say("another run has a cluster of several nodes on this machine, waiting …");
        })?;
        let lock = taken.ok_or(Error::NodesBusy {
            path,
            waited: FREE_WITHIN,
        })?;
        end_all(&room)?;
        instance.prepare(say)?;
        let folder = instance.dir().join("nodes");
        remove(&folder)?;
        let make = |(name, kind): (String, Kind)| Node {
            place: Place {
                folder: folder.join(&name),
                log: instance.log_path(&name),
                jars: instance.jars().to_owned(),
                set,
                name: name.clone(),
            },
            pid_file: PidFile::new(room.join("pid").join(name)),
            kind,
        };
        let cluster = Self {
            helpers: helpers.into_iter().map(make).collect(),
            nodes: nodes.into_iter().map(make).collect(),
            folder: folder.clone(),
            _lock: lock,
        };
        // From here on what has started is ended by dropping it.
        cluster.start_all(say)?;
        Ok(cluster)
    }

    /// All at once: none of them is complete without the others.
    fn start_all(&self, say: &mut dyn FnMut(&str)) -> Result<(), Error> {
        let mut started = Vec::new();
        for node in self.helpers.iter().chain(&self.nodes) {
            started.push((node, node.launch(say)?));
        }
        for (node, (mut child, process)) in started {
            node.wait(process, Some(&mut child), say)?;
            say(&format!("{}: ready", node.place.name));
        }
        Ok(())
    }
}

impl Drop for Nodes {
    fn drop(&mut self) {
        for node in self.nodes.iter().chain(&self.helpers) {
            if let Err(error) = node.end(&[(Signal::Kill, GONE_WITHIN)]) {
                eprintln!("{}: {error}", node.place.name);
            }
        }
        // What stays is removed by the next cluster.
        let _outcome = remove(&self.folder);
    }
}

impl Node {
    fn address(&self) -> String {
        match &self.kind {
            Kind::Kafka(layout) => format!("127.0.0.1:{}", layout.listeners[0].1),
            Kind::Cql(layout) => format!("{}:{}", layout.address, layout.cql),
        }
    }

    fn serves(&self) -> bool {
        match &self.kind {
            // A controller alone answers no client; brokers do not serve without it.
            Kind::Kafka(layout) if layout.advertised.is_empty() => true,
            Kind::Kafka(layout) => probe::kafka(layout.listeners[0].1),
            Kind::Cql(layout) => layout
                .address
                .parse::<Ipv4Addr>()
                .is_ok_and(|address| probe::cql(address, layout.cql)),
        }
    }

    fn start(&self, say: &mut dyn FnMut(&str)) -> Result<(), Error> {
        if let Noted::Running(process) = self.pid_file.read() {
            return self.wait(process, None, say);
        }
        let (mut child, process) = self.launch(say)?;
        self.wait(process, Some(&mut child), say)
    }

    fn launch(&self, say: &mut dyn FnMut(&str)) -> Result<(Child, Process), Error> {
        let mut child = match &self.kind {
            Kind::Kafka(layout) => kafka::spawn_at(&self.place, layout, say)?,
            Kind::Cql(layout) => cql::spawn_at(&self.place, layout)?,
        };
        let Some(process) = Process::of(child.id()) else {
            return Err(Error::Died {
                name: self.place.name.clone(),
                status: child.wait().ok(),
                lines: crate::tail(&self.place.log, 30),
                log: self.place.log.clone(),
            });
        };
        self.pid_file.write(process)?;
        Ok((child, process))
    }

    fn wait(
        &self,
        process: Process,
        child: Option<&mut Child>,
        say: &mut dyn FnMut(&str),
    ) -> Result<(), Error> {
        let starting = Starting {
            name: self.place.name.clone(),
            log: self.place.log.clone(),
            pid_file: self.pid_file.clone(),
            process,
            within: READY_WITHIN,
        };
        starting.wait(child, &|| self.serves(), say)
    }

    /// Sends one signal after the other until it is gone.
    fn end(&self, ways: &[(Signal, Duration)]) -> Result<(), Error> {
        let Noted::Running(process) = self.pid_file.read() else {
            return self.pid_file.remove();
        };
        for (signal, limit) in ways {
            process.signal(*signal)?;
            if process.wait_gone(*limit) {
                return self.pid_file.remove();
            }
        }
        Err(Error::Unstoppable {
            name: self.place.name.clone(),
            pid: process.pid,
        })
    }
}

/// Ends what a caller that was killed has left behind; nothing while a cluster is in use.
pub(crate) fn end_leftovers() -> Result<(), Error> {
    let room = room();
    let path = room.join("lock");
    if !path.exists() {
        return Ok(());
    }
    match Lock::take_within(&path, Duration::ZERO, &mut || {})? {
        Some(_lock) => end_all(&room),
        None => Ok(()),
    }
}

/// Where the one cluster of this machine is noted.
fn room() -> PathBuf {
    env::temp_dir().join("tideline-nodes")
}

/// Kills every process that is noted; whoever calls has the lock.
fn end_all(room: &Path) -> Result<(), Error> {
    let entries = fs::read_dir(room.join("pid"));
    for entry in entries.into_iter().flatten().flatten() {
        let pid_file = PidFile::new(entry.path());
        if let Noted::Running(process) = pid_file.read() {
            process.signal(Signal::Kill)?;
            if !process.wait_gone(GONE_WITHIN) {
                return Err(Error::Unstoppable {
                    name: entry.file_name().to_string_lossy().into_owned(),
                    pid: process.pid,
                });
            }
        }
        pid_file.remove()?;
    }
    Ok(())
}

fn remove(folder: &Path) -> Result<(), Error> {
    let begun = Instant::now();
    loop {
        match fs::remove_dir_all(folder) {
            Ok(()) => return Ok(()),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            Err(e) if begun.elapsed() > Duration::from_secs(2) => {
                return Err(Error::file("removing", folder, e));
            }
            // A process that is being killed may still make a file.
            Err(_) => thread::sleep(Duration::from_millis(50)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_left_behind_is_ended() {
        let room = env::temp_dir().join(format!("tideline-left-{}", std::process::id()));
        let log = room.join("log");
        let mut command = std::process::Command::new("sleep");
        let mut child = crate::process::spawn(command.arg("60"), &log).expect("it starts");
        let process = Process::of(child.id()).expect("it runs");
        let file = PidFile::new(room.join("pid").join("kafka-1"));
        file.write(process).expect("noted");
        end_all(&room).expect("ended");
        let status = child.wait().expect("it has ended");
        assert!(!status.success());
        assert_eq!(file.read(), Noted::None);
        fs::remove_dir_all(room).expect("removed");
    }
}
