//! The end of the page: what happened when, how it was measured, and which files lie beside it.

use super::{classed_table, section};
use crate::{Run, markup::Markup, quantity};

/// How every run is measured.
const METHOD: [&str; 6] = [
    "Open loop: arrivals follow the plan and never wait for answers, so a slow system cannot slow \
     its own test.",
    "Times are counted from the intended start, not from when a request got out; a stall is seen \
     by everything that should have started in it.",
    "Times are kept in HDR histograms of microseconds with three significant digits; percentiles \
     in tables are of the whole run without the warm-up.",
    "Plots over time show one interval of a second each, wider ones in long runs, with two \
     significant digits. Percentiles of one interval rest on few values.",
    "A percentile in grey has too few values behind it and equals the largest one.",
    "A run whose generator was late, whose fault was not hit, or that nobody judged proves \
     nothing and says so.",
];

pub(super) fn write(page: &mut Markup, run: &Run, logs: &[String]) {
    if !run.phases.is_empty() || !run.marks.is_empty() {
        section(page, "What happened when", |page| happened(page, run));
    }
    section(page, "How it was measured", |page| {
        page.within("ul", &[("class", &"notes")], |page| {
            for note in METHOD {
                page.leaf("li", &[], note);
            }
            for note in &run.notes {
                page.leaf("li", &[], note);
            }
        });
    });
    section(page, "Data", |page| {
        page.within("p", &[("class", &"files")], |page| {
            page.text("Everything on this page is in ");
            page.leaf("a", &[("href", &"run.json")], "run.json");
            if !logs.is_empty() {
                page.text("; the histograms by interval are HDR logs: ");
            }
            for (index, log) in logs.iter().enumerate() {
                page.text(if index == 0 { "" } else { ", " });
                page.leaf("a", &[("href", log)], log);
            }
            page.text(".");
        });
    });
}

fn happened(page: &mut Markup, run: &Run) {
    let mut rows: Vec<(f64, String, &str)> = Vec::new();
    for phase in &run.phases {
        let until = format!("until {}", quantity::offset(phase.to_s));
        rows.push((phase.from_s, until, &phase.name));
    }
    for mark in &run.marks {
        rows.push((mark.at_s, mark.detail.clone(), &mark.name));
    }
    rows.sort_by(|a, b| a.0.total_cmp(&b.0));
    classed_table(
        page,
        "may-wrap happened",
        &["what", "when", "more"],
        |page| {
            for (at_s, more, name) in rows {
                page.within("tr", &[], |page| {
                    page.leaf("th", &[("scope", &"row")], name);
                    page.leaf("td", &[], &quantity::offset(at_s));
                    page.leaf("td", &[("class", &"words")], &more);
                });
            }
        },
    );
}
