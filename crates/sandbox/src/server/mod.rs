//! The three servers: one file each for settings and command line, and here
//! what they have in common: start until ready, stop, kill.

pub(crate) mod cql;
pub(crate) mod java_process;
pub(crate) mod kafka;
pub(crate) mod postgres;
pub(crate) mod ready;

use std::fmt;
use std::net::Ipv4Addr;
use std::process::Child;
use std::time::{Duration, Instant};

use crate::error::Error;
use crate::instance::Home;
use crate::logs;
use crate::probe;
use crate::process::{Noted, PidFile, Process, Signal};
use ready::Starting;

/// How long a server may take to its first answer on a slow, busy machine.
const READY_WITHIN: Duration = Duration::from_secs(90);

/// How long a server may take to stop by itself before it is told harder; the
/// first stop of a Java server also writes its class-data archive.
const STOP_WITHIN: Duration = Duration::from_secs(45);

/// How many log lines an error shows.
const LINES: usize = 30;

/// One of the three servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Server {
    /// PostgreSQL.
    Postgres,
    /// Apache Kafka, one node that is broker and controller.
    Kafka,
    /// Apache Cassandra, the CQL server.
    Cql,
}

impl Server {
    /// All of them, in the order they are shown.
    pub const ALL: [Self; 3] = [Self::Postgres, Self::Kafka, Self::Cql];

