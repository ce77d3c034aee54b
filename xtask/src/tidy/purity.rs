//! Pure code has no runtime, clock, sockets, files, environment or logs: time
//! comes in as an argument, and what is to be done goes out as a value. That
//! is what lets a simulator drive it.

use super::{Finding, Source};

/// Crates that are pure as a whole.
const PURE: [&str; 3] = [
    "crates/events/src/",
    "crates/pgoutput/src/",
    "crates/ack-tracker/src/",
];

/// What must not appear, as written in code.
const FORBIDDEN: [&str; 9] = [
    "tokio",
    "tracing",
    "std::net",
    "std::env",
    "std::fs",
    "std::thread",
    "std::process",
    "Instant::now",
    "SystemTime::now",
];

pub(super) fn check(sources: &[Source]) -> Vec<Finding> {
    sources
        .iter()
        .filter(|source| source.is_rust() && !source.is_test_file() && is_pure(&source.path))
        .flat_map(judge)
        .collect()
}

/// Whether the file lies in a pure crate or in a service's core.
pub(super) fn is_pure(path: &str) -> bool {
    let core = path.starts_with("services/")
        && (path.contains("/src/core/") || path.ends_with("/src/core.rs"));
    core || PURE.iter().any(|folder| path.starts_with(folder))
}

fn judge(source: &Source) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (number, line) in source.product_lines() {
        for word in FORBIDDEN.into_iter().filter(|word| names(line, word)) {
            let place = format!("{}:{number}", source.path);
            findings.push(Finding::fault(
                place,
                format!("`{word}` in pure code; pass it in, or move this out"),
            ));
        }
    }
    findings
}

/// Whether the line has the path as whole words, also inside `use std::{…}`.
fn names(line: &str, path: &str) -> bool {
    if let Some(module) = path.strip_prefix("std::")
        && let Some(at) = line.find("use std::{")
    {
        return line[at..]
            .split(['{', ',', '}', ':', ' '])
            .any(|word| word == module);
    }
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(path).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + path.len()..].chars().next();
        !before.is_some_and(is_word) && !after.is_some_and(is_word)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(path: &str, text: &str) -> usize {
        check(&[Source::new(path, text)]).len()
    }

    #[test]
    fn each_forbidden_thing_is_found() {
        for word in FORBIDDEN {
            assert_eq!(
                faults(
                    "services/relay/src/core/state.rs",
                    &format!("let x = {word};\n")
                ),
                1,
                "{word}"
            );
            assert_eq!(
                faults("crates/events/src/id.rs", &format!("use {word};\n")),
                1,
                "{word}"
            );
        }
        assert_eq!(
            faults(
                "crates/pgoutput/src/lib.rs",
                "use std::{fmt, net::IpAddr};\n"
            ),
            1
        );
    }

    #[test]
    fn comments_tests_and_longer_words_are_no_fault() {
        assert_eq!(
            faults(
                "crates/events/src/id.rs",
                "// like tokio does\nuse x; // tracing\n"
            ),
            0
        );
        assert_eq!(
            faults(
                "crates/events/src/id.rs",
                "#[cfg(test)]\nmod tests {\n use std::fs;\n}\n"
            ),
            0
        );
        assert_eq!(
            faults("crates/events/src/id.rs", "let tokio_like = std::fmt::x;\n"),
            0
        );
        assert_eq!(
            faults("services/relay/src/core/tests.rs", "use std::fs;\n"),
            0
        );
    }

    #[test]
    fn other_code_may_do_all_that() {
        assert_eq!(
            faults("services/relay/src/event_loop.rs", "use tokio::select;\n"),
            0
        );
        assert_eq!(faults("crates/kafka/src/lib.rs", "use tracing::info;\n"), 0);
    }
}
