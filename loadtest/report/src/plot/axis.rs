//! Axes: where values lie between their ends, and round numbers to read them by.

use crate::quantity;

/// A labelled place on an axis.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Tick {
    pub(crate) value: f64,
    pub(crate) label: String,
}

/// An axis from a low to a high value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Axis {
    logarithmic: bool,
    low: f64,
    high: f64,
    /// Places with a label.
    pub(crate) ticks: Vec<Tick>,
    /// Places with a line only.
    pub(crate) minor: Vec<f64>,
}

/// The largest value that an axis reaches; what is larger lies at its end.
const MOST: f64 = 1e15;

/// Distances between moments that people count in, in seconds.
const MOMENT_STEPS: [f64; 20] = [
    0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 900.0, 1_800.0,
    3_600.0, 7_200.0, 14_400.0, 43_200.0, 86_400.0,
];

impl Axis {
    /// From zero to the next round number above the largest value.
    pub(crate) fn counts(largest: f64, about: usize) -> Self {
        let largest = if largest > 0.0 {
            largest.min(MOST)
        } else {
            1.0
        };
        let step = round_up(largest / about.max(1) as f64, &[1.0, 2.0, 5.0]);
        let steps = (largest / step - 1e-9).ceil().max(1.0);
        let ticks = (0..=steps as u32).map(|index| {
            let value = f64::from(index) * step;
            Tick {
                value,
                label: quantity::short(value),
            }
        });
        Self {
            logarithmic: false,
            low: 0.0,
            high: steps * step,
            ticks: ticks.collect(),
            minor: Vec::new(),
        }
    }

    /// Moments of a run from its start to its end.
    pub(crate) fn moments(end_s: f64, about: usize) -> Self {
        let end = if end_s > 0.0 { end_s } else { 1.0 };
        let least = end / about.max(1) as f64;
        let step = MOMENT_STEPS
            .into_iter()
            .find(|step| *step >= least)
            .unwrap_or_else(|| (least / 86_400.0).ceil() * 86_400.0);
        let ticks = (0..=(end / step + 1e-9) as u32).map(|index| {
            let value = f64::from(index) * step;
            Tick {
                value,
                label: match step {
                    1.0.. => quantity::offset(value),
                    _ => quantity::number(value),
                },
            }
        });
        Self {
            logarithmic: false,
            low: 0.0,
            high: end,
            ticks: ticks.collect(),
            minor: Vec::new(),
        }
    }

    /// Times in microseconds, each decade as high as the next.
    pub(crate) fn times(smallest: f64, largest: f64) -> Self {
        let smallest = smallest.max(1.0);
        let low = round_down(smallest);
        let mut high = round_up(largest.max(smallest), &[1.0, 2.0, 5.0]);
        if high <= low {
            high = low * 10.0;
        }
        let all_labelled = (high / low).log10() <= 2.01;
        let (mut ticks, mut minor) = (Vec::new(), Vec::new());
        let mut decade = 10f64.powf(low.log10().floor());
        while decade <= high * 1.001 {
            for part in [1.0, 2.0, 5.0] {
                let value = decade * part;
                if value < low * 0.999 || value > high * 1.001 {
                    continue;
                }
                if all_labelled || part < 2.0 {
                    let label = quantity::round_time(value);
                    ticks.push(Tick { value, label });
                } else {
                    minor.push(value);
                }
            }
            decade *= 10.0;
        }
        Self {
            logarithmic: true,
            low,
            high,
            ticks,
            minor,
        }
    }

    /// Parts of all values, 90 % as far from 0 % as 99 % is from 90 %; `nines` is where it ends.
    pub(crate) fn percentiles(nines: f64) -> Self {
        let places = [
            (0.0, "0\u{202f}%"),
            (0.5, "50\u{202f}%"),
            (0.9, "90\u{202f}%"),
            (0.99, "99\u{202f}%"),
            (0.999, "99.9\u{202f}%"),
            (0.999_9, "99.99\u{202f}%"),
            (0.999_99, "99.999\u{202f}%"),
            (0.999_999, "99.9999\u{202f}%"),
        ];
        let ticks = places
            .into_iter()
            .map(|(quantile, label)| Tick {
                value: nines_of(quantile),
                label: label.to_owned(),
            })
            .filter(|tick| tick.value <= nines + 1e-9);
        Self {
            logarithmic: false,
            low: 0.0,
            high: nines,
            ticks: ticks.collect(),
            minor: Vec::new(),
        }
    }

