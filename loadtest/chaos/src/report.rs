//! The end of a run: what was found, whether that is good, and the one line that says so.

use std::{fmt, time::Duration};

use judge::Fault;

use crate::{Verdict, account::Census, load::Sent, scenario::Sweep};

/// What a run found.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// What shows that the fault was hit; `None` when nothing does.
    pub proof: Option<String>,
    /// What the judge says.
    pub verdict: Verdict,
    /// What the load did.
    pub sent: Sent,
    /// Events that the sweep sent again, all stages together.
    pub redelivered: i64,
    /// Records in the topics at the end.
    pub census: Census,
    /// Events that no account has, by Postgres and by the sweeps' own gauge.
    pub unaccounted: i64,
    /// From the end of the fault until everything committed up to then was delivered; `None` when
    /// that did not come about in time.
    pub recovery: Option<Duration>,
}

impl Report {
    /// What is not as it has to be, one sentence each. Empty: the run is good.
    pub fn faults(&self, sweep: Sweep) -> Vec<String> {
        let mut faults = Vec::new();
        let mut check = |good: bool, text: String| {
            if !good {
                faults.push(text);
            }
        };
        check(self.proof.is_some(), "the fault was not hit".to_owned());
        check(
            self.verdict.is_clean(),
            format!("the promise was broken: {}", self.verdict),
        );
        check(
            self.unaccounted == 0,
            format!("{} events are in no account", self.unaccounted),
        );
        check(
            self.recovery.is_some(),
            "what was committed before the fault was over was not delivered in time".to_owned(),
        );
        let (by_sweep, doubled) = (self.census.by_sweep(), self.census.doubled());
        match sweep {
            Sweep::May => {}
            Sweep::Heals => check(
                self.redelivered > 0,
                "the sweep sent nothing again".to_owned(),
            ),
            Sweep::HealsOnce => {
                check(
                    self.redelivered > 0,
                    "the sweep sent nothing again".to_owned(),
                );
                check(
                    doubled == 0,
                    format!("{doubled} records were sent that nobody missed"),
                );
            }
            Sweep::Silent => check(
                by_sweep == 0 && self.redelivered == 0,
                format!("the sweep sent {by_sweep} records of what was only late"),
            ),
        }
        faults
    }

    /// The one line of a run.
    pub fn line<'a>(&'a self, scenario: &'a str, seed: u64) -> Line<'a> {
        Line {
            report: self,
            scenario,
            seed,
        }
    }
}

/// Shows a report as one line.
#[derive(Debug)]
pub struct Line<'a> {
    report: &'a Report,
    scenario: &'a str,
    seed: u64,
}

impl fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let report = self.report;
        let count = |fault| report.verdict.judged.tally(fault).count;
        write!(
            f,
            "CHAOS scenario={} seed={} hit={} lost={} duplicated={} resurrected={} foreign={} \
             redelivered={} unaccounted={} recovery_s={}",
            self.scenario,
            self.seed,
            if report.proof.is_some() { "yes" } else { "no" },
            count(Fault::Lost),
            count(Fault::Duplicated),
            count(Fault::Resurrected),
            count(Fault::Foreign),
            report.redelivered,
            report.unaccounted,
            report.recovery.map_or_else(
                || "none".to_owned(),
                |time| format!("{:.1}", time.as_secs_f64())
            ),
        )
    }
}

#[cfg(test)]
mod tests {
    use events::EventId;

    use super::*;

    fn good() -> Report {
        let mut report = Report {
            proof: Some("seen".to_owned()),
            redelivered: 7,
            recovery: Some(Duration::from_millis(4_250)),
            ..Report::default()
        };
        report.verdict.judged.rows_expected = 100;
        report
    }

    #[test]
    fn the_line_has_every_field() {
        let report = good();
        assert_eq!(
            report.line("slot-dropped", 1).to_string(),
            "CHAOS scenario=slot-dropped seed=1 hit=yes lost=0 duplicated=0 resurrected=0 foreign=0 \
             redelivered=7 unaccounted=0 recovery_s=4.2"
        );
        assert!(report.faults(Sweep::Heals).is_empty());
    }

    #[test]
    fn each_condition_makes_a_run_fail() {
        let spoil: [fn(&mut Report); 6] = [
            |report| report.recovery = None,
            |report| report.proof = None,
            |report| report.verdict.judged.lost.count = 1,
            |report| report.verdict.dead_letters = 1,
            |report| report.unaccounted = 1,
            |report| report.redelivered = 0,
        ];
        for spoil in spoil {
            let mut report = good();
            spoil(&mut report);
            assert_eq!(report.faults(Sweep::Heals).len(), 1, "{report:?}");
        }
    }

    #[test]
    fn a_record_of_what_was_only_late_makes_a_run_fail() {
        let mut report = good();
        let _none = report.census.relay.insert(EventId(1), 1);
        let _none = report.census.sweep.insert(EventId(1), 1);
        assert_eq!(report.faults(Sweep::HealsOnce).len(), 1);
        assert_eq!(report.faults(Sweep::Silent).len(), 1);
        assert!(report.faults(Sweep::May).is_empty());
    }
}
