//! A run for the terminal: the verdict, what was demanded, and the percentiles.

use std::fmt::Write as _;

use comfy_table::{CellAlignment, Table, presets::NOTHING};

use crate::{Recorder, Run, Target, moment, quantity};

/// A run in a few lines. What comes from outside is shown without control characters.
pub fn text(run: &Run) -> String {
    let mut out = String::new();
    // Writing to a string does not fail.
    let _ok = writeln!(
        out,
        "{} · seed {} · {} · {}\n{}: {}",
        run.name(),
        run.seed,
        moment::utc(run.started_unix_ms),
        quantity::length(run.duration_s),
        run.outcome().words().to_uppercase(),
        run.sentence(),
    );
    if let Some(judged) = &run.judged {
        let counts = judged
            .counts()
            .map(|(word, count)| format!("{word} {}", quantity::count(count)));
        let _ok = writeln!(out, "{}", counts.join(" · "));
    }
    for table in [thresholds(run), times(run)].into_iter().flatten() {
        let _ok = writeln!(out, "\n{table}");
    }
    if let Some(judged) = &run.judged {
        for example in &judged.examples {
            let _ok = writeln!(out, "  {example}");
        }
    }
    out.chars()
        .map(|letter| match letter {
            '\n' => letter,
            _ if letter.is_control() => '\u{fffd}',
            _ => letter,
        })
        .collect()
}

fn thresholds(run: &Run) -> Option<Table> {
    if run.thresholds.is_empty() {
        return None;
    }
    let mut table = plain(&["threshold", "target", "measured", "result"]);
    for threshold in &run.thresholds {
        let (sign, limit) = match threshold.target {
            Target::AtMost(limit) => ("≤", limit),
            Target::AtLeast(limit) => ("≥", limit),
        };
        let measured = threshold
            .measured
            .map_or_else(|| "not measured".to_owned(), quantity::number);
        let _table = table.add_row([
            threshold.name.clone(),
            format!("{sign} {} {}", quantity::number(limit), threshold.unit),
            measured,
            (if threshold.pass() { "pass" } else { "MISSED" }).to_owned(),
        ]);
    }
    Some(table)
}

fn times(run: &Run) -> Option<Table> {
    let recorders: Vec<(String, &Recorder)> = run
        .recorders()
        .into_iter()
        .filter(|(_, recorder)| !recorder.total().is_empty())
        .collect();
    if recorders.is_empty() {
        return None;
    }
    let mut table = plain(&["times", "count", "p50", "p90", "p99", "p99.9", "max"]);
    for (metric, recorder) in recorders {
        let mut cells = vec![metric, quantity::count(recorder.total().len())];
        for quantile in [0.5, 0.9, 0.99, 0.999, 1.0] {
            let micros = recorder.total().value_at_quantile(quantile);
            cells.push(quantity::time(micros as f64));
        }
        let _table = table.add_row(cells);
    }
    Some(table)
}

/// A table without lines, its first column to the left and all others to the right.
fn plain(head: &[&str]) -> Table {
    let mut table = Table::new();
    let _table = table.load_style(NOTHING).set_header(head.to_vec());
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}
