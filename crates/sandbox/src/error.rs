//! What can go wrong on the way to running servers; each text names the fix.

use std::error::Error as StdError;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;

/// Why the sandbox cannot do what it was asked to.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// A file or folder could not be read or written.
    File {
        /// What was being done, as in "writing".
        doing: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The answer of the operating system.
        source: io::Error,
    },
    /// A program could not be started at all.
    Program {
        /// Name or path of the program.
        program: String,
        /// The answer of the operating system.
        source: io::Error,
    },
    /// A helper program ran and failed.
    Failed {
        /// What was being done.
        doing: String,
        /// Its last output lines.
        output: String,
    },
    /// There is no Java at all.
    NoJava,
    /// There are only Java versions that do not serve both Java servers.
    WrongJava {
        /// Each Java that was found: its home and major version.
        found: Vec<(PathBuf, u32)>,
    },
    /// Maven is not installed.
    NoMaven,
    /// Maven could not fetch the jars.
    Download {
        /// Which server's jars.
        what: &'static str,
        /// The last lines Maven wrote.
        output: String,
    },
    /// No Postgres server, version 15 or newer, is installed.
    NoPostgres,
    /// Postgres refuses to run as root and there is nobody else to run it as.
    NoUnprivilegedUser,
    /// The temporary data folder belongs to somebody else.
    ForeignFolder {
        /// The folder.
        path: PathBuf,
    },
    /// Every block of ports has at least one busy port.
    NoPortBlock {
        /// For each block: its first port and the busy port that was met.
        busy: Vec<(u16, u16)>,
    },
    /// Too little room on the disk.
    DiskFull {
        /// The folder that has to grow.
        path: PathBuf,
        /// What is free, in MiB.
        free: u64,
        /// What is needed, in MiB.
        needed: u64,
    },
    /// A process ended while it was starting.
    Died {
        /// Its name.
        name: String,
        /// How it ended, when that is known.
        status: Option<ExitStatus>,
        /// Its log file.
        log: PathBuf,
        /// The last lines of that file.
        lines: String,
    },
    /// A process runs but does not answer in time.
    NotReady {
        /// Its name.
        name: String,
        /// How long was waited.
        waited: Duration,
        /// Its log file.
        log: PathBuf,
        /// The last lines of that file, or the last answer.
        lines: String,
    },
    /// A process could not be stopped, not even by SIGKILL.
    Unstoppable {
        /// Its name.
        name: String,
        /// Its process id.
        pid: u32,
    },
    /// Another cluster of several nodes runs on this machine.
    NodesBusy {
        /// The lock that its owner holds.
        path: PathBuf,
        /// How long was waited.
        waited: Duration,
    },
    /// The library that fakes a process's clock is not installed.
    NoFaketime,
    /// The library that gives a process host names of its own is not installed.
    NoNssWrapper,
    /// An HTTP request to a service's admin port got no proper answer.
    Admin {
        /// The URL.
        url: String,
        /// What came instead.
        answer: String,
    },
}

