//! Many outcomes as a table, a line for each scenario, and the total.

use std::fmt;

use crate::{
    results::{Outcome, Standing},
    scenario,
};

const HEAD: [&str; 7] = [
    "scenario",
    "runs",
    "hit",
    "failed",
    "worst recovery",
    "longest",
    "redelivered",
];

/// Outcomes, added up.
#[derive(Clone, Debug)]
pub struct Summary {
    rows: Vec<(String, Sum)>,
    total: Sum,
}

/// The sum of some outcomes.
#[derive(Clone, Debug, Default, PartialEq)]
struct Sum {
    runs: u64,
    hit: u64,
    failed: u64,
    known_failing: u64,
    unexpected: u64,
    lost: u64,
    duplicated: u64,
    resurrected: u64,
    foreign: u64,
    redelivered: i64,
    worst_recovery_s: Option<f64>,
    longest_s: f64,
}

impl Summary {
    /// Adds outcomes up, scenarios in the order in which they are listed, others after them.
    pub fn of(outcomes: &[Outcome]) -> Self {
        let mut names: Vec<&str> = scenario::all().map(|scenario| scenario.name).collect();
        for outcome in outcomes {
            if !names.contains(&outcome.scenario.as_str()) {
                names.push(&outcome.scenario);
            }
        }
        let mut summary = Self {
            rows: Vec::new(),
            total: Sum::default(),
        };
        for name in names {
            let mut sum = Sum::default();
            for outcome in outcomes.iter().filter(|outcome| outcome.scenario == name) {
                sum.add(outcome);
                summary.total.add(outcome);
            }
            if sum.runs > 0 {
                summary.rows.push((name.to_owned(), sum));
            }
        }
        summary
    }

    /// Whether nothing failed that is not known to.
    pub const fn is_good(&self) -> bool {
        self.total.failed == 0
    }
}

impl Sum {
    fn add(&mut self, outcome: &Outcome) {
        self.runs += 1;
        self.hit += u64::from(outcome.hit);
        match outcome.standing() {
            Standing::Good => {}
            Standing::Failed => self.failed += 1,
            Standing::KnownFailing => self.known_failing += 1,
            Standing::Unexpected => self.unexpected += 1,
        }
        if let Some(counts) = outcome.counts {
            self.lost += counts.lost;
            self.duplicated += counts.duplicated;
            self.resurrected += counts.resurrected;
            self.foreign += counts.foreign;
            self.redelivered += counts.redelivered;
        }
        if let Some(time) = outcome.recovery_s {
            let worst = self.worst_recovery_s.map_or(time, |worst| worst.max(time));
            self.worst_recovery_s = Some(worst);
        }
        self.longest_s = self.longest_s.max(outcome.duration_s);
    }

    fn cells(&self) -> [String; 6] {
        let failed = match (self.failed, self.known_failing, self.unexpected) {
            (0, 0, 0) => "0".to_owned(),
            (failed, 0, 0) => failed.to_string(),
            (failed, known, 0) => format!("{failed} + {known} known"),
            (failed, known, good) => format!("{failed} + {known} known, {good} GOOD"),
        };
        [
            self.runs.to_string(),
            self.hit.to_string(),
            failed,
            recovery(self.worst_recovery_s),
            format!("{:.0}", self.longest_s),
            self.redelivered.to_string(),
        ]
    }
}

/// The table, what it does not show, and the line of the total.
impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut lines = vec![HEAD.map(str::to_owned).to_vec()];
        for (name, sum) in &self.rows {
            let mut line = vec![name.clone()];
            line.extend(sum.cells());
            lines.push(line);
        }
        let widths: Vec<usize> = (0..HEAD.len())
            .map(|column| {
                let cells = lines.iter().filter_map(|line| line.get(column));
                cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
            })
            .collect();
        for line in &lines {
            let mut text = String::new();
            for (index, (cell, &width)) in line.iter().zip(&widths).enumerate() {
                if index == 0 {
                    text.push_str(&format!("{cell:<width$}"));
                } else {
                    text.push_str(&format!("  {cell:>width$}"));
                }
            }
            writeln!(f, "{text}")?;
        }
        if self.total.unexpected > 0 {
            writeln!(
                f,
                "{} RUNS OF KNOWN FAILURES WERE GOOD: see whether their marks can go",
                self.total.unexpected
            )?;
        }
        let total = &self.total;
        write!(
            f,
            "CHAOS total scenarios={} runs={} hit={} failed={} lost={} duplicated={} resurrected={} \
             foreign={} worst_recovery_s={} known_failing={}",
            self.rows.len(),
            total.runs,
            total.hit,
            total.failed,
            total.lost,
            total.duplicated,
            total.resurrected,
            total.foreign,
            recovery(total.worst_recovery_s),
            total.known_failing
        )
    }
}

fn recovery(time: Option<f64>) -> String {
    time.map_or_else(|| "none".to_owned(), |time| format!("{time:.1}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::Counts;

    fn outcome(scenario: &str, seed: u64) -> Outcome {
        Outcome {
            scenario: scenario.to_owned(),
            seed,
            hit: true,
            proof: None,
            counts: Some(Counts {
                lost: 1,
                redelivered: 10,
                ..Counts::default()
            }),
            recovery_s: Some(1.0),
            duration_s: 10.0,
            failed: Vec::new(),
            known_failing: None,
            when: 0,
            commit: String::new(),
        }
    }

    #[test]
    fn outcomes_are_added_up_by_scenario() {
        let mut second = outcome("slot-dropped", 2);
        second.recovery_s = Some(7.5);
        let mut third = outcome("no-longer-there", 1);
        third.failed.push("lost".to_owned());
        (third.counts, third.recovery_s, third.hit) = (None, None, false);
        let summary = Summary::of(&[third, outcome("slot-dropped", 1), second]);
        assert!(!summary.is_good());
        let text = summary.to_string();
        let lines: Vec<&str> = text.lines().collect();
        let words = |line: &str| line.split_whitespace().map(str::to_owned).collect();
        let expected: [Vec<String>; 2] = [
            words("slot-dropped 2 2 0 7.5 10 20"),
            words("no-longer-there 1 0 1 none 10 0"),
        ];
        let found: [Vec<String>; 2] = [words(lines[1]), words(lines[2])];
        assert_eq!(found, expected, "{text}");
        assert_eq!(
            lines[3],
            "CHAOS total scenarios=2 runs=3 hit=2 failed=1 lost=2 duplicated=0 resurrected=0 \
             foreign=0 worst_recovery_s=7.5 known_failing=0"
        );
    }

    #[test]
    fn known_failures_are_no_news_and_their_end_is() {
        let mut known = outcome("slot-dropped", 1);
        known.known_failing = Some("not built".to_owned());
        let mut failed = known.clone();
        failed.failed.push("lost".to_owned());
        let summary = Summary::of(&[failed.clone()]);
        assert!(summary.is_good());
        assert!(summary.to_string().contains("0 + 1 known"), "{summary}");
        let summary = Summary::of(&[failed, known]);
        assert!(summary.is_good());
        assert!(
            summary.to_string().contains("1 RUNS OF KNOWN FAILURES"),
            "{summary}"
        );
    }
}
