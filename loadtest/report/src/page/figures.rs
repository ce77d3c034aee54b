//! The plots of the page, in the order in which a post travels: asked for, delivered, waited for,
//! read, and how well the generator kept its own time.

use super::{percentiles, section};
use crate::{
    Latency, PhaseKind, Point, Recorder, Run, Series,
    markup::Markup,
    plot::{Flag, FlagKind, Frame, Line, OverTime, Size, Values},
    quantity,
};

/// How many colours there are; more lines are dashed as well.
const COLOURS: usize = 8;
/// How many kinds of dashes follow one another.
const DASHES: usize = 3;

pub(super) fn write(page: &mut Markup, run: &Run) {
    let frame = frame(run);
    section(page, "Load", |page| {
        let arrivals = [
            line(&run.arrivals.planned, "planned", "plan"),
            line(&run.arrivals.acknowledged, "acknowledged", "s0"),
            line(&run.arrivals.failed, "failed", "bad"),
        ];
        let text = "What the plan had start in each second, and what was answered in it.";
        counts(page, "Requests", text, "requests/s", &arrivals, &frame);
        latencies(page, "Time to answer", &run.requests, &frame);
    });
    section(page, "Delivery", |page| {
        let rows = numbered(&run.deliveries);
        let text = "Rows that reached timelines.";
        counts(page, "Rows delivered", text, "rows/s", &rows, &frame);
        percentiles::write(page, run);
        let over_time: Vec<Line> = run
            .classes
            .iter()
            .enumerate()
            .map(|(index, class)| quantile_line(&class.name, &class.last, 0.99, index))
            .collect();
        let text = "99 of 100 posts of each interval were with their last follower after this \
                    time. A storm that disturbs others shows here.";
        let title = "Time to the last follower over time, p99";
        times(page, title, text, &over_time, &frame);
    });
    section(page, "Backlog", |page| lag(page, &run.lag, &frame));
    section(page, "Readers", |page| {
        latencies(page, "Time to a page", &run.pages, &frame);
        if !run.seen.is_empty() {
            seen(page, &run.seen, &frame);
        }
    });
    if !run.phases.is_empty() {
        let heading = "Phases compared";
        section(page, heading, |page| percentiles::by_phase(page, run));
    }
    section(page, "Generator", |page| {
        let text = "How late the generator started what it had planned. A generator that is late \
                    measures itself.";
        let lines = quantiles(&run.generator_lag);
        times(page, "Scheduler lag of the generator", text, &lines, &frame);
    });
}

/// What is common to all plots over time.
fn frame(run: &Run) -> Frame {
    let phases = run.phases.iter().map(|phase| {
        let kind = match phase.kind {
            PhaseKind::WarmUp => FlagKind::WarmUp,
            PhaseKind::Steady => FlagKind::Steady,
            PhaseKind::Storm => FlagKind::Storm,
            PhaseKind::Fault => FlagKind::Fault,
            PhaseKind::Drain => FlagKind::Drain,
        };
        let (from, to) = (quantity::offset(phase.from_s), quantity::offset(phase.to_s));
        Flag {
            kind,
            label: phase.name.clone(),
            title: format!("{}\n{from} to {to}", phase.name),
            from_s: phase.from_s,
            to_s: phase.to_s,
        }
    });
    let marks = run.marks.iter().map(|mark| Flag {
        kind: FlagKind::Mark,
        label: mark.name.clone(),
        title: format!(
            "{} at {}\n{}",
            mark.name,
            quantity::offset(mark.at_s),
            mark.detail
        ),
        from_s: mark.at_s,
        to_s: mark.at_s,
    });
    let flags: Vec<Flag> = phases.chain(marks).collect();
    let ends = flags.iter().map(|flag| flag.to_s);
    let series = [
        &run.arrivals.planned,
        &run.arrivals.acknowledged,
        &run.arrivals.failed,
    ];
    let series = series.into_iter().chain(&run.deliveries).chain(&run.lag);
    let points = series.filter_map(|series| series.points.last().map(|point| point.at_s));
    let intervals = run.recorders().into_iter().filter_map(|(_, recorder)| {
        let last = recorder.intervals().last()?;
        Some(last.from_s as f64)
    });
    Frame {
        end_s: ends
            .chain(points)
            .chain(intervals)
            .chain([run.duration_s])
            .filter(|second| second.is_finite())
            .fold(0.0, f64::max),
        flags,
    }
}

