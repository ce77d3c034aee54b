//! The end of a run: what was found, and whether that is good.

use std::time::Duration;

use crate::{Verdict, census::Census, load::Sent, scenario::Sweep};

/// Records that a fault puts into the topics of events past the outbox.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Planted {
    /// Those without an envelope.
    pub strangers: u64,
    /// Those of events that never were.
    pub ghosts: i64,
}

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
    /// Records of events that the outbox has no row of.
    pub ghosts: i64,
    /// What the fault put into the topics itself.
    pub planted: Planted,
    /// What is wrong beyond that, a sentence each.
    pub complaints: Vec<String>,
    /// Events that no account has, by Postgres and by the sweeps' own gauge.
    pub unaccounted: i64,
    /// From the end of the fault until everything committed up to then was delivered; `None` when
    /// that did not come about in time.
    pub recovery: Option<Duration>,
}

impl Report {
    /// What is not as it has to be, one sentence each. Empty: the run is good.
    pub fn faults(&self, sweep: Sweep) -> Vec<String> {
        let mut faults = self.complaints.clone();
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
        check(
            self.ghosts == self.planted.ghosts && self.census.strangers == self.planted.strangers,
            format!(
                "{} records of events that were never committed and {} that are no events, where \
                 the fault made {} and {}",
                self.ghosts, self.census.strangers, self.planted.ghosts, self.planted.strangers
            ),
        );
        check(
            self.census.disorder == 0,
            format!(
                "{} records are not in the order of their author's commits (D-5)",
                self.census.disorder
            ),
        );
        faults.extend(self.fault_of_the_sweep(sweep));
        faults
    }

    /// What the sweep did and may not do, or did not and has to.
    fn fault_of_the_sweep(&self, sweep: Sweep) -> Option<String> {
        let (by_sweep, doubled) = (self.census.by_sweep(), self.census.doubled());
        let healed = self.redelivered > 0;
        match sweep {
            Sweep::Heals | Sweep::HealsOnce if !healed => {
                Some("the sweep sent nothing again".to_owned())
            }
            Sweep::Dispatches if by_sweep == 0 => Some("no dispatcher sent anything".to_owned()),
            Sweep::Dispatches if healed => Some(format!(
                "{} re-deliveries are noted of what was sent for the first time",
                self.redelivered
            )),
            Sweep::HealsOnce | Sweep::Dispatches if doubled > 0 => {
                Some(format!("{doubled} records were sent that nobody missed"))
            }
            Sweep::Silent if by_sweep > 0 || healed => Some(format!(
                "the sweep sent {by_sweep} records of what was only late"
            )),
            Sweep::Counts if i64::try_from(by_sweep) != Ok(self.redelivered) => Some(format!(
                "the sweep counted {} re-deliveries and sent {by_sweep} records",
                self.redelivered
            )),
            Sweep::Heals
            | Sweep::HealsOnce
            | Sweep::Dispatches
            | Sweep::Silent
            | Sweep::Counts
            | Sweep::May => None,
        }
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
    fn a_good_run_has_no_faults() {
        assert!(good().faults(Sweep::Heals).is_empty());
    }

    #[test]
    fn each_condition_makes_a_run_fail() {
        let spoil: [fn(&mut Report); 10] = [
            |report| report.complaints.push("slow".to_owned()),
            |report| report.ghosts = 1,
            |report| report.census.strangers = 1,
            |report| report.census.disorder = 1,
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
        assert_eq!(report.faults(Sweep::Counts).len(), 1);
        report.redelivered = 1;
        assert!(report.faults(Sweep::Counts).is_empty());
        assert!(report.faults(Sweep::May).is_empty());
    }

    #[test]
    fn a_dispatcher_sends_each_event_once_and_none_again() {
        let mut report = Report {
            redelivered: 0,
            ..good()
        };
        assert_eq!(
            report.faults(Sweep::Dispatches).len(),
            1,
            "nothing was sent"
        );
        let _none = report.census.sweep.insert(EventId(1), 1);
        assert!(report.faults(Sweep::Dispatches).is_empty());
        let _once = report.census.sweep.insert(EventId(1), 2);
        assert_eq!(report.faults(Sweep::Dispatches).len(), 1, "sent twice");
        let _twice = report.census.sweep.insert(EventId(1), 1);
        report.redelivered = 1;
        assert_eq!(
            report.faults(Sweep::Dispatches).len(),
            1,
            "noted as sent again"
        );
    }
}
