//! The head of the page: the verdict before anything else, what was demanded, and what was run.

use super::{classed_table, section};
use crate::{
    Fact, Judged, Machine, Outcome, Run, Target, Threshold, markup::Markup, moment, quantity,
    series::mean,
};

pub(super) fn write(page: &mut Markup, run: &Run) {
    page.within("header", &[], |page| {
        let started = moment::utc(run.started_unix_ms);
        page.leaf("h1", &[], run.name());
        let under = format!(
            "seed {} · {started} · {}",
            run.seed,
            quantity::length(run.duration_s)
        );
        page.leaf("p", &[("class", &"under")], &under);
    });
    verdict(page, run);
    figures(page, run);
    thresholds(page, &run.thresholds);
    setup(page, run);
}

fn verdict(page: &mut Markup, run: &Run) {
    let outcome = run.outcome();
    let (class, sign) = match outcome {
        Outcome::Held => ("held", "✓"),
        Outcome::Missed => ("missed", "!"),
        Outcome::Broken => ("broken", "✕"),
        Outcome::Invalid => ("invalid", "?"),
    };
    page.within("div", &[("class", &format!("verdict {class}"))], |page| {
        page.within("p", &[("class", &"word")], |page| {
            page.leaf(
                "span",
                &[("class", &"sign"), ("aria-hidden", &"true")],
                sign,
            );
            page.leaf("span", &[("class", &"outcome")], outcome.words());
        });
        page.leaf("p", &[("class", &"sentence")], &run.sentence());
        if outcome == Outcome::Broken && !run.invalid.is_empty() {
            let also = format!("The run is invalid as well: {}.", run.invalid.join("; "));
            page.leaf("p", &[("class", &"sentence")], &also);
        }
    });
    let Some(judged) = &run.judged else {
        return;
    };
    page.within("ul", &[("class", &"counts")], |page| {
        for (word, count) in judged.counts() {
            let class = if count == 0 { "good" } else { "bad" };
            page.within("li", &[("class", &class)], |page| {
                page.leaf("strong", &[], &quantity::count(count));
                page.text(" ");
                page.leaf("span", &[], word);
            });
        }
    });
    examples(page, judged);
}

fn examples(page: &mut Markup, judged: &Judged) {
    if judged.examples.is_empty() {
        return;
    }
    page.within("details", &[("open", &"open")], |page| {
        page.leaf("summary", &[], "The first of what is wrong, named");
        page.within("ul", &[("class", &"examples")], |page| {
            for example in &judged.examples {
                page.leaf("li", &[], example);
            }
        });
    });
}

/// The few numbers that everybody asks for first.
fn figures(page: &mut Markup, run: &Run) {
    let mut facts = Vec::new();
    if let Some(judged) = &run.judged {
        facts.push(Fact::new("posts judged", quantity::count(judged.posts)));
        let rows = format!(
            "{} of {}",
            quantity::count(judged.rows_found),
            quantity::count(judged.rows_expected)
        );
        facts.push(Fact::new("expected rows found", rows));
        if judged.walks > 0 {
            let walks = format!(
                "{} to the end, over {}",
                quantity::counted(judged.walks, "timeline", "timelines"),
                quantity::counted(judged.walked_posts, "post", "posts")
            );
            facts.push(Fact::new("read through the API", walks));
        }
        let unknown = quantity::counted(judged.indeterminate, "request", "requests");
        facts.push(Fact::new("outcome never learned", unknown));
        if let Some(rewritten) = judged.rewritten {
            let rows = quantity::counted(rewritten, "row", "rows");
            facts.push(Fact::new(
                "written more than once",
                format!("at least {rows}"),
            ));
        }
    }
    for series in &run.deliveries {
        let (Some(peak), Some(mean)) = (series.peak(), mean(series)) else {
            continue;
        };
        let per_core = match run.machine.cores {
            0 => String::new(),
            cores => format!(", {} per core", quantity::number(mean / cores as f64)),
        };
        let value = format!(
            "mean {}{per_core}, peak {} {}",
            quantity::number(mean),
            quantity::number(peak),
            series.unit
        );
        facts.push(Fact::new(&series.name, value));
    }
    let last = run.classes.iter().filter_map(|class| {
        let times = class.last.quantile(0.99)?;
        Some(format!(
            "{} ({})",
            quantity::time(times.as_micros() as f64),
            class.name
        ))
    });
    let last: Vec<String> = last.collect();
    if !last.is_empty() {
        facts.push(Fact::new("p99 to the last follower", last.join(", ")));
    }
    if !facts.is_empty() {
        list(page, "facts key", &facts);
    }
}

fn thresholds(page: &mut Markup, thresholds: &[Threshold]) {
    section(page, "Thresholds", |page| {
        if thresholds.is_empty() {
            page.leaf("p", &[("class", &"none")], "no thresholds were set");
            return;
        }
        classed_table(
            page,
            "may-wrap",
            &["what", "target", "measured", "result"],
            |page| {
                for threshold in thresholds {
                    let (sign, limit) = match threshold.target {
                        Target::AtMost(limit) => ("≤", limit),
                        Target::AtLeast(limit) => ("≥", limit),
                    };
                    let unit = &threshold.unit;
                    let measured = threshold.measured.map_or_else(
                        || "not measured".to_owned(),
                        |value| format!("{} {unit}", quantity::number(value)),
                    );
                    let (class, result) = match threshold.pass() {
                        true => ("good", "✓ pass"),
                        false => ("bad", "✕ missed"),
                    };
                    page.within("tr", &[], |page| {
                        page.leaf("th", &[("scope", &"row")], &threshold.name);
                        let target = format!("{sign} {} {unit}", quantity::number(limit));
                        page.leaf("td", &[], target.trim_end());
                        page.leaf("td", &[], measured.trim_end());
                        page.leaf("td", &[("class", &class)], result);
                    });
                }
            },
        );
    });
}

fn setup(page: &mut Markup, run: &Run) {
    section(page, "What was run", |page| {
        page.within("div", &[("class", &"columns")], |page| {
            for (heading, facts) in [
                ("Plan", run.plan.clone()),
                ("Machine", machine(&run.machine)),
                ("Versions", run.versions.clone()),
            ] {
                page.within("div", &[], |page| {
                    page.leaf("h3", &[], heading);
                    if facts.is_empty() {
                        page.leaf("p", &[("class", &"none")], "not told");
                    } else {
                        list(page, "facts", &facts);
                    }
                });
            }
        });
        if !run.command.is_empty() {
            page.leaf("h3", &[], "Run it again");
            page.within("pre", &[], |page| page.leaf("code", &[], &run.command));
        }
    });
}

fn machine(machine: &Machine) -> Vec<Fact> {
    if *machine == Machine::default() {
        return Vec::new();
    }
    let told = |text: &str| match text {
        "" => "not told".to_owned(),
        text => text.to_owned(),
    };
    vec![
        Fact::new("cores", machine.cores),
        Fact::new("processor", told(&machine.cpu)),
        Fact::new(
            "memory",
            format!(
                "{} GiB",
                quantity::number(machine.memory_mib as f64 / 1_024.0)
            ),
        ),
        Fact::new("kernel", told(&machine.kernel)),
        Fact::new("load before the start", told(&machine.load_before)),
    ]
}

fn list(page: &mut Markup, class: &str, facts: &[Fact]) {
    page.within("dl", &[("class", &class)], |page| {
        for fact in facts {
            page.within("div", &[], |page| {
                page.leaf("dt", &[], &fact.name);
                page.leaf("dd", &[], &fact.value);
            });
        }
    });
}