fn latencies(page: &mut Markup, title: &str, latencies: &[Latency], frame: &Frame) {
    let text = "From the intended start to the answer, so that waiting for a slow answer is \
                counted too.";
    if latencies.is_empty() {
        times(page, title, text, &[], frame);
    }
    for latency in latencies {
        let title = match latency.name.as_str() {
            "" => title.to_owned(),
            name => format!("{title}: {name}"),
        };
        times(page, &title, text, &quantiles(&latency.recorded), frame);
    }
    let rows: Vec<percentiles::Row<'_>> = latencies
        .iter()
        .map(|latency| (latency.name.as_str(), &latency.recorded))
        .collect();
    percentiles::table(page, "kind", "requests", &rows);
}

/// When readers who poll saw what was posted: one line each.
fn seen(page: &mut Markup, seen: &[Latency], frame: &Frame) {
    let lines: Vec<Line> = seen
        .iter()
        .enumerate()
        .map(|(index, seen)| quantile_line(&seen.name, &seen.recorded, 0.99, index))
        .collect();
    let text = "From the intended start of a post until a reader who polls had it on a page; the \
                distance between two polls is part of it.";
    times(
        page,
        "Time until a reader sees a post, p99",
        text,
        &lines,
        frame,
    );
    let rows: Vec<percentiles::Row<'_>> = seen
        .iter()
        .map(|seen| (seen.name.as_str(), &seen.recorded))
        .collect();
    percentiles::table(page, "seen", "posts", &rows);
}

/// One plot for each unit: events and rows do not share an axis.
fn lag(page: &mut Markup, lag: &[Series], frame: &Frame) {
    let text = "What waits, as it was seen at each moment. Where nobody could look, the line has \
                a gap.";
    let mut units: Vec<&str> = Vec::new();
    for series in lag {
        if !units.contains(&series.unit.as_str()) {
            units.push(&series.unit);
        }
    }
    if units.is_empty() {
        counts(page, "Lag", text, "", &[], frame);
    }
    for unit in units {
        let of_unit: Vec<Series> = lag
            .iter()
            .filter(|series| series.unit == unit)
            .cloned()
            .collect();
        let title = format!("Lag in {unit}");
        counts(page, &title, text, unit, &numbered(&of_unit), frame);
    }
}

fn counts(page: &mut Markup, title: &str, text: &str, unit: &str, lines: &[Line], frame: &Frame) {
    over_time(
        page,
        title,
        text,
        Values::Counts(unit.to_owned()),
        lines,
        frame,
    );
}

fn times(page: &mut Markup, title: &str, text: &str, lines: &[Line], frame: &Frame) {
    over_time(page, title, text, Values::Times, lines, frame);
}

fn over_time(
    page: &mut Markup,
    title: &str,
    text: &str,
    values: Values,
    lines: &[Line],
    frame: &Frame,
) {
    let plot = OverTime {
        title,
        values,
        lines,
        frame,
    };
    let legend = lines
        .iter()
        .map(|line| (line.name.as_str(), line.class.as_str()));
    figure(page, title, text, plot.has_data(), legend, |page, size| {
        plot.draw(page, size);
    });
}

