//! One set of servers with its own data: everything about its life.

mod secret;
mod status;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use crate::disk;
use crate::environment;
use crate::error::Error;
use crate::jars;
use crate::java;
use crate::lock::Lock;
use crate::node;
use crate::ports::{self, Ports};
use crate::postgres_tools::PostgresTools;
use crate::process::{Noted, PidFile, Signal};
use crate::server::{Server, postgres};
use crate::service::Service;

pub use status::{State, Status};

/// Room for data and logs of a first start, in MiB, and for the jars on top.
const ROOM: u64 = 400;
const ROOM_FOR_JARS: u64 = 500;

/// Something done to one server, with a listener for its progress.
type Job = fn(Server, &Home, &mut dyn FnMut(&str)) -> Result<(), Error>;

/// Where an instance keeps its things, and its ports.
#[derive(Debug, Clone)]
pub(crate) struct Home {
    pub(crate) dir: PathBuf,
    pub(crate) jars: PathBuf,
    pub(crate) ports: Ports,
}

impl Home {
    pub(crate) fn folder(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    pub(crate) fn pid_path(&self, name: &str) -> PathBuf {
        self.dir.join("pid").join(name)
    }

    pub(crate) fn log_path(&self, name: &str) -> PathBuf {
        self.dir.join("log").join(format!("{name}.log"))
    }
}

/// A listener of the broker that sends clients to a proxy: whoever comes in by it is told the
/// proxy's address for everything that follows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BehindProxy {
    /// Where the proxy has to listen, `host:port`.
    pub proxy: String,
    /// Where the proxy has to connect to.
    pub broker: String,
}

/// A listener of the broker that sends clients to [`crate::BROKER_NAME`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BehindName {
    /// The port that clients are sent to.
    pub port: u16,
    /// Where whoever listens there has to connect to, `host:port`.
    pub broker: String,
}

/// A set of servers with its own data, ports and logs.
#[derive(Debug, Clone)]
pub struct Instance {
    home: Home,
}

impl Instance {
    /// Names the instance `name` of the checkout at `root`; touches nothing.
    pub fn open(root: &Path, name: &str) -> Self {
        let target = root.join("target");
        let dir = target.join(name);
        let remembered = fs::read_to_string(dir.join("ports"))
            .ok()
            .and_then(|text| Ports::parse(&text));
        let ports = remembered.unwrap_or_else(|| Ports::preferred(name));
        Self {
            home: Home {
                jars: target.join("sandbox").join("jars"),
                dir,
                ports,
            },
        }
    }

    /// Its folder, `target/<name>`.
    pub fn dir(&self) -> &Path {
        &self.home.dir
    }

    /// The folder for the jars of all instances.
    pub(crate) fn jars(&self) -> &Path {
        &self.home.jars
    }

    /// The file a process's output goes to.
    pub fn log_path(&self, name: &str) -> PathBuf {
        self.home.log_path(name)
    }

    /// The folder for Postgres servers of single tests, where Postgres's user can reach it. One
    /// data folder each; what is left there when the instance is stopped is ended and removed.
    ///
    /// # Errors
    /// [`Error::NoUnprivilegedUser`].
    pub fn clusters(&self) -> Result<PathBuf, Error> {
        Ok(postgres::room(&self.home)?.join("clusters"))
    }

    /// Starts whatever does not run, all servers at once, and waits until they
    /// answer. Instant when all run. `say` gets one line per step.
    ///
    /// # Errors
    /// The first fault of any server; the others are left running.
    pub fn up(&mut self, say: &mut dyn FnMut(&str)) -> Result<(), Error> {
        let _lock = self.lock(say)?;
        if Server::ALL
            .into_iter()
            .all(|server| self.runs(server) && server.answers(&self.home))
        {
            return self.write_environment();
        }
        self.prepare(say)?;
        let _choice = self.choose_ports(say)?;
        self.write_environment()?;
        self.each_server(say, |server, home, say| server.start(home, say))
    }

    /// Stops services that were left running and all servers; data stays.
    ///
    /// # Errors
    /// When something cannot be stopped.
    pub fn down(&self, say: &mut dyn FnMut(&str)) -> Result<(), Error> {
        let _lock = self.lock(say)?;
        self.halt(say)
    }

