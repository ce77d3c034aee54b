//! The outcome of a run as one line of text and as one line of JSON, and the file that keeps them.
//!
//! Every run appends a line, so that the runs of several calls add up; whoever reads the file takes
//! the latest line of each scenario and seed ([`latest`]).

use std::{
    collections::BTreeMap,
    fmt,
    fs::{self, OpenOptions},
    io::{ErrorKind, Write as _},
    path::Path,
    time::Duration,
};

use anyhow::Context;
use judge::Fault;
use serde::{Deserialize, Serialize};

use crate::{Scenario, report::Report};

/// What became of one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Outcome {
    /// The scenario.
    pub scenario: String,
    /// Its seed.
    pub seed: u64,
    /// Whether the fault was hit.
    pub hit: bool,
    /// What shows that.
    pub proof: Option<String>,
    /// What was counted; nothing when the run did not come to its end.
    pub counts: Option<Counts>,
    /// Seconds from the end of the fault until everything committed up to then was delivered.
    pub recovery_s: Option<f64>,
    /// Seconds of the whole run, its preparations included.
    pub duration_s: f64,
    /// What was not as it has to be, a sentence each.
    pub failed: Vec<String>,
    /// Why the scenario is known to fail.
    pub known_failing: Option<String>,
    /// When it ended, seconds since 1970.
    pub when: u64,
    /// The commit, with a `+` when files were changed.
    pub commit: String,
}

/// What a run that came to its end has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Counts {
    /// Rows and posts that must be there and are not.
    pub lost: u64,
    /// Posts that are there twice.
    pub duplicated: u64,
    /// Deleted posts that are there.
    pub resurrected: u64,
    /// What must not be there and is.
    pub foreign: u64,
    /// Events that the sweep sent again.
    pub redelivered: i64,
    /// Events that no account has.
    pub unaccounted: i64,
}

/// How an outcome is to be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// The fault was hit and the promise held.
    Good,
    /// Something is wrong.
    Failed,
    /// It failed as it is known to.
    KnownFailing,
    /// It is known to fail, and did not.
    Unexpected,
}

impl Standing {
    /// The word in a run's line.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Failed => "failed",
            Self::KnownFailing => "known-failing",
            Self::Unexpected => "unexpectedly-good",
        }
    }
}

impl Outcome {
    /// The outcome of a run that took so long. `when` is in seconds since 1970.
    pub fn new(
        scenario: &Scenario,
        seed: u64,
        report: &anyhow::Result<Report>,
        took: Duration,
        when: u64,
        commit: &str,
    ) -> Self {
        let (failed, found) = match report {
            Ok(report) => (report.faults(scenario.sweep), Some(report)),
            Err(error) => (vec![format!("{error:#}")], None),
        };
        let proof = found.and_then(|report| report.proof.clone());
        Self {
            scenario: scenario.name.to_owned(),
            seed,
            hit: proof.is_some(),
            proof,
            counts: found.map(Counts::of),
            recovery_s: found.and_then(|report| Some(tenths(report.recovery?))),
            duration_s: tenths(took),
            failed,
            known_failing: scenario.stands.known_failing().map(str::to_owned),
            when,
            commit: commit.to_owned(),
        }
    }

    /// How it is to be taken.
    pub const fn standing(&self) -> Standing {
        match (self.failed.is_empty(), self.known_failing.is_some()) {
            (true, false) => Standing::Good,
            (true, true) => Standing::Unexpected,
            (false, true) => Standing::KnownFailing,
            (false, false) => Standing::Failed,
        }
    }
}

impl Counts {
    fn of(report: &Report) -> Self {
        let count = |fault| report.verdict.judged.tally(fault).count;
        Self {
            lost: count(Fault::Lost),
            duplicated: count(Fault::Duplicated),
            resurrected: count(Fault::Resurrected),
            foreign: count(Fault::Foreign),
            redelivered: report.redelivered,
            unaccounted: report.unaccounted,
        }
    }
}

/// The one line of a run. What was not counted is `none`.
impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hit = if self.hit { "yes" } else { "no" };
        write!(
            f,
            "CHAOS scenario={} seed={} hit={hit}",
            self.scenario, self.seed
        )?;
        let names = [
            "lost",
            "duplicated",
            "resurrected",
            "foreign",
            "redelivered",
            "unaccounted",
        ];
        let counts = self.counts.map(|counts| {
            [
                counts.lost.to_string(),
                counts.duplicated.to_string(),
                counts.resurrected.to_string(),
                counts.foreign.to_string(),
                counts.redelivered.to_string(),
                counts.unaccounted.to_string(),
            ]
        });
        for (index, name) in names.into_iter().enumerate() {
            let count = counts.as_ref().and_then(|counts| counts.get(index));
            write!(f, " {name}={}", count.map_or("none", String::as_str))?;
        }
        let recovery = self
            .recovery_s
            .map_or_else(|| "none".to_owned(), |time| format!("{time:.1}"));
        write!(
            f,
            " recovery_s={recovery} result={}",
            self.standing().as_str()
        )
    }
}

