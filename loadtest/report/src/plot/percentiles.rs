//! How times are spread: the time that a part of all values does not exceed, over that part.

use hdrhistogram::Histogram;

use super::{Area, Axis, Size, axis::nines_of};
use crate::{
    markup::{Markup, Px, path},
    quantity,
};

/// How finely a curve is drawn: points for each nine.
const STEPS: u32 = 40;
/// The parts that have a dot with their value under the pointer.
const DOTS: [(f64, &str); 5] = [
    (0.5, "p50"),
    (0.9, "p90"),
    (0.99, "p99"),
    (0.999, "p99.9"),
    (0.999_9, "p99.99"),
];

/// One curve.
#[derive(Clone, Debug)]
pub(crate) struct Curve<'a> {
    pub(crate) name: &'a str,
    /// The class that colours it.
    pub(crate) class: String,
    /// Times in microseconds.
    pub(crate) times: &'a Histogram<u64>,
}

/// A plot of percentiles.
#[derive(Clone, Debug)]
pub(crate) struct Percentiles<'a> {
    pub(crate) title: &'a str,
    pub(crate) curves: &'a [Curve<'a>],
}

impl Percentiles<'_> {
    /// Whether there is a value to show.
    pub(crate) fn has_data(&self) -> bool {
        self.full().next().is_some()
    }

    /// Draws the plot for one screen.
    pub(crate) fn draw(&self, markup: &mut Markup, size: Size) {
        let smallest = self.full().map(|curve| curve.times.min()).min();
        let largest = self.full().map(|curve| curve.times.max()).max();
        let up = Axis::times(smallest.unwrap_or(0) as f64, largest.unwrap_or(0) as f64);
        let across = Axis::percentiles(self.full().map(end).fold(1.0, f64::max));
        let area = Area::new(size, 8.0);
        let place = |nines: f64, time: u64| {
            let (x, y) = (across.share(nines), up.share(time as f64));
            (area.x(x), area.y(y))
        };
        super::svg(markup, size, &area, self.title, |markup| {
            let names = ("percentile", "time, logarithmic");
            super::axes(markup, &area, &across, &up, names);
            for curve in self.full() {
                let points = curve_points(curve)
                    .into_iter()
                    .map(|(nines, time)| Some(place(nines, time)));
                markup.empty(
                    "path",
                    &[
                        ("class", &format!("line {}", curve.class)),
                        ("d", &path(points)),
                    ],
                );
            }
            for curve in self.full() {
                dots(markup, curve, place);
            }
        });
    }

    fn full(&self) -> impl Iterator<Item = &Curve<'_>> {
        self.curves.iter().filter(|curve| !curve.times.is_empty())
    }
}

/// Where a curve ends: beyond one value of all there is only the largest.
fn end(curve: &Curve<'_>) -> f64 {
    (curve.times.len() as f64).log10()
}

fn curve_points(curve: &Curve<'_>) -> Vec<(f64, u64)> {
    let end = end(curve);
    let steps = (end * f64::from(STEPS)).ceil() as u32;
    let inner = (0..steps).map(|step| f64::from(step) / f64::from(STEPS));
    let time = |nines: f64| curve.times.value_at_quantile(1.0 - 10f64.powf(-nines));
    let mut points: Vec<(f64, u64)> = inner.map(|nines| (nines, time(nines))).collect();
    points.push((end, curve.times.max()));
    points
}

fn dots(markup: &mut Markup, curve: &Curve<'_>, place: impl Fn(f64, u64) -> (f64, f64)) {
    let end = end(curve);
    let inner = DOTS
        .into_iter()
        .map(|(quantile, word)| {
            (
                nines_of(quantile),
                curve.times.value_at_quantile(quantile),
                word,
            )
        })
        .filter(|(nines, ..)| *nines < end);
    for (nines, time, word) in inner.chain([(end, curve.times.max(), "max")]) {
        let (x, y) = place(nines, time);
        let text = format!("{}\n{word}: {}", curve.name, quantity::time(time as f64));
        markup.within(
            "circle",
            &[
                ("class", &format!("dot {}", curve.class)),
                ("cx", &Px(x)),
                ("cy", &Px(y)),
                ("r", &3.5),
            ],
            |markup| markup.leaf("title", &[], &text),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_ends_at_its_largest_value() {
        let mut times = Histogram::new(3).unwrap();
        for value in 1..=1_000u64 {
            times.record(value).unwrap();
        }
        let curve = Curve {
            name: "all",
            class: "s0".to_owned(),
            times: &times,
        };
        let points = curve_points(&curve);
        assert_eq!(points.first(), Some(&(0.0, 1)));
        let (nines, time) = points.last().copied().unwrap_or_default();
        assert!((nines - 3.0).abs() < 1e-9);
        assert_eq!(time, 1_000);
        assert!(points.contains(&(1.0, times.value_at_quantile(0.9))));
    }

    #[test]
    fn curves_without_values_are_no_data() {
        let times = Histogram::new(3).unwrap();
        let curves = [Curve {
            name: "none",
            class: String::new(),
            times: &times,
        }];
        let plot = Percentiles {
            title: "",
            curves: &curves,
        };
        assert!(!plot.has_data());
    }
}