/// A plot with its caption and its legend, once for each kind of screen.
pub(super) fn figure<'a>(
    page: &mut Markup,
    title: &str,
    text: &str,
    has_data: bool,
    legend: impl Iterator<Item = (&'a str, &'a str)>,
    draw: impl Fn(&mut Markup, Size),
) {
    page.within("figure", &[], |page| {
        page.within("figcaption", &[], |page| {
            page.leaf("h3", &[], title);
            page.leaf("p", &[], text);
        });
        if !has_data {
            page.leaf("p", &[("class", &"none")], "no data");
            return;
        }
        page.within("ul", &[("class", &"legend")], |page| {
            for (name, class) in legend {
                page.within("li", &[], |page| {
                    page.within("svg", &[("viewBox", &"0 0 26 10")], |page| {
                        let class = format!("line {class}");
                        page.empty("path", &[("class", &class), ("d", &"M1 5H25")]);
                    });
                    page.text(name);
                });
            }
        });
        for size in Size::ALL {
            draw(page, size);
        }
    });
}

/// The median, the 99th percentile and the largest of each interval.
fn quantiles(recorder: &Recorder) -> Vec<Line> {
    let mut lines = Vec::new();
    for (name, quantile, class) in [
        ("max", 1.0, "largest"),
        ("p99", 0.99, "s1"),
        ("p50", 0.5, "s0"),
    ] {
        let mut line = quantile_line(name, recorder, quantile, 0);
        class.clone_into(&mut line.class);
        lines.push(line);
    }
    lines
}

/// One percentile of each interval. Intervals without a value leave a gap.
fn quantile_line(name: &str, recorder: &Recorder, quantile: f64, index: usize) -> Line {
    let mut points: Vec<Point> = Vec::new();
    let mut next_s = 0;
    for interval in recorder.intervals() {
        if interval.from_s > next_s && !points.is_empty() {
            points.push(Point {
                at_s: next_s as f64,
                value: None,
            });
        }
        points.push(Point {
            at_s: interval.from_s as f64 + interval.width_s as f64 / 2.0,
            value: Some(interval.histogram.value_at_quantile(quantile) as f64),
        });
        next_s = interval.from_s + interval.width_s;
    }
    Line {
        name: name.to_owned(),
        class: colour(index),
        points,
    }
}

fn numbered(series: &[Series]) -> Vec<Line> {
    let lines = series.iter().enumerate();
    lines
        .map(|(index, series)| line(series, &series.name, &colour(index)))
        .collect()
}

fn line(series: &Series, name: &str, class: &str) -> Line {
    let mut points = series.for_plot().points;
    points.sort_by(|a, b| a.at_s.total_cmp(&b.at_s));
    Line {
        name: name.to_owned(),
        class: class.to_owned(),
        points,
    }
}

/// The class that colours the line of this number.
pub(super) fn colour(index: usize) -> String {
    match index / COLOURS {
        0 => format!("s{index}"),
        round => format!("s{} dash{}", index % COLOURS, (round - 1) % DASHES),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn seconds_without_a_value_leave_a_gap() {
        let mut recorder = Recorder::new();
        for second in [3, 4, 9] {
            recorder.record(Duration::from_secs(second), Duration::from_millis(1));
        }
        let points = quantile_line("p50", &recorder, 0.5, 0).points;
        let seen: Vec<(f64, bool)> = points
            .iter()
            .map(|point| (point.at_s, point.value.is_some()))
            .collect();
        assert_eq!(seen, [(3.5, true), (4.5, true), (5.0, false), (9.5, true)]);
    }

    #[test]
    fn many_lines_differ_in_colour_or_dashes() {
        let classes: std::collections::BTreeSet<String> = (0..32).map(colour).collect();
        assert_eq!(classes.len(), 32);
    }

    #[test]
    fn the_time_axis_takes_in_what_came_after_the_plan() {
        let mut run = Run {
            duration_s: 10.0,
            ..Run::default()
        };
        run.lag.push(Series::new("unpublished", "events"));
        run.lag[0].push(Duration::from_secs(25), Some(0.0));
        assert_eq!(frame(&run).end_s, 25.0);
    }
}
