//! Times in tables and as curves of their percentiles.

use super::figures::{colour, figure};
use crate::{
    Recorder, Run,
    markup::Markup,
    plot::{Curve, Percentiles},
    quantity,
};

/// A name and what was recorded under it.
pub(super) type Row<'a> = (&'a str, &'a Recorder);

/// The columns of a table, and from how many values on each tells more than the largest.
const COLUMNS: [(&str, f64, u64); 5] = [
    ("p50", 0.5, 1),
    ("p90", 0.9, 10),
    ("p99", 0.99, 100),
    ("p99.9", 0.999, 1_000),
    ("max", 1.0, 1),
];

/// The time to followers, by the size of the audience.
pub(super) fn write(page: &mut Markup, run: &Run) {
    let classes = || run.classes.iter().enumerate();
    let curves: Vec<Curve<'_>> = classes()
        .map(|(index, class)| Curve {
            name: &class.name,
            class: colour(index),
            times: class.last.total(),
        })
        .collect();
    let title = "Time to the last follower, by audience";
    let plot = Percentiles {
        title,
        curves: &curves,
    };
    let text = "How long posts took until every follower had them, without the warm-up. Read it \
                as: this part of all posts took no longer than this time.";
    let legend = curves
        .iter()
        .map(|curve| (curve.name, curve.class.as_str()));
    figure(page, title, text, plot.has_data(), legend, |page, size| {
        plot.draw(page, size);
    });
    let last: Vec<Row<'_>> = classes()
        .map(|(_, class)| (class.name.as_str(), &class.last))
        .collect();
    let first: Vec<Row<'_>> = classes()
        .map(|(_, class)| (class.name.as_str(), &class.first))
        .collect();
    table(page, "to the last follower", "posts", &last);
    table(page, "to the first follower", "posts", &first);
}

/// Percentiles of several recorders; nothing when there is none.
pub(super) fn table(page: &mut Markup, what: &str, counted: &str, rows: &[Row<'_>]) {
    if rows.is_empty() {
        return;
    }
    let mut head = vec![what, counted];
    head.extend(COLUMNS.map(|(name, ..)| name));
    super::table(page, &head, |page| {
        for (name, recorder) in rows {
            page.within("tr", &[], |page| row(page, name, recorder));
        }
    });
}

/// The p99 of everything in each phase: what a storm or a fault does to all others.
pub(super) fn by_phase(page: &mut Markup, run: &Run) {
    let text = "The p99 of what was recorded in each phase, to within a hundredth. Where a storm or \
                a fault disturbs others, their row rises under it.";
    page.leaf("p", &[("class", &"note")], text);
    let mut head = vec!["p99"];
    head.extend(run.phases.iter().map(|phase| phase.name.as_str()));
    super::table(page, &head, |page| {
        for (metric, recorder) in run.recorders() {
            page.within("tr", &[], |page| {
                page.leaf("th", &[("scope", &"row")], &metric);
                for phase in &run.phases {
                    let times = recorder.between(phase.from_s, phase.to_s);
                    let title = quantity::counted(times.len(), "value", "values");
                    let text = match times.len() {
                        0 => "–".to_owned(),
                        _ => quantity::two_digits(times.value_at_quantile(0.99) as f64),
                    };
                    let class = if times.len() < 100 { "few" } else { "" };
                    page.leaf("td", &[("class", &class), ("title", &title)], &text);
                }
            });
        }
    });
}

fn row(page: &mut Markup, name: &str, recorder: &Recorder) {
    let times = recorder.total();
    let name = if name.is_empty() { "all" } else { name };
    page.leaf("th", &[("scope", &"row")], name);
    page.leaf("td", &[], &quantity::count(times.len()));
    for (column, quantile, enough) in COLUMNS {
        let Some(time) = recorder.quantile(quantile) else {
            page.leaf("td", &[("class", &"few")], "–");
            continue;
        };
        let text = quantity::time(time.as_micros() as f64);
        if times.len() >= enough {
            page.leaf("td", &[], &text);
        } else {
            let title = format!("fewer than {enough} values: {column} is the largest");
            page.leaf("td", &[("class", &"few"), ("title", &title)], &text);
        }
    }
}
