//! A run as plain data: what was planned, what was measured, and what was found.

use serde::{Deserialize, Serialize};

use crate::{Machine, Recorder, Series};

/// The version of `run.json` that this package writes, and the newest one that it reads.
pub const FORMAT: u32 = 1;

/// Everything that is known of one load or fault run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Run {
    /// The version of this shape, [`FORMAT`].
    pub format: u32,
    /// Which scenario was run.
    pub scenario: String,
    /// What all chance came from.
    pub seed: u64,
    /// The wall clock at the start, in milliseconds since 1970.
    pub started_unix_ms: u64,
    /// From the start to the end of the last phase, in seconds.
    pub duration_s: f64,
    /// The command line that runs it again.
    pub command: String,
    /// The plan in words: what was offered, to whom, for how long.
    pub plan: Vec<Fact>,
    /// Versions of what was tested and of what it ran on.
    pub versions: Vec<Fact>,
    /// What it was measured on.
    pub machine: Machine,
    /// Why the run proves nothing, one sentence each; empty when it does.
    pub invalid: Vec<String>,
    /// What the judge found; `None` when nobody judged, which makes the run invalid.
    pub judged: Option<Judged>,
    /// What was demanded of the run.
    pub thresholds: Vec<Threshold>,
    /// The parts of the run, in order.
    pub phases: Vec<Phase>,
    /// Moments to look at: faults, restarts, the end of a fault.
    pub marks: Vec<Mark>,
    /// Requests by second.
    pub arrivals: Arrivals,
    /// Rows that reached timelines, per second.
    pub deliveries: Vec<Series>,
    /// What waits: one series for each consumer group, one for what is unpublished.
    pub lag: Vec<Series>,
    /// Writing requests from their intended start to the answer, by kind.
    pub requests: Vec<Latency>,
    /// Time to the first and to the last follower, by audience, smallest audience first.
    pub classes: Vec<Class>,
    /// Pages that readers asked for, from their intended start to the answer.
    pub pages: Vec<Latency>,
    /// How long until a reader who polls saw a post, by audience or another name.
    pub seen: Vec<Latency>,
    /// How late the generator itself was to start what it had planned.
    pub generator_lag: Recorder,
    /// How this run measured, one sentence each; they follow the notes that hold for every run.
    pub notes: Vec<String>,
}

impl Default for Run {
    fn default() -> Self {
        Self {
            format: FORMAT,
            scenario: String::new(),
            seed: 0,
            started_unix_ms: 0,
            duration_s: 0.0,
            command: String::new(),
            plan: Vec::new(),
            versions: Vec::new(),
            machine: Machine::default(),
            invalid: Vec::new(),
            judged: None,
            thresholds: Vec::new(),
            phases: Vec::new(),
            marks: Vec::new(),
            arrivals: Arrivals::default(),
            deliveries: Vec::new(),
            lag: Vec::new(),
            requests: Vec::new(),
            classes: Vec::new(),
            pages: Vec::new(),
            seen: Vec::new(),
            generator_lag: Recorder::default(),
            notes: Vec::new(),
        }
    }
}

impl Run {
    /// The name of the scenario, or a word for having none.
    pub(crate) fn name(&self) -> &str {
        match self.scenario.as_str() {
            "" => "unnamed run",
            name => name,
        }
    }

    /// Every recorder of the run with the name of its metric, in the order of the page.
    pub(crate) fn recorders(&self) -> Vec<(String, &Recorder)> {
        let named = |what: &str, name: &str| match name {
            "" => what.to_owned(),
            name => format!("{what} {name}"),
        };
        let mut all = Vec::new();
        for request in &self.requests {
            all.push((named("request", &request.name), &request.recorded));
        }
        for class in &self.classes {
            all.push((named("first follower", &class.name), &class.first));
            all.push((named("last follower", &class.name), &class.last));
        }
        for page in &self.pages {
            all.push((named("page", &page.name), &page.recorded));
        }
        for seen in &self.seen {
            all.push((named("seen", &seen.name), &seen.recorded));
        }
        all.push(("generator lag".to_owned(), &self.generator_lag));
        all
    }
}

/// A name and its value, as they are shown.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fact {
    /// What it is.
    pub name: String,
    /// Its value, with the unit.
    pub value: String,
}

impl Fact {
    /// A fact.
    pub fn new(name: impl Into<String>, value: impl ToString) -> Self {
        Self {
            name: name.into(),
            value: value.to_string(),
        }
    }
}

