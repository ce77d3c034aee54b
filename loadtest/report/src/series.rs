//! Numbers over time, in bounded memory.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// How many points a series keeps before two become one, and how many cells a counter has.
const POINTS: usize = 600;

/// A number over time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Series {
    /// What the number is.
    pub name: String,
    /// Its unit.
    pub unit: String,
    /// Its values, in the order of time.
    pub points: Vec<Point>,
}

/// One value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "(f64, Option<f64>)", into = "(f64, Option<f64>)")]
pub struct Point {
    /// When, in seconds since the start of the run.
    pub at_s: f64,
    /// The value; `None` where it could not be measured, which leaves a gap.
    pub value: Option<f64>,
}

impl From<(f64, Option<f64>)> for Point {
    fn from((at_s, value): (f64, Option<f64>)) -> Self {
        Self { at_s, value }
    }
}

impl From<Point> for (f64, Option<f64>) {
    fn from(point: Point) -> Self {
        (point.at_s, point.value)
    }
}

impl Series {
    /// A series without values.
    pub fn new(name: impl Into<String>, unit: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            unit: unit.into(),
            points: Vec::new(),
        }
    }

    /// Adds a value that was measured at a moment, not before the last one. A series that grows
    /// long keeps the larger of two neighbours.
    pub fn push(&mut self, at: Duration, value: Option<f64>) {
        let point = Point {
            at_s: millis(at.as_secs_f64()),
            value: value.filter(|value| value.is_finite()).map(millis),
        };
        if self.points.len() >= 2 * POINTS {
            self.coarsen();
        }
        // Once neighbours were joined, later values are joined over the same distance.
        let distance = match self.points.as_slice() {
            [first, second, ..] if self.points.len() >= POINTS => second.at_s - first.at_s,
            _ => 0.0,
        };
        match self.points.last_mut() {
            Some(last) if point.at_s - last.at_s < distance * 0.75 => *last = larger(*last, point),
            _ => self.points.push(point),
        }
    }

    /// The largest value.
    pub fn peak(&self) -> Option<f64> {
        self.points
            .iter()
            .filter_map(|point| point.value)
            .reduce(f64::max)
    }

    /// The series with at most as many points as a plot can show.
    pub(crate) fn for_plot(&self) -> Self {
        let mut series = self.clone();
        while series.points.len() > POINTS {
            series.coarsen();
        }
        series
    }

    fn coarsen(&mut self) {
        let pairs = self.points.chunks(2);
        let joined = pairs.filter_map(|pair| pair.iter().copied().reduce(larger));
        self.points = joined.collect();
    }
}

/// Counts what happens, by second; a long run gets wider cells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counter {
    width_s: u64,
    cells: Vec<u64>,
}

impl Default for Counter {
    fn default() -> Self {
        Self::new()
    }
}

impl Counter {
    /// A counter that has counted nothing.
    pub fn new() -> Self {
        Self {
            width_s: 1,
            cells: Vec::new(),
        }
    }

    /// Counts `n` more at a moment. Their order does not matter.
    pub fn add(&mut self, at: Duration, n: u64) {
        while at.as_secs() / self.width_s >= POINTS as u64 {
            self.coarsen();
        }
        let index = usize::try_from(at.as_secs() / self.width_s).unwrap_or(POINTS - 1);
        if self.cells.len() <= index {
            self.cells.resize(index + 1, 0);
        }
        self.cells[index] = self.cells[index].saturating_add(n);
    }

    /// Adds what another counter of the same run has.
    pub fn merge(&mut self, other: &Self) {
        for (index, n) in (0u64..).zip(&other.cells) {
            self.add(Duration::from_secs(index * other.width_s), *n);
        }
    }

    /// All that was counted.
    pub fn total(&self) -> u64 {
        self.cells.iter().sum()
    }