    /// How far along the axis a value lies: 0 at its low end, 1 at its high end.
    pub(crate) fn share(&self, value: f64) -> f64 {
        if self.logarithmic {
            (value.max(self.low) / self.low).ln() / (self.high / self.low).ln()
        } else {
            (value - self.low) / (self.high - self.low)
        }
    }
}

/// How many nines a part of all values has: 0.99 has two.
pub(crate) fn nines_of(quantile: f64) -> f64 {
    -(1.0 - quantile).log10()
}

/// The next round number that is not below `value`.
fn round_up(value: f64, parts: &[f64]) -> f64 {
    let decade = 10f64.powf(value.log10().floor());
    parts
        .iter()
        .map(|part| part * decade)
        .find(|round| *round >= value * (1.0 - 1e-9))
        .unwrap_or(decade * 10.0)
}

/// The next round number that is not above `value`.
fn round_down(value: f64) -> f64 {
    let decade = 10f64.powf((value.log10() + 1e-9).floor());
    [5.0, 2.0]
        .into_iter()
        .map(|part| part * decade)
        .find(|round| *round <= value * (1.0 + 1e-9))
        .unwrap_or(decade)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(axis: &Axis) -> Vec<String> {
        axis.ticks
            .iter()
            .map(|tick| tick.label.replace('\u{202f}', " "))
            .collect()
    }

    #[test]
    fn counts_stand_at_round_numbers() {
        assert_eq!(
            labels(&Axis::counts(1_130.0, 5)),
            ["0", "500", "1k", "1.5k"]
        );
        assert_eq!(
            labels(&Axis::counts(100.0, 5)),
            ["0", "20", "40", "60", "80", "100"]
        );
        assert_eq!(
            labels(&Axis::counts(0.0, 5)),
            ["0", "0.2", "0.4", "0.6", "0.8", "1"]
        );
        assert_eq!(Axis::counts(3_000.0, 5).share(1_500.0), 0.5);
    }

    #[test]
    fn moments_stand_at_numbers_that_people_count_in() {
        assert_eq!(
            labels(&Axis::moments(170.0, 6)),
            ["0:00", "0:30", "1:00", "1:30", "2:00", "2:30"]
        );
        assert_eq!(
            labels(&Axis::moments(7_300.0, 5)),
            ["0:00", "30:00", "1:00:00", "1:30:00", "2:00:00"]
        );
        assert_eq!(
            labels(&Axis::moments(0.9, 5)),
            ["0", "0.2", "0.4", "0.6", "0.8"]
        );
        assert_eq!(labels(&Axis::moments(9e5, 5)).len(), 4);
    }

    #[test]
    fn times_stand_at_decades() {
        let wide = Axis::times(730.0, 4_100_000.0);
        assert_eq!(labels(&wide), ["1 ms", "10 ms", "100 ms", "1 s"]);
        assert_eq!(wide.minor.len(), 9);
        assert_eq!(wide.share(500.0), 0.0);
        assert!((wide.share(5_000_000.0) - 1.0).abs() < 1e-9);
        assert_eq!(
            labels(&Axis::times(1_000.0, 9_000.0)),
            ["1 ms", "2 ms", "5 ms", "10 ms"]
        );
        assert_eq!(
            labels(&Axis::times(0.0, 0.0)),
            ["1 µs", "2 µs", "5 µs", "10 µs"]
        );
    }

    #[test]
    fn percentiles_stand_at_their_nines() {
        assert_eq!(
            labels(&Axis::percentiles(3.2)),
            ["0 %", "50 %", "90 %", "99 %", "99.9 %"]
        );
        let axis = Axis::percentiles(3.0);
        assert!((axis.share(nines_of(0.9)) - 1.0 / 3.0).abs() < 1e-9);
    }
}
