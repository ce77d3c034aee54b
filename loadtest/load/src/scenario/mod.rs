//! Scenarios: what is sent, when, by whom, and what has to come of it. Read from TOML.
//!
//! Owns the format (docs/specs/load.md) and its checks. A fault names its key path, and all faults
//! are told together. The scenarios that come with the program are compiled in.

mod check;
mod faults;
mod raw;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use toml::{Table, Value};

use crate::arrival::Arrival;
use crate::audience::Audience;
use faults::Faults;
pub use faults::{Fault, ScenarioError};

/// The scenarios that come with the program: name and text.
pub const BUILT_IN: [(&str, &str); 8] = [
    ("steady", include_str!("../../scenarios/steady.toml")),
    ("ramp", include_str!("../../scenarios/ramp.toml")),
    ("burst", include_str!("../../scenarios/burst.toml")),
    (
        "celebrity-storm",
        include_str!("../../scenarios/celebrity-storm.toml"),
    ),
    (
        "ten-celebrities-on-one-partition",
        include_str!("../../scenarios/ten-celebrities-on-one-partition.toml"),
    ),
    (
        "thundering-readers",
        include_str!("../../scenarios/thundering-readers.toml"),
    ),
    ("churn", include_str!("../../scenarios/churn.toml")),
    (
        "hot-reader",
        include_str!("../../scenarios/hot-reader.toml"),
    ),
];

/// A scenario that can be run.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// Its name: the file's, without the ending.
    pub name: String,
    /// One sentence.
    pub about: String,
    /// Seed of graph, arrivals and choices.
    pub seed: u64,
    /// How long operations arrive, warm-up included.
    pub duration: Duration,
    /// The first part of it, which is sent and judged but not measured.
    pub warm_up: Duration,
    /// Who follows whom.
    pub graph: GraphPlan,
    /// Posts of ordinary authors.
    pub posts: Option<Posts>,
    /// Posts of celebrities at set times.
    pub celebrities: Vec<Schedule>,
    /// Readers of their own timelines.
    pub readers: Option<Reading>,
    /// One reader who follows very many.
    pub hot_reader: Option<HotReader>,
    /// Follows that change.
    pub churn: Churn,
    /// What is looked at on the way.
    pub probe: Probe,
    /// Bounds of the run.
    pub limits: Limits,
    /// What has to come of it.
    pub thresholds: Thresholds,
}

/// `[graph]`: the follow graph to make.
#[derive(Clone, Debug, PartialEq)]
pub struct GraphPlan {
    /// Ordinary accounts.
    pub users: u64,
    /// Exponent of the power law of audiences; none is the graph's own default.
    pub exponent: Option<f64>,
    /// Smallest audience of an ordinary author.
    pub smallest: Option<u64>,
    /// Largest audience of an ordinary author.
    pub largest: Option<u64>,
    /// Followers of each celebrity.
    pub celebrities: Vec<u64>,
    /// All celebrities are accounts whose records land on one partition.
    pub same_partition: bool,
}

/// `[posts]`: posts of ordinary authors.
#[derive(Clone, Debug, PartialEq)]
pub struct Posts {
    /// When they are due.
    pub arrivals: Arrival,
    /// Shares by audience class, which add up to 1. Empty: every author equally often.
    pub mix: Vec<(Audience, f64)>,
    /// Share of posts that are deleted.
    pub delete_share: f64,
    /// They are deleted at a random time up to this long after their acknowledgement.
    pub delete_within: Duration,
    /// Share of posts that are sent twice with the same key, as if the answer had been lost.
    pub repeat_share: f64,
}

/// `[[celebrities]]`: posts at set times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// Index of the first celebrity in `graph.celebrities`.
    pub first: u64,
    /// How many of them post, each once a time.
    pub authors: u64,
    /// When the first time is.
    pub at: Duration,
    /// The authors of one time are spread over this.
    pub within: Duration,
    /// How many times.
    pub times: u64,
    /// Between two times.
    pub every: Duration,
    /// Each post is deleted so long after its acknowledgement.
    pub delete_after: Option<Duration>,
    /// Thundering readers: so many of a thousand followers read …
    pub readers_per_mille: u64,
    /// … within this time after the post.
    pub readers_within: Duration,
}

/// `[readers]`: anybody who reads their own timeline.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    /// When they begin.
    pub arrivals: Arrival,
    /// Pages that each one walks, at most.
    pub pages: u32,
    /// Posts a page.
    pub page_size: u32,
}

/// `[hot_reader]`: one reader whose timeline is a hot partition.
#[derive(Clone, Debug, PartialEq)]
pub struct HotReader {
    /// Authors that they follow; followed through the API before the run.
    pub follows: u64,
    /// When they read.
    pub reading: Reading,
}

/// `[churn]`: follows that change while posts are delivered. Rates are per second.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Churn {
    /// Follows that end.
    pub unfollow_rate: f64,
    /// Follows that begin, of ordinary authors.
    pub follow_rate: f64,
    /// So long after its end a follow begins again; none: never.
    pub back_after: Option<Duration>,
    /// Share of the ends that concern celebrities.
    pub celebrity_share: f64,
}

