//! The jars of the two Java servers, fetched through Maven with a generated pom.
//!
//! A set is complete when its folder holds the very pom it was made from, so a
//! new version here replaces the old set, and an interrupted download is
//! repeated. Maven keeps its own cache in `~/.m2`; with it a repeat takes seconds.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::Error;
use crate::logs;

/// Versions of the Maven plugin and the servers, measured together.
const PLUGIN: &str = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies";

/// One set of jars: a server with everything it needs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct JarSet {
    /// The folder's name, and how messages call it.
    pub(crate) name: &'static str,
    /// What to expect while it is fetched for the first time.
    hint: &'static str,
    artifacts: &'static [(&'static str, &'static str, &'static str)],
}

/// Kafka with its tools. The logging binding must fit slf4j 1.7: with the one
/// for slf4j 2 the broker crashes silently.
pub(crate) const KAFKA: JarSet = JarSet {
    name: "kafka",
    hint: "43 MB, usually 10 s",
    artifacts: &[
        ("org.apache.kafka", "kafka_2.13", "4.4.0"),
        ("org.apache.kafka", "kafka-tools", "4.4.0"),
        ("org.apache.logging.log4j", "log4j-slf4j-impl", "2.25.3"),
    ],
};

/// Cassandra, the CQL server that package mirrors carry.
pub(crate) const CASSANDRA: JarSet = JarSet {
    name: "cassandra",
    hint: "66 MB, usually 12 s",
    artifacts: &[("org.apache.cassandra", "cassandra-all", "5.0.6")],
};

/// The Java servers and their versions; Postgres tells its own.
pub fn server_versions() -> [(&'static str, &'static str); 2] {
    [KAFKA, CASSANDRA].map(|set| (set.name, set.artifacts[0].2))
}

impl JarSet {
    /// Whether the set is there already, below the folder for all jars.
    pub(crate) fn complete(self, jars: &Path) -> bool {
        fs::read_to_string(jars.join(self.name).join("pom.xml")).is_ok_and(|pom| pom == self.pom())
    }

    /// Fetches the set unless it is there.
    ///
    /// # Errors
    /// [`Error::NoMaven`], [`Error::Download`] and faults of the disk.
    pub(crate) fn fetch(
        self,
        jars: &Path,
        java: &Path,
        say: &mut dyn FnMut(&str),
    ) -> Result<(), Error> {
        if self.complete(jars) {
            return Ok(());
        }
        say(&format!(
            "fetching the jars of {} through Maven ({}) …",
            self.name, self.hint
        ));
        let work = jars.join(format!("{}.new", self.name));
        let target = jars.join(self.name);
        remove_folder(&work)?;
        fs::create_dir_all(&work).map_err(|e| Error::file("creating", &work, e))?;
        let pom = work.join("pom.xml");
        fs::write(&pom, self.pom()).map_err(|e| Error::file("writing", &pom, e))?;
        self.run_maven(&work, java, &jars.join(format!("{}.log", self.name)))?;
        remove_folder(&target)?;
        fs::rename(&work, &target).map_err(|e| Error::file("renaming", &work, e))
    }

    /// All its jars, sorted, as a class path. The order is fixed because a
    /// class-data archive is only valid for the class path it was made with.
    pub(crate) fn class_path(self, jars: &Path) -> Result<String, Error> {
        let folder = jars.join(self.name).join("libs");
        let entries = fs::read_dir(&folder).map_err(|e| Error::file("reading", &folder, e))?;
        let mut paths: Vec<String> = entries
            .flatten()
            .map(|entry| entry.path())
            .filter(|path| path.extension().is_some_and(|ext| ext == "jar"))
            .map(|path| path.display().to_string())
            .collect();
        paths.sort();
        Ok(paths.join(":"))
    }

    /// Where the class-data archive made for this set and this Java lives.
    pub(crate) fn archive(self, jars: &Path, java: &Path) -> PathBuf {
        let java = java
            .file_name()
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default();
        jars.join(self.name).join(format!("{java}.jsa"))
    }

    fn run_maven(self, work: &Path, java: &Path, log: &Path) -> Result<(), Error> {
        let out = logs::fresh(log)?;
        let err = out
            .try_clone()
            .map_err(|e| Error::file("opening", log, e))?;
        let mut command = Command::new("mvn");
        command
            .args(["--batch-mode", "--no-transfer-progress", PLUGIN])
            .args(["-DincludeScope=runtime", "-DoutputDirectory=libs"])
            .current_dir(work)
            .env("JAVA_HOME", java)
            .stdin(std::process::Stdio::null())
            .stdout(out)
            .stderr(err);
        // Debian's script resolves a path from HOME and dislikes an unset one.
        if env::var_os("HOME").is_none() {
            command.env("HOME", "/");
        }
        match command.status() {
            Ok(status) if status.success() => Ok(()),
            Ok(_) => Err(Error::Download {
                what: self.name,
                output: logs::tail(log, 15),
            }),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Err(Error::NoMaven),
            Err(source) => Err(Error::Program {
                program: "mvn".to_owned(),
                source,
            }),
        }
    }

    fn pom(self) -> String {
        let mut text = format!(
            "<project xmlns=\"http://maven.apache.org/POM/4.0.0\">\n  <modelVersion>4.0.0</modelVersion>\n  \
             <groupId>tideline.sandbox</groupId>\n  <artifactId>{}</artifactId>\n  <version>1</version>\n  \
             <packaging>pom</packaging>\n  <dependencies>\n",
            self.name
        );
        for (group, artifact, version) in self.artifacts {
            text.push_str(&format!(
                "    <dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId>\
                 <version>{version}</version></dependency>\n"
            ));
        }
        text.push_str("  </dependencies>\n</project>\n");
        text
    }
}

fn remove_folder(path: &Path) -> Result<(), Error> {
    match fs::remove_dir_all(path) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(Error::file("removing", path, e)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pom_names_each_artifact_with_its_version() {
        let pom = KAFKA.pom();
        assert!(
            pom.contains("<artifactId>kafka_2.13</artifactId><version>4.4.0</version>"),
            "{pom}"
        );
        assert!(
            pom.contains("<artifactId>log4j-slf4j-impl</artifactId>"),
            "{pom}"
        );
        assert_eq!(pom.matches("<dependency>").count(), 3);
        assert!(
            CASSANDRA
                .pom()
                .contains("<artifactId>cassandra-all</artifactId><version>5.0.6</version>")
        );
    }

    #[test]
    fn only_the_same_pom_counts_as_complete() {
        let jars = std::env::temp_dir().join(format!("tideline-jars-{}", std::process::id()));
        assert!(!KAFKA.complete(&jars));
        fs::create_dir_all(jars.join("kafka/libs")).expect("made");
        fs::write(jars.join("kafka/pom.xml"), "an older one").expect("written");
        assert!(!KAFKA.complete(&jars));
        fs::write(jars.join("kafka/pom.xml"), KAFKA.pom()).expect("written");
        assert!(KAFKA.complete(&jars));
        for name in ["b.jar", "a.jar", "notes.txt"] {
            fs::write(jars.join("kafka/libs").join(name), "").expect("written");
        }
        let path = KAFKA.class_path(&jars).expect("readable");
        assert!(
            path.ends_with("b.jar") && path.matches(".jar").count() == 2,
            "{path}"
        );
        fs::remove_dir_all(jars).expect("removed");
    }
}
