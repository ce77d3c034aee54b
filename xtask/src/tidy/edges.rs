//! Which package may depend on which. A new edge fails until it is written
//! down here, where a reviewer sees it.
//!
//! Pure crates know only pure crates, IO crates do not know each other,
//! services do not know each other. Tests may reach further: their list is
//! apart.

use std::collections::BTreeSet;

use super::manifest::{self, Manifest};
use super::{Finding, Source};

type Edges = &'static [(&'static str, &'static [&'static str])];

/// Allowed dependencies of the product.
const NORMAL: Edges = &[
    ("events", &[]),
    ("pgoutput", &[]),
    ("ack-tracker", &[]),
    ("replication", &["pgoutput"]),
    ("database", &["events"]),
    ("kafka", &["events"]),
    ("timeline-store", &["events"]),
    ("runtime", &[]),
    ("http-api", &["events", "runtime"]),
    ("write-api", &["events", "database", "runtime", "http-api"]),
    (
        "relay",
        &[
            "events",
            "pgoutput",
            "ack-tracker",
            "replication",
            "database",
            "kafka",
            "runtime",
        ],
    ),
    ("sweep", &["events", "database", "kafka", "runtime"]),
    (
        "fanout",
        &[
            "events",
            "ack-tracker",
            "database",
            "kafka",
            "timeline-store",
            "runtime",
        ],
    ),
    (
        "read-api",
        &[
            "events",
            "database",
            "timeline-store",
            "runtime",
            "http-api",
        ],
    ),
    (
        "cli",
        &[
            "events",
            "database",
            "kafka",
            "timeline-store",
            "runtime",
            "http-api",
            // `explain` tells what the sweep would do, in the sweep's own words.
            "sweep",
        ],
    ),
    ("graph", &["events", "database"]),
    (
        "judge",
        &[
            "events",
            "database",
            "timeline-store",
            "runtime",
            "http-api",
            // A journal may name a made graph instead of its edges.
            "graph",
        ],
    ),
    ("report", &[]),
    (
        "load",
        &[
            "events",
            "database",
            "timeline-store",
            "runtime",
            "http-api",
            "graph",
            "judge",
            "report",
        ],
    ),
    (
        "demo",
        &[
            "events",
            "database",
            "kafka",
            "timeline-store",
            "runtime",
            "http-api",
            "judge",
            "load",
            "sandbox",
        ],
    ),
    // Checks of the whole system; nothing depends on it.
    (
        "chaos",
        &[
            "events",
            "database",
            "kafka",
            "timeline-store",
            "replication",
            "runtime",
            "http-api",
            "judge",
            "sandbox",
            "testkit",
        ],
    ),
    // Measures the programs, and the sweep's look from inside; nothing depends on it.
    (
        "bench",
        &[
            "events", "database", "kafka", "sweep", "graph", "judge", "load", "report",
        ],
    ),
    // Drives the pure cores of the services; nothing depends on it.
    (
        "sim",
        &[
            "events",
            "pgoutput",
            "ack-tracker",
            "timeline-store",
            "relay",
            "fanout",
            "sweep",
        ],
    ),
    ("sandbox", &[]),
    (
        "testkit",
        &[
            "events",
            "database",
            "kafka",
            "timeline-store",
            "runtime",
            "http-api",
            "sandbox",
        ],
    ),
    ("xtask", &["sandbox"]),
];

/// What tests may use besides.
const DEV: Edges = &[
    // Itself, with the feature that encodes.
    ("pgoutput", &["pgoutput"]),
    ("replication", &["testkit", "pgoutput"]),
    ("database", &["testkit"]),
    ("kafka", &["testkit"]),
    ("timeline-store", &["testkit"]),
    ("http-api", &["testkit"]),
    ("write-api", &["testkit", "database"]),
    ("relay", &["testkit", "pgoutput", "sandbox"]),
    ("sweep", &["testkit", "sandbox"]),
    ("fanout", &["testkit", "sandbox"]),
    ("read-api", &["testkit"]),
    ("cli", &["testkit"]),
    ("graph", &["testkit"]),
    ("judge", &["testkit"]),
    ("load", &["testkit"]),
    // Itself, with its deliberate bugs.
    ("sim", &["sim"]),
    ("demo", &["testkit"]),
];

pub(super) fn check(sources: &[Source]) -> Vec<Finding> {
    let manifests: Vec<(&str, Manifest)> = sources
        .iter()
        .filter(|source| source.path.ends_with("/Cargo.toml"))
        .filter_map(|source| Some((source.path.as_str(), manifest::parse(&source.text)?)))
        .collect();
    let own: BTreeSet<&str> = manifests
        .iter()
        .map(|(_, manifest)| manifest.name.as_str())
        .collect();
    manifests
        .iter()
        .flat_map(|(path, manifest)| judge(path, manifest, &own))
        .collect()
}

fn judge(path: &str, manifest: &Manifest, own: &BTreeSet<&str>) -> Vec<Finding> {
    let name = manifest.name.as_str();
    if !NORMAL.iter().any(|(known, _)| *known == name) {
        return vec![Finding::fault(
            path,
            format!("package `{name}` is not in the list of crate edges"),
        )];
    }
    let fault = |kind: &str, other: &String| {
        Finding::fault(
            path,
            format!("new {kind} `{name}` -> `{other}`; see xtask/src/tidy/edges.rs"),
        )
    };
    let ours = |other: &&String| own.contains(other.as_str());
    let normal = manifest
        .normal
        .iter()
        .filter(ours)
        .filter(|other| !allowed(NORMAL, name, other));
    let dev = manifest.dev.iter().filter(ours);
    let dev = dev.filter(|other| !allowed(NORMAL, name, other) && !allowed(DEV, name, other));
    normal
        .map(|other| fault("edge", other))
        .chain(dev.map(|other| fault("edge of tests", other)))
        .collect()
}

fn allowed(edges: Edges, from: &str, to: &str) -> bool {
    edges
        .iter()
        .any(|(name, targets)| *name == from && targets.contains(&to))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, normal: &str, dev: &str) -> Source {
        let text = format!(
            "[package]\nname = \"{name}\"\n[dependencies]\n{normal}.workspace = true\n\
             [dev-dependencies]\n{dev}.workspace = true\n"
        );
        Source::new(&format!("crates/{name}/Cargo.toml"), &text)
    }

    #[test]
    fn a_new_edge_is_found() {
        let sources = [
            package("kafka", "database", "serde"),
            package("database", "events", "serde"),
        ];
        let findings = check(&sources);
        assert_eq!(findings.len(), 1);
        assert!(
            findings[0].text.contains("`kafka` -> `database`"),
            "{findings:?}"
        );
    }

    #[test]
    fn services_do_not_know_each_other_and_tests_stay_tests() {
        let sources = [
            package("relay", "testkit", "fanout"),
            package("fanout", "kafka", "testkit"),
            package("testkit", "sandbox", "serde"),
        ];
        let texts: Vec<String> = check(&sources)
            .into_iter()
            .map(|finding| finding.text)
            .collect();
        assert_eq!(texts.len(), 2, "{texts:?}");
        assert!(texts[0].contains("edge `relay` -> `testkit`"), "{texts:?}");
        assert!(
            texts[1].contains("edge of tests `relay` -> `fanout`"),
            "{texts:?}"
        );
    }

    #[test]
    fn an_unknown_package_is_found_and_foreign_crates_are_not_judged() {
        assert!(
            check(&[package("novel", "serde", "serde")])[0]
                .text
                .contains("`novel` is not in the list")
        );
        assert_eq!(check(&[package("kafka", "rdkafka", "proptest")]), []);
    }
}