/// Appends an outcome to the file, which is made when there is none.
///
/// # Errors
/// When it cannot be written.
pub fn append(path: &Path, outcome: &Outcome) -> anyhow::Result<()> {
    let write = || -> anyhow::Result<()> {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        let mut line = serde_json::to_string(outcome)?;
        line.push('\n');
        let mut file = OpenOptions::new().create(true).append(true).open(path)?;
        Ok(file.write_all(line.as_bytes())?)
    };
    write().with_context(|| format!("append to {}", path.display()))
}

/// Every outcome in the file, the oldest first; none when there is no file.
///
/// # Errors
/// When it cannot be read, or a line of it is no outcome; the error names the line.
pub fn read(path: &Path) -> anyhow::Result<Vec<Outcome>> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error).with_context(|| format!("read {}", path.display())),
    };
    let mut outcomes = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let outcome = serde_json::from_str(line).with_context(|| {
            let number = index + 1;
            format!(
                "{}:{number} is no outcome of a run; remove the line",
                path.display()
            )
        });
        outcomes.push(outcome?);
    }
    Ok(outcomes)
}

/// The last outcome of each scenario and seed.
pub fn latest(outcomes: Vec<Outcome>) -> Vec<Outcome> {
    let mut last = BTreeMap::new();
    for outcome in outcomes {
        let _older = last.insert((outcome.scenario.clone(), outcome.seed), outcome);
    }
    last.into_values().collect()
}

/// Rounded: what is measured here is not known to the millisecond.
fn tenths(time: Duration) -> f64 {
    (time.as_secs_f64() * 10.0).round() / 10.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(scenario: &str, seed: u64, failed: &[&str]) -> Outcome {
        Outcome {
            scenario: scenario.to_owned(),
            seed,
            hit: true,
            proof: Some("seen".to_owned()),
            counts: Some(Counts {
                redelivered: 7,
                ..Counts::default()
            }),
            recovery_s: Some(4.2),
            duration_s: 20.0,
            failed: failed.iter().map(|&text| text.to_owned()).collect(),
            known_failing: None,
            when: 1,
            commit: "c".to_owned(),
        }
    }

    #[test]
    fn the_line_has_every_field() {
        assert_eq!(
            outcome("slot-dropped", 1, &[]).to_string(),
            "CHAOS scenario=slot-dropped seed=1 hit=yes lost=0 duplicated=0 resurrected=0 foreign=0 \
             redelivered=7 unaccounted=0 recovery_s=4.2 result=good"
        );
        let mut ended_early = outcome("slot-dropped", 1, &["not over"]);
        (ended_early.counts, ended_early.recovery_s) = (None, None);
        assert!(
            ended_early.to_string().ends_with(
                "foreign=none redelivered=none unaccounted=none recovery_s=none result=failed"
            ),
            "{ended_early}"
        );
    }

    #[test]
    fn a_known_failure_and_its_end_are_told_apart() {
        let mut known = outcome("a", 1, &["lost"]);
        known.known_failing = Some("not built".to_owned());
        assert_eq!(known.standing(), Standing::KnownFailing);
        known.failed.clear();
        assert_eq!(known.standing(), Standing::Unexpected);
        assert_eq!(outcome("a", 1, &["lost"]).standing(), Standing::Failed);
    }

    #[test]
    fn lines_add_up_and_the_last_one_of_a_seed_counts() -> anyhow::Result<()> {
        let path = std::env::temp_dir().join(format!("chaos-{}/results", std::process::id()));
        assert_eq!(read(&path)?, []);
        let runs = [
            outcome("b", 1, &["lost"]),
            outcome("a", 2, &[]),
            outcome("b", 1, &[]),
        ];
        for run in &runs {
            append(&path, run)?;
        }
        assert_eq!(read(&path)?, runs);
        let [_, a, b] = runs;
        assert_eq!(latest(read(&path)?), [a, b]);
        fs::write(&path, "{}\n")?;
        let error = read(&path).expect_err("no outcome").to_string();
        assert!(error.contains("results:1"), "{error}");
        fs::remove_dir_all(path.parent().expect("it has a folder"))?;
        Ok(())
    }
}
