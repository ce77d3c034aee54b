//! What both Java servers share: the command line as an argument file, small
//! heaps, and the class-data archive that halves the start time.
//!
//! The archive is written when a first run stops, next to the running
//! instance, and moved beside the jars once it is whole, so that two instances
//! never write the same file.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use super::Server;
use crate::error::Error;
use crate::instance::Home;
use crate::jars::{self, JarSet};
use crate::java;
use crate::process;

/// Where one Java server lives.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    /// How messages call it.
    pub(crate) name: String,
    /// Its settings and data.
    pub(crate) folder: PathBuf,
    pub(crate) log: PathBuf,
    /// The folder for all jars.
    pub(crate) jars: PathBuf,
    /// Which of them are its own.
    pub(crate) set: JarSet,
}

impl Place {
    /// The instance's own server.
    pub(super) fn of(home: &Home, server: Server) -> Self {
        Self {
            name: server.name().to_owned(),
            folder: home.folder(server.name()),
            log: home.log_path(server.name()),
            jars: home.jars.clone(),
            set: if server == Server::Kafka {
                jars::KAFKA
            } else {
                jars::CASSANDRA
            },
        }
    }
}

/// Starts a server's main class with the given flags in front of it.
pub(super) fn spawn(place: &Place, flags: &[String], main: &[&str]) -> Result<Child, Error> {
    let java = java::find()?;
    let Place {
        folder, jars, set, ..
    } = place;
    let mut arguments: Vec<String> = [
        "-Xss256k",
        "-XX:+UseSerialGC",
        "-XX:TieredStopAtLevel=1",
        "-XX:+ExitOnOutOfMemoryError",
        "-XX:-UsePerfData",
    ]
    .map(str::to_owned)
    .to_vec();
    let archive = set.archive(jars, &java);
    arguments.push(if archive.is_file() {
        format!("-XX:SharedArchiveFile={}", archive.display())
    } else {
        format!(
            "-XX:ArchiveClassesAtExit={}",
            fresh_archive(folder).display()
        )
    });
    // The archive's own remarks about classes it leaves out would fill the log.
    arguments.extend([
        "-Xlog:cds=off".to_owned(),
        "-Xlog:cds+dynamic=off".to_owned(),
    ]);
    arguments.extend_from_slice(flags);
    arguments.extend(["-cp".to_owned(), set.class_path(jars)?]);
    arguments.extend(main.iter().map(|&word| word.to_owned()));
    let file = folder.join("java.args");
    fs::write(&file, render(&arguments)).map_err(|e| Error::file("writing", &file, e))?;
    let mut command = Command::new(java.join("bin/java"));
    command
        .arg(format!("@{}", file.display()))
        .current_dir(folder);
    process::spawn(&mut command, &place.log)
}

/// Runs one of the server's command-line tools to its end.
pub(super) fn run_tool(place: &Place, arguments: &[&str]) -> Result<(), Error> {
    let java = java::find()?;
    let output = Command::new(java.join("bin/java"))
        .args([
            "-Xmx64m",
            "-XX:+UseSerialGC",
            "-XX:TieredStopAtLevel=1",
            "-cp",
        ])
        .arg(place.set.class_path(&place.jars)?)
        .args(arguments)
        .current_dir(&place.folder)
        .output()
        .map_err(|source| Error::Program {
            program: "java".to_owned(),
            source,
        })?;
    if output.status.success() {
        return Ok(());
    }
    let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.push_str(&String::from_utf8_lossy(&output.stderr));
    Err(Error::Failed {
        doing: format!("preparing {}", place.name),
        output: text,
    })
}

/// Moves a class-data archive that the stopped run has written to its place.
/// Losing it costs a second at the next start, so faults are of no interest.
pub(super) fn keep_archive(server: Server, home: &Home) {
    let place = Place::of(home, server);
    let fresh = fresh_archive(&place.folder);
    if let Ok(java) = java::find()
        && fs::metadata(&fresh).is_ok_and(|m| m.len() > 0)
    {
        let _ = fs::rename(fresh, place.set.archive(&place.jars, &java));
    }
}

fn fresh_archive(folder: &Path) -> PathBuf {
    folder.join("classes.jsa")
}

/// One quoted argument per line, as java's `@file` wants it.
fn render(arguments: &[String]) -> String {
    arguments
        .iter()
        .map(|argument| {
            format!(
                "\"{}\"\n",
                argument.replace('\\', "\\\\").replace('"', "\\\"")
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_survive_blanks_and_quotes() {
        let text = render(&["-Da=b c".to_owned(), "say \"x\\y\"".to_owned()]);
        assert_eq!(text, "\"-Da=b c\"\n\"say \\\"x\\\\y\\\"\"\n");
    }
}
