//! Inside a service: `core` knows only itself and pure crates, `source` and
//! `sink` do not know each other; the event loop joins them.

use super::{Finding, Source};

/// Crates of this workspace that do IO, as written in code.
const IO: [&str; 7] = [
    "replication",
    "database",
    "kafka",
    "timeline_store",
    "runtime",
    "http_api",
    "sandbox",
];

pub(super) fn check(sources: &[Source]) -> Vec<Finding> {
    sources
        .iter()
        .filter(|source| {
            source.is_rust() && source.path.starts_with("services/") && !source.is_test_file()
        })
        .flat_map(judge)
        .collect()
}

fn judge(source: &Source) -> Vec<Finding> {
    let forbidden: fn(&str) -> Option<String> = match layer(&source.path) {
        Some("core") => foreign_to_core,
        Some("source") => |line| crate_path(line, &["sink"]),
        Some("sink") => |line| crate_path(line, &["source"]),
        _ => return Vec::new(),
    };
    let found = source
        .product_lines()
        .filter_map(|(number, line)| Some((number, forbidden(line)?)));
    found
        .map(|(number, what)| {
            Finding::fault(
                format!("{}:{number}", source.path),
                format!("`{what}` crosses layers"),
            )
        })
        .collect()
}

/// The first folder or file name below `src`.
fn layer(path: &str) -> Option<&str> {
    let inside = path.split_once("/src/")?.1;
    Some(
        inside
            .split_once('/')
            .map_or(inside.trim_end_matches(".rs"), |(folder, _)| folder),
    )
}

fn foreign_to_core(line: &str) -> Option<String> {
    if let Some(rest) = line.split("crate::").nth(1)
        && !line.contains("pub(in crate::")
        && !rest.starts_with("core")
    {
        let word: String = rest
            .chars()
            .take_while(|c| c.is_alphanumeric() || *c == '_')
            .collect();
        return Some(format!("crate::{word}"));
    }
    let starts = line
        .trim_start()
        .trim_start_matches("pub ")
        .trim_start_matches("use ");
    IO.iter()
        .find(|name| line.trim_start().contains("use ") && starts.starts_with(&format!("{name}::")))
        .map(|name| (*name).to_owned())
}

/// A path from the crate's root into one of the given modules.
fn crate_path(line: &str, modules: &[&str]) -> Option<String> {
    let path = modules.iter().map(|module| format!("crate::{module}"));
    path.into_iter().find(|path| {
        line.split_once(path.as_str())
            .is_some_and(|(_, after)| !after.starts_with(|c: char| c.is_alphanumeric() || c == '_'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(path: &str, line: &str) -> Vec<String> {
        check(&[Source::new(path, &format!("{line}\n"))])
            .into_iter()
            .map(|f| f.text)
            .collect()
    }

    #[test]
    fn core_knows_only_itself_and_pure_crates() {
        let path = "services/relay/src/core/state.rs";
        assert_eq!(
            faults(path, "use crate::sink::Produce;"),
            ["`crate::sink` crosses layers"]
        );
        assert_eq!(
            faults(path, "use crate::error::RelayError;"),
            ["`crate::error` crosses layers"]
        );
        assert_eq!(
            faults(path, "use kafka::Producer;"),
            ["`kafka` crosses layers"]
        );
        assert_eq!(
            faults(path, "pub use database::Pool;"),
            ["`database` crosses layers"]
        );
        assert!(faults(path, "use crate::core::limits::Limits;").is_empty());
        assert!(faults(path, "use ack_tracker::Tracker;").is_empty());
        assert!(faults(path, "use super::route::Route;").is_empty());
    }

    #[test]
    fn source_and_sink_do_not_know_each_other() {
        assert_eq!(
            faults(
                "services/relay/src/sink/produce.rs",
                "use crate::source::Slot;"
            )
            .len(),
            1
        );
        assert_eq!(
            faults(
                "services/fanout/src/source/consume.rs",
                "crate::sink::rows::write();"
            )
            .len(),
            1
        );
        assert!(
            faults(
                "services/relay/src/sink/produce.rs",
                "use crate::core::Action;"
            )
            .is_empty()
        );
        assert!(
            faults(
                "services/relay/src/source/slot.rs",
                "use crate::sinking::X;"
            )
            .is_empty()
        );
    }

    #[test]
    fn the_event_loop_joins_them() {
        assert!(
            faults(
                "services/relay/src/event_loop.rs",
                "use crate::{core, sink, source};"
            )
            .is_empty()
        );
        assert!(
            faults(
                "services/fanout/src/lane/posts.rs",
                "use crate::sink::Rows;"
            )
            .is_empty()
        );
    }
}