impl Error {
    /// Wraps an answer of the operating system about `path`.
    pub(crate) fn file(doing: &'static str, path: impl Into<PathBuf>, source: io::Error) -> Self {
        Self::File {
            doing,
            path: path.into(),
            source,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { doing, path, .. } => write!(f, "{doing} {} failed", path.display()),
            Self::Program { program, .. } => write!(
                f,
                "cannot run {program}; is it installed? `./x --no-install` lists what is missing"
            ),
            Self::Failed { doing, output } => write!(f, "{doing} failed:\n{output}"),
            Self::NoJava => f.write_str(
                "no Java found (looked at JAVA_HOME, /usr/lib/jvm and PATH); Kafka and Cassandra need \
                 Java 17: apt-get install openjdk-17-jre-headless, or set JAVA_HOME to a Java 17",
            ),
            Self::WrongJava { found } => write_wrong_java(f, found),
            Self::NoMaven => f.write_str("no Maven found, it fetches the servers' jars: apt-get install maven"),
            Self::Download { what, output } => write!(
                f,
                "cannot fetch the jars of {what} through Maven; check the network, or name a mirror in \
                 ~/.m2/settings.xml, and call again. Maven said:\n{output}"
            ),
            Self::NoPostgres => f.write_str(
                "no Postgres server 15 or newer found (looked at /usr/lib/postgresql and PATH): \
                 apt-get install postgresql",
            ),
            Self::NoUnprivilegedUser => f.write_str(
                "Postgres does not run as root and there is no user `postgres` to run it as: \
                 install Debian's postgresql package (it brings the user) or call as an ordinary user",
            ),
            Self::ForeignFolder { path } => write!(
                f,
                "{} exists and belongs to another user; remove it or move the checkout",
                path.display()
            ),
            Self::NoPortBlock { busy } => write_no_block(f, busy),
            Self::DiskFull { path, free, needed } => write!(
                f,
                "the disk is nearly full: {free} MiB free for {}, {needed} MiB needed; make room, \
                 `cargo clean` or `./x reset` help",
                path.display()
            ),
            Self::Died { name, status, log, lines } => {
                write!(f, "{name} died")?;
                if let Some(status) = status {
                    write!(f, " ({status})")?;
                }
                write!(f, "; the last lines of {}:\n{lines}", log.display())
            }
            Self::NotReady { name, waited, log, lines } => write!(
                f,
                "{name} runs but was not ready after {:.0} s; log {}:\n{lines}",
                waited.as_secs_f64(),
                log.display()
            ),
            Self::Unstoppable { name, pid } => {
                write!(f, "{name} (process {pid}) does not end, not even by SIGKILL; look with `ps -fp {pid}`")
            }
            Self::NodesBusy { path, waited } => write!(
                f,
                "a cluster of several nodes runs on this machine, still after {:.0} s; the run that \
                 has it holds {}",
                waited.as_secs_f64(),
                path.display()
            ),
            Self::NoFaketime => f.write_str(
                "no libfaketimeMT.so.1 found (looked at /usr/lib/*/faketime and /usr/lib/faketime), it \
                 moves the clock of one process: apt-get install libfaketime",
            ),
            Self::NoNssWrapper => f.write_str(
                "no libnss_wrapper.so found (looked at /usr/lib/* and /usr/lib), it gives one process \
                 host names of its own: apt-get install libnss-wrapper",
            ),
            Self::Admin { url, answer } => write!(f, "GET {url} got no proper answer: {answer}"),
        }
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match self {
            Self::File { source, .. } | Self::Program { source, .. } => Some(source),
            _ => None,
        }
    }
}

fn write_wrong_java(f: &mut fmt::Formatter<'_>, found: &[(PathBuf, u32)]) -> fmt::Result {
    f.write_str(
        "no fitting Java: Kafka needs 17 or newer, Cassandra 11 or 17, so it has to be 17; found",
    )?;
    for (home, major) in found {
        write!(f, " {major} in {};", home.display())?;
    }
    f.write_str(" apt-get install openjdk-17-jre-headless, or set JAVA_HOME to a Java 17")
}

fn write_no_block(f: &mut fmt::Formatter<'_>, busy: &[(u16, u16)]) -> fmt::Result {
    f.write_str("no free block of ports; busy are")?;
    for (base, port) in busy {
        write!(f, " {port} (block {base})")?;
    }
    f.write_str(
        "; stop other sandboxes with `./x down` in their checkouts, `ss -ltnp` shows who listens",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_java_names_versions_and_fix() {
        let text = Error::WrongJava {
            found: vec![(PathBuf::from("/opt/jdk25"), 25)],
        }
        .to_string();
        assert!(text.contains("25 in /opt/jdk25"), "{text}");
        assert!(text.contains("openjdk-17-jre-headless"), "{text}");
    }

    #[test]
    fn no_block_names_the_busy_ports() {
        let text = Error::NoPortBlock {
            busy: vec![(17400, 17403), (17420, 17420)],
        }
        .to_string();
        assert!(
            text.contains("17403 (block 17400)") && text.contains("17420"),
            "{text}"
        );
        assert!(text.contains("./x down"), "{text}");
    }

    #[test]
    fn a_dead_server_shows_its_last_lines() {
        let text = Error::Died {
            name: "kafka".into(),
            status: None,
            log: PathBuf::from("/t/kafka.log"),
            lines: "FATAL out of cheese".into(),
        }
        .to_string();
        assert!(
            text.contains("kafka died") && text.contains("FATAL out of cheese"),
            "{text}"
        );
    }
}
