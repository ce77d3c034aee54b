//! From what was measured to the report, the thresholds and the last line. Pure.

mod demands;

use std::time::Duration;

use judge::{Fault, Journal, Verdict};
use report::{
    Arrivals, Class, Fact, Judged, Latency, Machine, Mark, Phase, PhaseKind, Recorder, Run, Series,
};

use crate::audience::Audience;
use crate::metrics::Seen;
use crate::plan::Summary;
use crate::play::Course;
use crate::scenario::Scenario;
use crate::tally::{Request, Tally};

/// Celebrity posts that are marked on the plots.
const MOST_MARKS: u64 = 40;

/// A storm lasts until this long after the last celebrity's post.
const AFTER_STORM: Duration = Duration::from_secs(5);

/// Everything that is known at the end of a run.
#[derive(Debug)]
pub struct Facts<'a> {
    /// What was asked for.
    pub scenario: &'a Scenario,
    /// What it amounted to.
    pub summary: &'a Summary,
    /// What was counted and timed.
    pub tally: &'a Tally,
    /// What the judge found.
    pub verdict: &'a Verdict,
    /// What was promised.
    pub journal: &'a Journal,
    /// What the journal's reader had to say.
    pub journal_notes: Vec<String>,
    /// How it went.
    pub course: &'a Course,
    /// The services' own counts at the start.
    pub before: Seen,
    /// What was loaded, and by what.
    pub versions: Vec<Fact>,
    /// The machine before the run.
    pub machine: Machine,
    /// The wall clock at the start, milliseconds since 1970.
    pub started_ms: u64,
    /// The call that runs it again.
    pub command: String,
    /// What waited, over time.
    pub lag: Vec<Series>,
    /// How wrong the distance to Postgres's clock may be.
    pub uncertainty: Option<Duration>,
    /// Every row was compared, not only walks.
    pub stores_judged: bool,
}

/// The report.
pub fn run(facts: &Facts<'_>) -> Run {
    let (scenario, tally, course) = (facts.scenario, facts.tally, facts.course);
    let latency = |request: Request| Latency {
        name: request.title().to_owned(),
        recorded: tally.request(request).cloned().unwrap_or_default(),
    };
    let used = |latency: &Latency| !latency.recorded.total().is_empty();
    let (reads, writes): (Vec<Request>, Vec<Request>) = Request::ALL
        .into_iter()
        .partition(|request| request.reads());
    Run {
        scenario: scenario.name.clone(),
        seed: scenario.seed,
        started_unix_ms: facts.started_ms,
        duration_s: course.settled.as_secs_f64(),
        command: facts.command.clone(),
        plan: plan_words(facts),
        machine: facts.machine.clone(),
        invalid: demands::invalid(facts),
        judged: Some(judged(facts)),
        thresholds: demands::thresholds(facts),
        phases: phases(facts),
        marks: marks(scenario),
        arrivals: Arrivals {
            planned: tally.planned.series("planned", "1/s", course.settled),
            acknowledged: tally
                .acknowledged
                .series("acknowledged", "1/s", course.settled),
            failed: tally.failed.series("failed", "1/s", course.settled),
        },
        deliveries: vec![tally.rows.series("rows", "rows/s", course.settled)],
        lag: facts.lag.clone(),
        requests: writes.into_iter().map(latency).filter(used).collect(),
        classes: classes(tally),
        pages: reads.into_iter().map(latency).filter(used).collect(),
        seen: seen(tally).into_iter().filter(used).collect(),
        versions: facts.versions.clone(),
        generator_lag: tally.lag.clone(),
        notes: notes(facts),
        ..Run::default()
    }
}

/// The last line of a run.
pub fn last_line(facts: &Facts<'_>) -> String {
    let post = facts.tally.request(Request::Post);
    let quantile = |q| post.and_then(|times| times.quantile(q));
    format!(
        "LOAD scenario={} posts={} p50_ms={} p99_ms={} last_follower_p99_ms={} lost={} duplicated={}",
        facts.scenario.name,
        facts.tally.counts.posts,
        shown(quantile(0.5)),
        shown(quantile(0.99)),
        shown(last_follower(facts.tally).quantile(0.99)),
        facts.verdict.lost.count,
        facts.verdict.duplicated.count
    )
}