/// `[probe]`: what is looked at on the way.
#[derive(Clone, Debug, PartialEq)]
pub struct Probe {
    /// Share of the posts for which one follower polls their timeline until they see it.
    pub share: f64,
    /// Such followers at once; a post beyond is not probed.
    pub at_once: usize,
    /// Without Postgres: delivery states asked for in a second, through the API.
    pub deliveries_per_s: u32,
}

/// `[limits]`: bounds of the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Operations under way at once. One that is due beyond is not sent, and the run is invalid.
    pub in_flight: usize,
    /// How long an operation without a good answer is repeated.
    pub patience: Duration,
    /// How long after the last operation everything has to be delivered.
    pub settle: Duration,
}

/// `[thresholds]`: what has to come of it. Lost, duplicated, foreign and resurrected are always 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thresholds {
    /// Intended start → acknowledgement of posts.
    pub ack_p99: Option<Duration>,
    /// Intended start → first page of readers.
    pub page_p99: Option<Duration>,
    /// Intended start → seen by a polling follower.
    pub visible_p99: Option<Duration>,
    /// Intended start → first row, by class.
    pub first_follower_p99: BTreeMap<usize, Duration>,
    /// Intended start → last row, by class.
    pub last_follower_p99: BTreeMap<usize, Duration>,
    /// Operations without a good answer.
    pub failed: u64,
    /// Of the generator itself: above it the run proves nothing.
    pub scheduler_lag_p99: Duration,
}

/// What the command line changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overrides {
    /// `--seed`
    pub seed: Option<u64>,
    /// `--duration`
    pub duration: Option<Duration>,
    /// `--set key.path=value`
    pub set: Vec<String>,
}

impl Scenario {
    /// Reads a built-in scenario by its name, or a file by its path.
    ///
    /// # Errors
    /// [`ScenarioError`] with every fault.
    pub fn read(name: &str, overrides: &Overrides) -> Result<Self, ScenarioError> {
        let built_in = BUILT_IN.iter().find(|(known, _)| *known == name);
        let (title, text) = match built_in {
            Some((_, text)) => (name.to_owned(), (*text).to_owned()),
            None => from_file(name)?,
        };
        Self::parse(&title, &text, overrides)
    }

    /// Reads the text of a scenario.
    ///
    /// # Errors
    /// [`ScenarioError`] with every fault.
    pub fn parse(name: &str, text: &str, overrides: &Overrides) -> Result<Self, ScenarioError> {
        let mut faults = Faults::default();
        let mut table: Table = match toml::from_str(text) {
            Ok(table) => table,
            Err(error) => {
                faults.add("file", error.to_string());
                Table::new()
            }
        };
        for words in &overrides.set {
            set(&mut table, words, &mut faults);
        }
        let mut raw = raw::read(&table, &mut faults);
        raw.seed = overrides.seed.or(raw.seed);
        if let Some(duration) = overrides.duration {
            raw.duration = Some(runtime::config::value::Span(duration));
            // A run that is shortened below its warm-up still measures something.
            raw.warm_up = raw
                .warm_up
                .map(|span| runtime::config::value::Span(span.0.min(duration / 4)));
        }
        let scenario = check::check(name, raw, &mut faults);
        faults.into_result(name, scenario)
    }
}

fn from_file(path: &str) -> Result<(String, String), ScenarioError> {
    let file = Path::new(path);
    let text = fs::read_to_string(file).map_err(|error| {
        let names: Vec<&str> = BUILT_IN.iter().map(|(name, _)| *name).collect();
        let text = format!(
            "is neither a file that can be read ({error}) nor one of {}",
            names.join(", ")
        );
        let fault = Fault {
            at: "SCENARIO".to_owned(),
            text,
        };
        ScenarioError {
            source: path.to_owned(),
            faults: vec![fault],
        }
    })?;
    let stem = file.file_stem().map(|stem| stem.to_string_lossy());
    Ok((stem.map_or_else(|| path.to_owned(), Into::into), text))
}

/// Puts `key.path=value` onto the tree; a value that is no TOML is a text.
fn set(table: &mut Table, words: &str, faults: &mut Faults) {
    let Some((path, text)) = words.split_once('=') else {
        return faults.add(
            format!("--set {words}"),
            "is not key.path=value, for example posts.arrivals.rate=200",
        );
    };
    let value = toml::from_str::<Table>(&format!("value = {text}"))
        .ok()
        .and_then(|mut parsed| parsed.remove("value"))
        .unwrap_or_else(|| Value::String(text.to_owned()));
    let mut keys: Vec<&str> = path.split('.').collect();
    let last = keys.pop().unwrap_or(path);
    let mut at = table;
    for key in keys {
        let inner = at.entry(key).or_insert_with(|| Value::Table(Table::new()));
        match inner {
            Value::Table(inner) => at = inner,
            _ => return faults.add(format!("--set {path}"), format!("{key} is not a section")),
        }
    }
    let _before = at.insert(last.to_owned(), value);
}

#[cfg(test)]
mod tests;
