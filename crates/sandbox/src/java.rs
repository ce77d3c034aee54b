//! Finds a Java that runs both Java servers.
//!
//! Cassandra 5.0 runs on 11 or 17, Kafka 4 on 17 and newer: it has to be 17.

use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::Error;

const WANTED: u32 = 17;

/// The home folder of a Java that fits.
///
/// # Errors
/// [`Error::NoJava`] and [`Error::WrongJava`].
pub(crate) fn find() -> Result<PathBuf, Error> {
    choose(
        candidates()
            .into_iter()
            .filter_map(|home| Some((major_of(&home)?, home))),
    )
}

/// The first fitting one of the given versions.
fn choose(found: impl Iterator<Item = (u32, PathBuf)>) -> Result<PathBuf, Error> {
    let mut wrong = Vec::new();
    for (major, home) in found {
        if major == WANTED {
            return Ok(home);
        }
        wrong.push((home, major));
    }
    if wrong.is_empty() {
        Err(Error::NoJava)
    } else {
        Err(Error::WrongJava { found: wrong })
    }
}

/// Java homes to look at, the most deliberate choice first, each one once.
fn candidates() -> Vec<PathBuf> {
    let mut homes: Vec<PathBuf> = env::var_os("JAVA_HOME")
        .map(PathBuf::from)
        .into_iter()
        .collect();
    let mut installed: Vec<PathBuf> = fs::read_dir("/usr/lib/jvm")
        .map(|entries| entries.flatten().map(|entry| entry.path()).collect())
        .unwrap_or_default();
    installed.sort();
    homes.extend(installed);
    for folder in env::split_paths(&env::var_os("PATH").unwrap_or_default()) {
        if let Ok(java) = fs::canonicalize(folder.join("java"))
            && let Some(home) = java.parent().and_then(Path::parent)
        {
            homes.push(home.to_owned());
        }
    }
    let mut seen = BTreeSet::new();
    homes
        .into_iter()
        .filter(|home| home.join("bin/java").is_file())
        .filter_map(|home| fs::canonicalize(home).ok())
        .filter(|home| seen.insert(home.clone()))
        .collect()
}

/// Its major version: from the `release` file, which costs nothing, else by asking it.
fn major_of(home: &Path) -> Option<u32> {
    if let Ok(text) = fs::read_to_string(home.join("release"))
        && let Some(major) = parse_version(&text)
    {
        return Some(major);
    }
    let output = Command::new(home.join("bin/java"))
        .arg("-version")
        .output()
        .ok()?;
    parse_version(&String::from_utf8_lossy(&output.stderr))
}

/// Reads `JAVA_VERSION="17.0.15"` and `openjdk version "1.8.0_402"` alike.
fn parse_version(text: &str) -> Option<u32> {
    let line = text
        .lines()
        .find(|line| line.starts_with("JAVA_VERSION=") || line.contains(" version \""))?;
    let version = line.split('"').nth(1)?;
    let mut numbers = version.split(|c: char| !c.is_ascii_digit());
    let first: u32 = numbers.next()?.parse().ok()?;
    // Up to Java 8 the major version was the second number.
    if first == 1 {
        numbers.next()?.parse().ok()
    } else {
        Some(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_in_all_their_forms() {
        assert_eq!(
            parse_version("IMPLEMENTOR=\"x\"\nJAVA_VERSION=\"17.0.15\"\n"),
            Some(17)
        );
        assert_eq!(
            parse_version("openjdk version \"11.0.2\" 2019-01-15\n"),
            Some(11)
        );
        assert_eq!(parse_version("java version \"1.8.0_402\"\n"), Some(8));
        assert_eq!(
            parse_version("openjdk version \"25-ea\" 2025-09-16\n"),
            Some(25)
        );
        assert_eq!(parse_version("no version here"), None);
    }

    #[test]
    fn the_fitting_one_wins_whatever_stands_before_it() {
        let found = [
            (25, PathBuf::from("/a")),
            (17, PathBuf::from("/b")),
            (17, PathBuf::from("/c")),
        ];
        assert_eq!(
            choose(found.into_iter()).expect("there is one"),
            PathBuf::from("/b")
        );
    }

    #[test]
    fn none_and_wrong_are_different_faults() {
        assert!(matches!(choose(std::iter::empty()), Err(Error::NoJava)));
        let wrong = choose([(21, PathBuf::from("/a"))].into_iter());
        assert!(
            matches!(wrong, Err(Error::WrongJava { found }) if found == [(PathBuf::from("/a"), 21)])
        );
    }
}