fn shown(time: Option<Duration>) -> String {
    time.map_or_else(|| "-".to_owned(), |time| format!("{:.1}", millis(time)))
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// The last follower of posts of all classes.
fn last_follower(tally: &Tally) -> Recorder {
    merged(tally.classes.iter().map(|class| &class.last))
}

fn merged<'a>(recorders: impl Iterator<Item = &'a Recorder>) -> Recorder {
    let mut all = Recorder::new();
    for recorder in recorders {
        all.merge(recorder);
    }
    all
}

fn seen(tally: &Tally) -> Vec<Latency> {
    let classes = Audience::ALL.iter().zip(&tally.classes);
    let latency = classes.map(|(class, times)| Latency {
        name: class.title().to_owned(),
        recorded: times.seen.clone(),
    });
    latency.collect()
}

fn classes(tally: &Tally) -> Vec<Class> {
    let classes = Audience::ALL.iter().zip(&tally.classes);
    let used = classes.filter(|(_, times)| !times.last.total().is_empty());
    let class = used.map(|(class, times)| Class {
        name: class.title().to_owned(),
        first: times.first.clone(),
        last: times.last.clone(),
    });
    class.collect()
}

fn judged(facts: &Facts<'_>) -> Judged {
    let verdict = facts.verdict;
    let posts = facts.journal.posts().iter();
    let examples = Fault::ALL.into_iter().flat_map(|fault| {
        let examples = &verdict.tally(fault).examples;
        examples
            .iter()
            .map(move |example| format!("{}: {example}", fault.word()))
    });
    Judged {
        posts: verdict.posts,
        rows_expected: verdict.rows_expected,
        rows_found: verdict.rows_found,
        rows_stored: verdict.rows_stored,
        walks: verdict.walks,
        walked_posts: verdict.walked_posts,
        lost: verdict.lost.count,
        duplicated: verdict.duplicated.count,
        foreign: verdict.foreign.count,
        resurrected: verdict.resurrected.count,
        disorder: verdict.disorder.count,
        indeterminate: posts.filter(|post| post.acked.is_none()).count() as u64,
        rewritten: rewritten(facts),
        examples: examples.collect(),
    }
}

/// Rows written more than once, at least: what the workers counted, less the rows that are there
/// and those that deleted posts may have had.
fn rewritten(facts: &Facts<'_>) -> Option<u64> {
    let written = facts.course.after.rows_written? - facts.before.rows_written.unwrap_or(0.0);
    let deleted = facts.journal.posts().iter();
    let deleted: u64 = deleted
        .filter(|post| post.delete_sent.is_some())
        .map(|post| facts.journal.largest_audience(post.author) as u64)
        .sum();
    // A counter is a whole number below 2^53. A worker that was started anew counts from zero.
    (facts.stores_judged && written >= 0.0)
        .then(|| (written as u64).saturating_sub(facts.verdict.rows_stored + deleted))
}

fn phases(facts: &Facts<'_>) -> Vec<Phase> {
    let (scenario, course) = (facts.scenario, facts.course);
    let end = scenario.duration.min(course.sent);
    let warm = scenario.warm_up.min(end);
    let (from, to) = storm(scenario).map_or((end, end), |(from, to)| {
        (from.clamp(warm, end), to.clamp(warm, end))
    });
    let parts = [
        ("warm-up", PhaseKind::WarmUp, Duration::ZERO, warm),
        ("load", PhaseKind::Steady, warm, from),
        ("storm", PhaseKind::Storm, from, to),
        ("load", PhaseKind::Steady, to, end),
        ("drain", PhaseKind::Drain, end, course.settled),
    ];
    let phase = |(name, kind, from, to): (&str, PhaseKind, Duration, Duration)| Phase {
        name: name.to_owned(),
        kind,
        from_s: from.as_secs_f64(),
        to_s: to.as_secs_f64(),
    };
    parts
        .into_iter()
        .filter(|(_, _, from, to)| from < to)
        .map(phase)
        .collect()
}

