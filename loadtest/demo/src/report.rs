//! The end of a run: the table, what is wrong by name, and the last line.

use std::time::Duration;

use comfy_table::Table;
use comfy_table::presets::UTF8_FULL_CONDENSED;
use judge::Verdict;

use crate::judgement::Cost;
use crate::kills::Kill;

/// What a run ended with.
#[derive(Clone, Debug)]
pub(crate) struct Report {
    pub(crate) accepted: u64,
    pub(crate) verdict: Verdict,
    pub(crate) kills: Vec<Kill>,
    /// Events that the sweep has sent again, because their entry in the ledger died with a killed
    /// process.
    pub(crate) redelivered: i64,
    pub(crate) rows_written: u64,
    pub(crate) cost: Cost,
    /// From the first post until everything was delivered.
    pub(crate) travelled: Duration,
    /// The whole run.
    pub(crate) took: Duration,
}

impl Report {
    /// Whether the promise held and the run proved it: both kills hit work in flight.
    pub(crate) fn holds(&self) -> bool {
        self.verdict.holds() && self.kills.iter().all(|kill| kill.proof.is_some())
    }

    /// Rows written more than once: a lower bound, since the last rows of a killed worker were
    /// seen by nobody.
    fn rewritten(&self) -> u64 {
        self.rows_written
            .saturating_sub(self.verdict.rows_stored + self.cost.rows_of_deleted)
    }

    /// The table, and below it each fault by name.
    pub(crate) fn table(&self) -> String {
        let verdict = &self.verdict;
        let mut table = Table::new();
        table.load_style(UTF8_FULL_CONDENSED);
        let mut line = |name: &str, value: String| {
            table.add_row([name.to_owned(), value]);
        };
        line("posts accepted", self.accepted.to_string());
        line("rows expected", verdict.rows_expected.to_string());
        line("rows found", verdict.rows_found.to_string());
        line("lost", verdict.lost.count.to_string());
        line("duplicated", verdict.duplicated.count.to_string());
        line("resurrected", verdict.resurrected.count.to_string());
        line("foreign", verdict.foreign.count.to_string());
        line("out of order", verdict.disorder.count.to_string());
        line("rewritten (at least)", self.rewritten().to_string());
        let allowed = verdict.rows_stored.saturating_sub(verdict.rows_found);
        line(
            "other rows, all of them allowed or named below",
            allowed.to_string(),
        );
        line("sent again by the sweep", self.redelivered.to_string());
        line(
            "timelines walked through the API",
            format!("{} ({} posts)", verdict.walks, verdict.walked_posts),
        );
        if let Some((median, high)) = self.cost.to_last_follower {
            line(
                "post → last follower",
                format!("p50 {median:.2} s, p99 {high:.2} s"),
            );
        }
        line(
            "first post → everything delivered",
            format!("{:.1} s", self.travelled.as_secs_f64()),
        );
        for kill in &self.kills {
            let hit = match &kill.proof {
                Some(proof) => format!(
                    "{proof}; ready after {:.1} s",
                    kill.ready_after.as_secs_f64()
                ),
                None => "never hit work in flight".to_owned(),
            };
            line(&format!("SIGKILL {}", kill.service.name()), hit);
        }
        format!("{table}\n{verdict}")
    }

    /// The last line of a run.
    pub(crate) fn last_line(&self) -> String {
        let verdict = &self.verdict;
        format!(
            "DEMO posts={} rows_expected={} rows_found={} lost={} duplicated={} resurrected={} foreign={} rewritten={} seconds={}",
            self.accepted,
            verdict.rows_expected,
            verdict.rows_found,
            verdict.lost.count,
            verdict.duplicated.count,
            verdict.resurrected.count,
            verdict.foreign.count,
            self.rewritten(),
            self.took.as_secs()
        )
    }
}

#[cfg(test)]
mod tests {
    use sandbox::Service;

    use super::*;

    fn report() -> Report {
        let verdict = Verdict {
            posts: 3,
            rows_expected: 9,
            rows_found: 9,
            rows_stored: 10,
            ..Verdict::default()
        };
        let kill = |service| Kill {
            service,
            proof: Some("hit".into()),
            ready_after: Duration::from_secs(1),
        };
        Report {
            accepted: 3,
            verdict,
            kills: vec![kill(Service::Relay), kill(Service::Fanout)],
            redelivered: 0,
            rows_written: 14,
            cost: Cost {
                rows_of_deleted: 1,
                to_last_follower: Some((0.1, 0.9)),
            },
            travelled: Duration::from_secs(2),
            took: Duration::from_millis(7_900),
        }
    }

    #[test]
    fn the_last_line_is_exact() {
        let line = "DEMO posts=3 rows_expected=9 rows_found=9 lost=0 duplicated=0 resurrected=0 foreign=0 rewritten=3 seconds=7";
        assert_eq!(report().last_line(), line);
        assert!(report().table().contains("p99 0.90 s"));
    }

    #[test]
    fn a_kill_that_hit_nothing_proves_nothing() {
        assert!(report().holds());
        let mut missed = report();
        missed.kills[0].proof = None;
        assert!(!missed.holds());
        let mut lost = report();
        lost.verdict.lost.count = 1;
        assert!(!lost.holds());
    }
}