    /// Stops everything and removes all data; jars, ports and logs stay.
    ///
    /// # Errors
    /// When something cannot be stopped or removed.
    pub fn reset(&self, say: &mut dyn FnMut(&str)) -> Result<(), Error> {
        let _lock = self.lock(say)?;
        self.halt(say)?;
        for server in Server::ALL {
            server.wipe(&self.home)?;
        }
        Ok(())
    }

    /// What each server and service does now.
    pub fn status(&self) -> Vec<Status> {
        let servers = Server::ALL.into_iter().map(|server| Status {
            name: server.name(),
            address: format!("127.0.0.1:{}", server.port(&self.home)),
            state: status::state(&server.pid_file(&self.home), || server.answers(&self.home)),
        });
        let services = Service::ALL.into_iter().map(|service| {
            let address = service.admin(&self.env()).unwrap_or_default();
            let answers = || service.answers(&address);
            let state = status::state(&self.service_pid_file(service), answers);
            Status {
                name: service.name(),
                address: address.clone(),
                state,
            }
        });
        servers.chain(services).collect()
    }

    /// The services' configuration for this instance.
    pub fn env(&self) -> Vec<(String, String)> {
        environment::pairs(self.home.ports, &self.home.dir.join("auth-secret"))
    }

    /// The broker's second door, for clients that come through a proxy.
    pub fn broker_behind_proxy(&self) -> BehindProxy {
        let ports = self.home.ports;
        BehindProxy {
            proxy: format!("127.0.0.1:{}", ports.kafka_proxy()),
            broker: format!("127.0.0.1:{}", ports.kafka_behind_proxy()),
        }
    }

    /// The broker's third door, for clients that find it by a name.
    pub fn broker_behind_name(&self) -> BehindName {
        let ports = self.home.ports;
        BehindName {
            port: ports.kafka_named(),
            broker: format!("127.0.0.1:{}", ports.kafka_behind_name()),
        }
    }

    /// Starts one server and waits until it answers.
    ///
    /// # Errors
    /// As [`Instance::up`].
    pub fn start(&self, server: Server) -> Result<(), Error> {
        let _lock = self.lock(&mut |_| {})?;
        server.start(&self.home, &mut |_| {})
    }

    /// Stops one server with its data intact.
    ///
    /// # Errors
    /// When it cannot be stopped.
    pub fn stop(&self, server: Server) -> Result<(), Error> {
        let _lock = self.lock(&mut |_| {})?;
        server.stop(&self.home, &mut |_| {})
    }

    /// Ends one server as a crash would, with SIGKILL.
    ///
    /// # Errors
    /// When it does not end.
    pub fn kill(&self, server: Server) -> Result<(), Error> {
        let _lock = self.lock(&mut |_| {})?;
        server.kill(&self.home)
    }

    /// Sends a signal to one server, as [`Signal::Stop`] and [`Signal::Cont`] for a pause.
    ///
    /// # Errors
    /// When there is no shell to send it with.
    pub fn signal(&self, server: Server, signal: Signal) -> Result<(), Error> {
        match server.pid_file(&self.home).read() {
            Noted::Running(process) => process.signal(signal),
            _ => Ok(()),
        }
    }

    pub(crate) fn service_pid_file(&self, service: Service) -> PidFile {
        PidFile::new(self.home.pid_path(service.name()))
    }

    fn halt(&self, say: &mut dyn FnMut(&str)) -> Result<(), Error> {
        for service in Service::ALL {
            self.stop_service(service, say)?;
        }
        self.end_clusters()?;
        node::end_leftovers()?;
        self.each_server(say, |server, home, say| server.stop(home, say))
    }

    /// Ends servers that a test which was killed has left behind.
    fn end_clusters(&self) -> Result<(), Error> {
        // Without the user there can be none.
        let clusters = self
            .clusters()
            .ok()
            .and_then(|folder| fs::read_dir(folder).ok());
        for data in clusters.into_iter().flatten().flatten() {
            let data = data.path();
            PostgresTools::kill(&data)?;
            fs::remove_dir_all(&data).map_err(|e| Error::file("removing", data, e))?;
        }
        Ok(())
    }

    /// Ends a service that somebody left running on purpose.
    fn stop_service(&self, service: Service, say: &mut dyn FnMut(&str)) -> Result<(), Error> {
        let file = self.service_pid_file(service);
        if let Noted::Running(process) = file.read() {
            process.signal(Signal::Cont)?;
            process.signal(Signal::Term)?;
            if !process.wait_gone(Duration::from_secs(20)) {
                say(&format!(
                    "{}: does not stop by itself, killing it",
                    service.name()
                ));
                process.signal(Signal::Kill)?;
                process.wait_gone(Duration::from_secs(5));
            }
            say(&format!("{}: stopped", service.name()));
        }
        file.remove()
    }