/// From the first celebrity's post to a while after the last one.
fn storm(scenario: &Scenario) -> Option<(Duration, Duration)> {
    let schedules = scenario.celebrities.iter();
    let from = schedules.clone().map(|schedule| schedule.at).min()?;
    let last = schedules.map(|schedule| {
        let repeats = u32::try_from(schedule.times.saturating_sub(1)).unwrap_or(u32::MAX);
        let last = schedule.at + schedule.every.saturating_mul(repeats) + schedule.within;
        last.min(scenario.duration)
    });
    Some((from, last.max()? + AFTER_STORM))
}

fn marks(scenario: &Scenario) -> Vec<Mark> {
    let mut marks = Vec::new();
    for schedule in &scenario.celebrities {
        for time in 0..schedule.times.min(MOST_MARKS) {
            let at = schedule.at.as_secs_f64() + schedule.every.as_secs_f64() * time as f64;
            if at < scenario.duration.as_secs_f64() {
                marks.push(Mark {
                    name: "celebrity".to_owned(),
                    detail: format!("{} celebrities post", schedule.authors),
                    at_s: at,
                });
            }
        }
    }
    marks
}

fn plan_words(facts: &Facts<'_>) -> Vec<Fact> {
    let (scenario, summary) = (facts.scenario, facts.summary);
    let [ordinary, thundering, hot] = summary.readers;
    let cpu = facts.course.cpu.map_or_else(
        || "not known".to_owned(),
        |cpu| {
            let share = cpu.as_secs_f64() / facts.course.sent.as_secs_f64().max(0.001);
            format!("{:.0} % of one core", share * 100.0)
        },
    );
    vec![
        Fact::new("about", &scenario.about),
        Fact::new(
            "duration",
            format!("{:?}, warm-up {:?}", scenario.duration, scenario.warm_up),
        ),
        Fact::new(
            "accounts",
            format!(
                "{}, celebrities {:?}",
                scenario.graph.users, scenario.graph.celebrities
            ),
        ),
        Fact::new(
            "posts",
            format!(
                "{}, of them {} deleted and {} sent twice",
                summary.all_posts(),
                summary.deletes,
                summary.repeats
            ),
        ),
        Fact::new("rows", summary.all_rows()),
        Fact::new(
            "readers",
            format!("{ordinary}, thundering {thundering}, hot {hot}"),
        ),
        Fact::new("changed follows", summary.edges),
        Fact::new("peak", format!("{} operations in one second", summary.peak)),
        Fact::new("generator", cpu),
    ]
}

fn notes(facts: &Facts<'_>) -> Vec<String> {
    let counts = facts.tally.counts;
    let mut notes = vec![format!(
        "Times begin at the intended start of an operation, whenever it was sent. {} attempts were made again.",
        counts.retries
    )];
    if let Some(uncertainty) = facts.uncertainty {
        notes.push(format!(
            "Rows are dated by Postgres's clock; its distance to ours is known to ±{:.1} ms.",
            millis(uncertainty)
        ));
    }
    if !facts.stores_judged {
        notes.push("Rows were not compared: the judge saw the API alone.".to_owned());
    }
    if counts.unseen + counts.unwatched > 0 {
        notes.push(format!(
            "{} polling followers gave up, {} posts were not polled for because enough polled already.",
            counts.unseen, counts.unwatched
        ));
    }
    notes.extend(facts.journal_notes.iter().cloned());
    let failed = |(told, count): &(String, u64)| format!("Failed {count} times: {told}");
    notes.extend(facts.tally.told.iter().map(failed));
    notes
}

#[cfg(test)]
mod tests;
