//! From what was measured to the report and the last line.

use report::Outcome;

use super::*;
use crate::run::Arrived;
use crate::scenario::Overrides;
use crate::settle::Unsettled;

const SECOND: Duration = Duration::from_secs(1);

/// A run that held.
struct Known {
    scenario: Scenario,
    summary: Summary,
    tally: Tally,
    verdict: Verdict,
    journal: Journal,
    course: Course,
}

impl Known {
    fn good() -> Self {
        let scenario = Scenario::read("celebrity-storm", &Overrides::default()).unwrap();
        let mut summary = Summary::default();
        summary.posts[Audience::Under100.index()] = 10;
        let mut tally = Tally::new(SECOND);
        for second in 0..10 {
            let due = SECOND * second;
            tally.begun(due, Duration::from_millis(1));
            tally.answered(Request::Post, due, Duration::from_millis(100));
            let times = tally.class(Audience::Under100).unwrap();
            times.first.record(due, Duration::from_millis(200));
            times.last.record(due, Duration::from_millis(300));
        }
        Self {
            scenario,
            summary,
            tally,
            verdict: Verdict {
                posts: 10,
                rows_expected: 50,
                rows_found: 50,
                rows_stored: 52,
                ..Verdict::default()
            },
            journal: Journal::new(),
            course: Course {
                arrived: Arrived::All,
                sent: 11 * SECOND,
                settled: 14 * SECOND,
                unsettled: Unsettled::default(),
                cpu: Some(SECOND),
                after: Seen {
                    rows_written: Some(160.0),
                    ..Seen::default()
                },
            },
        }
    }

    fn facts(&self) -> Facts<'_> {
        Facts {
            scenario: &self.scenario,
            summary: &self.summary,
            tally: &self.tally,
            verdict: &self.verdict,
            journal: &self.journal,
            journal_notes: Vec::new(),
            course: &self.course,
            before: Seen {
                rows_written: Some(100.0),
                ..Seen::default()
            },
            versions: Vec::new(),
            machine: Machine::default(),
            started_ms: 0,
            command: String::new(),
            lag: Vec::new(),
            uncertainty: None,
            stores_judged: true,
        }
    }
}

#[test]
fn a_run_that_held_says_so() {
    let known = Known::good();
    let run = run(&known.facts());
    assert_eq!(run.outcome(), Outcome::Held, "{:?}", run.thresholds);
    assert_eq!(run.judged.as_ref().unwrap().rewritten, Some(8));
    let phases: Vec<(&str, f64)> = (run.phases.iter())
        .map(|phase| (phase.name.as_str(), phase.to_s))
        .collect();
    // The course ended at 11 s, a second after the first celebrity.
    let expected = [
        ("warm-up", 5.0),
        ("load", 10.0),
        ("storm", 11.0),
        ("drain", 14.0),
    ];
    assert_eq!(phases, expected);
    let line = last_line(&known.facts());
    let words: Vec<&str> = line.split(' ').collect();
    assert_eq!(words[..3], ["LOAD", "scenario=celebrity-storm", "posts=10"]);
    assert!(line.ends_with("lost=0 duplicated=0"), "{line}");
    // Histograms keep three digits.
    assert!(line.contains("p99_ms=100."), "{line}");
    assert!(line.contains("last_follower_p99_ms=300."), "{line}");
}

#[test]
fn a_class_without_posts_has_no_threshold_and_one_without_deliveries_fails() {
    let mut known = Known::good();
    let names = |known: &Known| {
        let run = run(&known.facts());
        let names = run.thresholds.iter().map(|t| (t.name.clone(), t.pass()));
        names.collect::<Vec<_>>()
    };
    let large = "last follower, p99, < 100 k followers".to_owned();
    assert!(names(&known).iter().all(|(name, _)| *name != large));
    known.summary.posts[Audience::Under100k.index()] = 1;
    assert!(names(&known).contains(&(large, false)));
}

#[test]
fn a_generator_that_was_late_proves_nothing() {
    let mut known = Known::good();
    known.tally.begun(5 * SECOND, Duration::from_millis(50));
    let late = run(&known.facts());
    assert_eq!(late.outcome(), Outcome::Invalid);
    assert!(late.invalid[0].contains("late"), "{:?}", late.invalid);
    let mut known = Known::good();
    known.tally.shed(SECOND);
    assert_eq!(run(&known.facts()).outcome(), Outcome::Invalid);
    let mut known = Known::good();
    known.course.arrived = Arrived::Stopped;
    assert_eq!(run(&known.facts()).outcome(), Outcome::Invalid);
}

#[test]
fn what_was_missed_or_broken_decides() {
    let mut known = Known::good();
    known.tally.answered(Request::Post, 5 * SECOND, 2 * SECOND);
    assert_eq!(run(&known.facts()).outcome(), Outcome::Missed);
    let mut known = Known::good();
    known.course.unsettled.posts = 1;
    assert_eq!(run(&known.facts()).outcome(), Outcome::Missed);
    let mut known = Known::good();
    known.tally.gave_up("a post", SECOND, "no answer");
    assert_eq!(run(&known.facts()).outcome(), Outcome::Missed);
    let mut known = Known::good();
    known.verdict.lost.count = 1;
    known.tally.shed(SECOND);
    let broken = run(&known.facts());
    assert_eq!(broken.outcome(), Outcome::Broken);
    assert!(last_line(&known.facts()).contains("lost=1"));
}

#[test]
fn workers_that_were_started_anew_count_no_rewritten_rows() {
    let mut known = Known::good();
    known.course.after.rows_written = Some(10.0);
    assert_eq!(run(&known.facts()).judged.unwrap().rewritten, None);
    known.course.after.rows_written = None;
    assert_eq!(run(&known.facts()).judged.unwrap().rewritten, None);
}
