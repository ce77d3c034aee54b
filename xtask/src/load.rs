//! `load`: the sandbox with all services in release, and the load program against them.
//!
//! When the words name a deployment's address themselves, nothing is started: the program is only
//! built and handed over to.

use crate::cargo;
use crate::failure::Failure;
use crate::program;
use crate::repository;
use crate::run;

const PROGRAM: &str = "load";

pub(crate) fn load(rest: &[String]) -> Result<(), Failure> {
    if !needs_a_deployment(rest) {
        return program::hand_over(PROGRAM, rest);
    }
    cargo::build_release(Some(PROGRAM))?;
    let mut words = vec![PROGRAM.to_owned()];
    words.extend_from_slice(rest);
    words.extend(notes());
    run::supervised(&words)
}

/// What the report should say of the sandbox, and nobody can ask it for.
fn notes() -> Vec<String> {
    let versions = sandbox::server_versions().map(|(name, version)| format!("{name}={version}"));
    let commit = repository::commit().map(|commit| format!("commit={commit}"));
    let notes = versions.into_iter().chain(commit);
    notes.flat_map(|note| ["--note".to_owned(), note]).collect()
}

/// Whether the call is a run against a deployment that it does not name.
fn needs_a_deployment(rest: &[String]) -> bool {
    const ONLY_TELLS: [&str; 4] = ["--help", "-h", "--dry-run", "--list"];
    const ADDRESS: &str = "--write-api";
    let names_one = |word: &String| {
        ONLY_TELLS.contains(&word.as_str())
            || word
                .strip_prefix(ADDRESS)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
    };
    !rest.is_empty() && !rest.iter().any(names_one)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_without_an_address_gets_the_sandbox() {
        let needs = |line: &str| {
            let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            needs_a_deployment(&words)
        };
        assert!(needs("steady --seed 3"));
        assert!(!needs(""));
        assert!(!needs("--list"));
        assert!(!needs("steady --dry-run"));
        assert!(!needs("steady --write-api http://tideline.test"));
        assert!(!needs("steady --write-api=http://tideline.test"));
    }
}
