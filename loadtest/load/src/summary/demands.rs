//! What was demanded of a run, and why it may prove nothing.

use std::collections::BTreeMap;
use std::time::Duration;

use report::{Target, Threshold};

use super::{Facts, merged, millis};
use crate::audience::Audience;
use crate::run::Arrived;
use crate::tally::Request;

/// Why the run proves nothing.
pub(super) fn invalid(facts: &Facts<'_>) -> Vec<String> {
    let (tally, limit) = (facts.tally, facts.scenario.thresholds.scheduler_lag_p99);
    let mut reasons = Vec::new();
    if let Some(late) = tally.lag.quantile(0.99).filter(|late| *late > limit) {
        reasons.push(format!(
            "the generator began its operations {:.1} ms late (p99); at most {:.1} ms are allowed, since what it did not send in time was not offered",
            millis(late),
            millis(limit)
        ));
    }
    if tally.counts.shed > 0 {
        reasons.push(format!(
            "{} operations were due and not sent, because {} were under way already (limits.in_flight)",
            tally.counts.shed, facts.scenario.limits.in_flight
        ));
    }
    if facts.course.arrived == Arrived::Stopped {
        reasons.push("somebody stopped it before the end of the plan".to_owned());
    }
    if tally.counts.posts == 0 && facts.summary.all_posts() > 0 {
        reasons.push("no post was acknowledged".to_owned());
    }
    reasons
}

/// What was demanded, beside what was measured. A demand on what the plan does not hold is none.
pub(super) fn thresholds(facts: &Facts<'_>) -> Vec<Threshold> {
    let mut all: Vec<Threshold> = times(facts)
        .into_iter()
        .filter_map(|(name, limit, measured)| Some(at_most(name, limit?, measured)))
        .collect();
    let unsettled = facts.course.unsettled;
    for (name, limit, measured) in [
        (
            "operations without a good answer",
            facts.scenario.thresholds.failed,
            facts.tally.counts.failed,
        ),
        (
            "posts and events not delivered in time",
            0,
            unsettled.posts as u64 + unsettled.events.unsigned_abs(),
        ),
    ] {
        all.push(Threshold {
            name: name.to_owned(),
            unit: String::new(),
            target: Target::AtMost(limit as f64),
            measured: Some(measured as f64),
        });
    }
    all
}

/// Name, limit if there is one, and what was measured.
type Wanted = (String, Option<Duration>, Option<Duration>);

fn at_most(name: String, limit: Duration, measured: Option<Duration>) -> Threshold {
    Threshold {
        name,
        unit: "ms".to_owned(),
        target: Target::AtMost(millis(limit)),
        measured: measured.map(millis),
    }
}

fn times(facts: &Facts<'_>) -> Vec<Wanted> {
    let (wanted, tally, plan) = (&facts.scenario.thresholds, facts.tally, facts.summary);
    let p99 = |request| {
        tally
            .request(request)
            .and_then(|times| times.quantile(0.99))
    };
    let [ordinary, ..] = plan.readers;
    let seen = merged(tally.classes.iter().map(|class| &class.seen));
    let mut all = vec![
        (
            "post acknowledged, p99".to_owned(),
            wanted.ack_p99.filter(|_| plan.all_posts() > 0),
            p99(Request::Post),
        ),
        (
            "first page, p99".to_owned(),
            wanted.page_p99.filter(|_| ordinary > 0),
            p99(Request::FirstPage),
        ),
        (
            "seen by a polling follower, p99".to_owned(),
            wanted.visible_p99.filter(|_| plan.watchers > 0),
            seen.quantile(0.99),
        ),
    ];
    let classes = Audience::ALL.iter().zip(&tally.classes).zip(&plan.posts);
    for ((class, times), _) in classes.filter(|(_, posts)| **posts > 0) {
        let limit = |limits: &BTreeMap<usize, Duration>| limits.get(&class.index()).copied();
        for (which, limit, recorded) in [
            ("first", limit(&wanted.first_follower_p99), &times.first),
            ("last", limit(&wanted.last_follower_p99), &times.last),
        ] {
            all.push((
                format!("{which} follower, p99, {}", class.title()),
                limit,
                recorded.quantile(0.99),
            ));
        }
    }
    all
}