/// What the judge found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Judged {
    /// Posts that were acknowledged, or whose commit was found.
    pub posts: u64,
    /// Rows that must be in the store.
    pub rows_expected: u64,
    /// How many of those are there.
    pub rows_found: u64,
    /// All rows in the store.
    pub rows_stored: u64,
    /// Readers who were followed through the API to the end of their timeline.
    pub walks: u64,
    /// Posts that they met.
    pub walked_posts: u64,
    /// What must be there and is not.
    pub lost: u64,
    /// What is there twice.
    pub duplicated: u64,
    /// What must not be there and is.
    pub foreign: u64,
    /// Deleted posts that are there.
    pub resurrected: u64,
    /// What is not in its order.
    pub disorder: u64,
    /// Requests whose outcome the generator never learned; they are judged by what was committed.
    pub indeterminate: u64,
    /// Rows that were written again, at least; `None` when nobody counted.
    pub rewritten: Option<u64>,
    /// The first of what is wrong, named.
    pub examples: Vec<String>,
}

impl Judged {
    /// The five ways in which the promise is broken, with their counts.
    pub fn counts(&self) -> [(&'static str, u64); 5] {
        [
            ("lost", self.lost),
            ("duplicated", self.duplicated),
            ("foreign", self.foreign),
            ("resurrected", self.resurrected),
            ("out of order", self.disorder),
        ]
    }
}

/// What was demanded of one number.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Threshold {
    /// Which number.
    pub name: String,
    /// The unit of target and measured.
    pub unit: String,
    /// Where it has to be.
    pub target: Target,
    /// Where it was; `None` when it was not measured.
    pub measured: Option<f64>,
}

impl Threshold {
    /// Whether the demand is met. What was not measured does not pass.
    pub fn pass(&self) -> bool {
        match (self.target, self.measured) {
            (_, None) => false,
            (Target::AtMost(limit), Some(measured)) => measured <= limit,
            (Target::AtLeast(limit), Some(measured)) => measured >= limit,
        }
    }
}

/// On which side of a limit a number has to be.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    /// Not above.
    AtMost(f64),
    /// Not below.
    AtLeast(f64),
}

/// A part of the run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Phase {
    /// The name on the plots.
    pub name: String,
    /// Of which kind it is.
    pub kind: PhaseKind,
    /// Its first moment, in seconds since the start of the run.
    pub from_s: f64,
    /// The moment it ends.
    pub to_s: f64,
}

/// Kinds of phases.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PhaseKind {
    /// Not in the totals.
    WarmUp,
    /// The usual load.
    #[default]
    Steady,
    /// More than the usual load.
    Storm,
    /// Something is broken on purpose.
    Fault,
    /// No load; what is under way gets done.
    Drain,
}

/// A moment to look at.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Mark {
    /// A few words for the plots.
    pub name: String,
    /// A sentence that explains it.
    pub detail: String,
    /// When, in seconds since the start of the run.
    pub at_s: f64,
}

/// Requests by second.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Arrivals {
    /// What the plan had start in each second.
    pub planned: Series,
    /// What was acknowledged, by the second of the answer.
    pub acknowledged: Series,
    /// What failed or had no answer in time.
    pub failed: Series,
}

/// How long one kind of request took.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// Which kind.
    pub name: String,
    /// The times.
    pub recorded: Recorder,
}

/// How long posts took to reach their followers, of authors with audiences of one size.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Class {
    /// The size in words.
    pub name: String,
    /// Time to the first follower.
    pub first: Recorder,
    /// Time to the last one.
    pub last: Recorder,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn threshold(target: Target, measured: Option<f64>) -> Threshold {
        Threshold {
            name: String::new(),
            unit: String::new(),
            target,
            measured,
        }
    }

    #[test]
    fn a_limit_itself_passes_and_what_was_not_measured_does_not() {
        assert!(threshold(Target::AtMost(5.0), Some(5.0)).pass());
        assert!(!threshold(Target::AtMost(5.0), Some(5.1)).pass());
        assert!(threshold(Target::AtLeast(5.0), Some(5.0)).pass());
        assert!(!threshold(Target::AtLeast(5.0), Some(4.9)).pass());
        assert!(!threshold(Target::AtMost(5.0), None).pass());
        assert!(!threshold(Target::AtMost(5.0), Some(f64::NAN)).pass());
    }
}