    /// Name of its files, and how messages call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Postgres => "postgres",
            Self::Kafka => "kafka",
            Self::Cql => "cassandra",
        }
    }

    /// The port clients use.
    pub(crate) fn port(self, home: &Home) -> u16 {
        match self {
            Self::Postgres => home.ports.postgres(),
            Self::Kafka => home.ports.kafka(),
            Self::Cql => home.ports.cql(),
        }
    }

    /// Whether it serves clients now; Postgres has to have the database for that.
    pub(crate) fn answers(self, home: &Home) -> bool {
        self.serves(home, "tideline")
    }

    fn serves(self, home: &Home, database: &str) -> bool {
        let port = self.port(home);
        match self {
            Self::Postgres => probe::postgres(port, database),
            Self::Kafka => probe::kafka(port),
            Self::Cql => probe::cql(Ipv4Addr::LOCALHOST, port),
        }
    }

    pub(crate) fn pid_file(self, home: &Home) -> PidFile {
        PidFile::new(home.pid_path(self.name()))
    }

    /// Starts it unless it runs, and waits until it answers.
    ///
    /// # Errors
    /// [`Error::Died`] and [`Error::NotReady`] with its last log lines, and
    /// whatever keeps it from being started at all.
    pub(crate) fn start(self, home: &Home, say: &mut dyn FnMut(&str)) -> Result<(), Error> {
        let begun = Instant::now();
        let process = match self.await_noted(home, say)? {
            Some(process) => process,
            None => self.start_new(home, say)?,
        };
        if self == Self::Postgres {
            postgres::create_database(home)?;
        }
        say(&format!(
            "{self}: ready after {:.1} s (pid {})",
            begun.elapsed().as_secs_f64(),
            process.pid
        ));
        Ok(())
    }

    /// The process its pid file names, once it accepts clients. `None` when it
    /// is gone, or ends meanwhile, as one that has just been killed does.
    fn await_noted(self, home: &Home, say: &mut dyn FnMut(&str)) -> Result<Option<Process>, Error> {
        match self.pid_file(home).read() {
            Noted::Running(process) => match self.wait_ready(home, process, None, say) {
                Ok(()) => Ok(Some(process)),
                Err(Error::Died { .. }) => {
                    say(&format!(
                        "{self}: process {} has just ended; starting it again",
                        process.pid
                    ));
                    Ok(None)
                }
                Err(error) => Err(error),
            },
            noted => {
                report_stale(self.name(), noted, say);
                Ok(None)
            }
        }
    }

    fn start_new(self, home: &Home, say: &mut dyn FnMut(&str)) -> Result<Process, Error> {
        let mut child = self.spawn(home, say)?;
        let Some(process) = Process::of(child.id()) else {
            return Err(self.died(home, Some(&mut child)));
        };
        self.pid_file(home).write(process)?;
        self.wait_ready(home, process, Some(&mut child), say)?;
        Ok(process)
    }

    /// Stops it with its data intact.
    ///
    /// # Errors
    /// [`Error::Unstoppable`] when not even SIGKILL ends it.
    pub(crate) fn stop(self, home: &Home, say: &mut dyn FnMut(&str)) -> Result<(), Error> {
        let pid_file = self.pid_file(home);
        let Noted::Running(process) = pid_file.read() else {
            return pid_file.remove();
        };
        // A frozen process (SIGSTOP in a fault test) takes no request to stop.
        process.signal(Signal::Cont)?;
        for (signal, limit) in self.ways_to_stop() {
            process.signal(signal)?;
            if process.wait_gone(limit) {
                if self != Self::Postgres {
                    java_process::keep_archive(self, home);
                }
                say(&format!("{}: stopped", self.name()));
                return pid_file.remove();
            }
            say(&format!(
                "{}: does not stop by {signal:?}, telling it harder",
                self.name()
            ));
        }
        Err(Error::Unstoppable {
            name: self.name().to_owned(),
            pid: process.pid,
        })
    }

    /// Kills it as a crash would: SIGKILL, nothing tidied up. The pid file
    /// stays, as it would after a crash.
    ///
    /// # Errors
    /// [`Error::Unstoppable`].
    pub(crate) fn kill(self, home: &Home) -> Result<(), Error> {
        let Noted::Running(process) = self.pid_file(home).read() else {
            return Ok(());
        };
        let helpers = if self == Self::Postgres {
            postgres::leftovers(home)
        } else {
            Vec::new()
        };
        process.signal(Signal::Kill)?;
        for helper in &helpers {
            helper.signal(Signal::Kill)?;
        }
        let gone = helpers
            .iter()
            .chain([&process])
            .all(|p| p.wait_gone(STOP_WITHIN));
        if gone {
            Ok(())
        } else {
            Err(Error::Unstoppable {
                name: self.name().to_owned(),
                pid: process.pid,
            })
        }
    }

    /// Removes its data; it must be stopped.
    pub(crate) fn wipe(self, home: &Home) -> Result<(), Error> {
        let folder = if self == Self::Postgres {
            postgres::data(home)?
        } else {
            home.folder(self.name())
        };
        match std::fs::remove_dir_all(&folder) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                Err(Error::file("removing", folder, e))
            }
            _ => Ok(()),
        }
    }

    fn ways_to_stop(self) -> Vec<(Signal, Duration)> {
        match self {
            // SIGINT ends sessions; walsenders with a stuck client can hold it up, SIGQUIT
            // then skips the checkpoint and the next start recovers from the log.
            Self::Postgres => vec![
                (Signal::Int, Duration::from_secs(5)),
                (Signal::Quit, STOP_WITHIN),
                (Signal::Kill, STOP_WITHIN),
            ],
            Self::Kafka | Self::Cql => {
                vec![(Signal::Term, STOP_WITHIN), (Signal::Kill, STOP_WITHIN)]
            }
        }
    }

    fn spawn(self, home: &Home, say: &mut dyn FnMut(&str)) -> Result<Child, Error> {
        match self {
            Self::Postgres => postgres::spawn(home, say),
            Self::Kafka => kafka::spawn(home, say),
            Self::Cql => cql::spawn(home),
        }
    }

    fn wait_ready(
        self,
        home: &Home,
        process: Process,
        child: Option<&mut Child>,
        say: &mut dyn FnMut(&str),
    ) -> Result<(), Error> {
        let starting = Starting {
            name: self.name().to_owned(),
            log: home.log_path(self.name()),
            pid_file: self.pid_file(home),
            process,
            within: READY_WITHIN,
        };
        starting.wait(child, &|| self.serves(home, "postgres"), say)
    }

    fn died(self, home: &Home, child: Option<&mut Child>) -> Error {
        let log = home.log_path(self.name());
        let status = child.and_then(|child| child.wait().ok());
        Error::Died {
            name: self.name().to_owned(),
            status,
            lines: logs::tail(&log, LINES),
            log,
        }
    }
}

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

fn report_stale(name: &str, noted: Noted, say: &mut dyn FnMut(&str)) {
    match noted {
        Noted::Gone(pid) => {
            say(&format!(
                "{name}: stale pid file, process {pid} ended without being stopped; starting it again"
            ));
        }
        Noted::Reused(pid) => {
            say(&format!(
                "{name}: stale pid file, {pid} is another program now and is left alone; starting it again"
            ));
        }
        Noted::None | Noted::Running(_) => {}
    }
}