    /// What was counted per second over a run of this length, as points in the middle of their
    /// cells. The last cell is as long as the run left it.
    pub fn series(
        &self,
        name: impl Into<String>,
        unit: impl Into<String>,
        run: Duration,
    ) -> Series {
        let mut series = Series::new(name, unit);
        let width = self.width_s as f64;
        let cells = (run.as_secs_f64() / width).ceil() as usize;
        for index in 0..cells.max(self.cells.len()) {
            let from = index as f64 * width;
            let length = match run.as_secs_f64() - from {
                // A cell shorter than a tenth would show noise; one after the end counts in full.
                rest if rest >= width / 10.0 => rest.min(width),
                _ => width,
            };
            let count = self.cells.get(index).copied().unwrap_or(0);
            series.push(
                Duration::from_secs_f64(from + length / 2.0),
                Some(count as f64 / length),
            );
        }
        series
    }

    fn coarsen(&mut self) {
        self.width_s = self.width_s.saturating_mul(2);
        self.cells = self.cells.chunks(2).map(|pair| pair.iter().sum()).collect();
    }
}

/// Two neighbours as one: the larger value, which a gap does not hide.
fn larger(first: Point, second: Point) -> Point {
    Point {
        at_s: first.at_s,
        value: match (first.value, second.value) {
            (Some(first), Some(second)) => Some(first.max(second)),
            (first, second) => first.or(second),
        },
    }
}

/// The mean of the values of a series.
pub(crate) fn mean(series: &Series) -> Option<f64> {
    let values = series.points.iter().filter_map(|point| point.value);
    let (count, sum) = values.fold((0u32, 0.0), |(count, sum), value| (count + 1, sum + value));
    (count > 0).then(|| sum / f64::from(count))
}

/// Rounded to three digits after the point: what is written stays short and is read as it was.
fn millis(value: f64) -> f64 {
    let rounded = (value * 1_000.0).round() / 1_000.0;
    if rounded.is_finite() { rounded } else { value }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_tells_rates_and_the_last_cell_is_not_too_low() {
        let mut counter = Counter::new();
        counter.add(Duration::from_millis(2_100), 5);
        counter.add(Duration::from_millis(200), 10);
        let series = counter.series("rows", "rows/s", Duration::from_millis(2_500));
        let points: Vec<(f64, Option<f64>)> = series.points.into_iter().map(Into::into).collect();
        assert_eq!(
            points,
            [(0.5, Some(10.0)), (1.5, Some(0.0)), (2.25, Some(10.0))]
        );
        assert_eq!(counter.total(), 15);
    }

    #[test]
    fn a_long_run_gets_wider_cells() {
        let mut counter = Counter::new();
        for second in 0..2_000 {
            counter.add(Duration::from_secs(second), 3);
        }
        let mut twice = counter.clone();
        twice.merge(&counter);
        assert_eq!((counter.total(), twice.total()), (6_000, 12_000));
        let series = twice.series("rows", "rows/s", Duration::from_secs(2_000));
        assert_eq!(series.points.len(), 500);
        assert!(series.points.iter().all(|point| point.value == Some(6.0)));
    }

    #[test]
    fn what_is_no_number_leaves_a_gap() {
        let mut gauge = Series::new("unpublished", "events");
        for (second, value) in [
            (0, f64::NAN),
            (1, f64::INFINITY),
            (2, 1.234_56),
            (3, f64::MAX),
        ] {
            gauge.push(Duration::from_secs(second), Some(value));
        }
        let values: Vec<Option<f64>> = gauge.points.iter().map(|point| point.value).collect();
        assert_eq!(values, [None, None, Some(1.235), Some(f64::MAX)]);
        assert_eq!(mean(&Series::default()), None);
    }

    #[test]
    fn a_long_gauge_keeps_its_peak_and_its_gaps() {
        let mut gauge = Series::new("unpublished", "events");
        for second in 0..10_000u32 {
            let value = match second {
                7_001 => Some(99.0),
                3_000..3_500 => None,
                _ => Some(1.0),
            };
            gauge.push(Duration::from_secs(second.into()), value);
        }
        assert!(gauge.points.len() <= 2 * POINTS);
        let plot = gauge.for_plot();
        assert!(plot.points.len() <= POINTS);
        assert_eq!(plot.peak(), Some(99.0));
        assert!(plot.points.iter().any(|point| point.value.is_none()));
    }
}