    fn runs(&self, server: Server) -> bool {
        matches!(server.pid_file(&self.home).read(), Noted::Running(_))
    }

    fn lock(&self, say: &mut dyn FnMut(&str)) -> Result<Lock, Error> {
        Lock::take(&self.home.dir.join("lock"), &mut || {
            say("somebody else is starting or stopping this sandbox, waiting …")
        })
    }

    /// Room on the disk, a Java, the jars.
    pub(crate) fn prepare(&self, say: &mut dyn FnMut(&str)) -> Result<(), Error> {
        let jars = &self.home.jars;
        let sets = [jars::KAFKA, jars::CASSANDRA];
        let complete = sets.into_iter().all(|set| set.complete(jars));
        disk::check(
            &self.home.dir,
            if complete { ROOM } else { ROOM + ROOM_FOR_JARS },
        )?;
        let java = java::find()?;
        if complete {
            return Ok(());
        }
        let _lock = Lock::take(&jars.join("lock"), &mut || {
            say("somebody else is fetching the jars, waiting …")
        })?;
        sets.into_iter()
            .try_for_each(|set| set.fetch(jars, &java, say))
    }

    /// Keeps the remembered block, or moves on when a port of it is busy. The
    /// lock is the whole machine's, because another checkout may choose too,
    /// and is held until the servers listen.
    fn choose_ports(&mut self, say: &mut dyn FnMut(&str)) -> Result<Option<Lock>, Error> {
        if Server::ALL.into_iter().any(|server| self.runs(server)) {
            return Ok(None);
        }
        let machine = std::env::temp_dir().join("tideline-sandbox.lock");
        // Another user's lock file that cannot be opened only costs the protection.
        let lock = Lock::take(&machine, &mut || {
            say("another sandbox is starting, waiting …")
        })
        .ok();
        let wish = self.home.ports;
        self.await_dying();
        self.home.ports = Ports::choose(wish, &ports::busy)?;
        if self.home.ports != wish {
            let busy = wish
                .first_busy()
                .map(|port| format!("port {port} is busy, "))
                .unwrap_or_default();
            say(&format!(
                "{busy}using the block of ports from {}",
                self.home.ports.base()
            ));
        }
        let path = self.home.dir.join("ports");
        fs::write(&path, format!("{}\n", self.home.ports.base()))
            .map_err(|e| Error::file("writing", path, e))?;
        Ok(lock)
    }

    /// After a SIGKILL from outside a process is gone for `/proc` a moment
    /// before its ports are free; moving to another block would be a surprise.
    fn await_dying(&self) {
        let died = |server: Server| matches!(server.pid_file(&self.home).read(), Noted::Gone(_));
        let deadline = Instant::now() + Duration::from_secs(3);
        while Server::ALL.into_iter().any(died)
            && self.home.ports.first_busy().is_some()
            && Instant::now() < deadline
        {
            thread::sleep(Duration::from_millis(50));
        }
    }

    fn write_environment(&self) -> Result<(), Error> {
        secret::write(&self.home.dir.join("auth-secret"))?;
        let path = self.home.dir.join("env");
        let text = environment::render(&self.env());
        // Written only when it changes: others may be reading it.
        if fs::read_to_string(&path).is_ok_and(|old| old == text) {
            return Ok(());
        }
        fs::write(&path, text).map_err(|e| Error::file("writing", path, e))
    }

    /// Does the same to all servers at once; the first fault wins.
    fn each_server(&self, say: &mut dyn FnMut(&str), job: Job) -> Result<(), Error> {
        let (sender, receiver) = mpsc::channel::<String>();
        thread::scope(|scope| {
            let jobs = Server::ALL.map(|server| {
                let sender = sender.clone();
                scope.spawn(move || {
                    // A listener that is gone has no interest in progress.
                    job(server, &self.home, &mut |line| {
                        drop(sender.send(line.to_owned()))
                    })
                })
            });
            drop(sender);
            for line in receiver {
                say(&line);
            }
            let mut outcome = Ok(());
            for job in jobs {
                let result = job
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
                outcome = outcome.and(result);
            }
            outcome
        })
    }
}

#[cfg(test)]
mod tests;
