//! Several measurements of one thing. Pure.

use std::time::Duration;

use serde::Serialize;

/// What was measured, run by run; the unit is in the name of whoever holds it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(transparent)]
pub(crate) struct Runs(Vec<f64>);

impl Runs {
    pub(crate) fn push(&mut self, value: f64) {
        self.0.push(value);
    }

    /// The middle one, or the mean of the two in the middle; 0 when nothing was measured.
    pub(crate) fn median(&self) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        let (low, high) = (sorted.len().saturating_sub(1) / 2, sorted.len() / 2);
        match (sorted.get(low), sorted.get(high)) {
            (Some(low), Some(high)) => f64::midpoint(*low, *high),
            _ => 0.0,
        }
    }

    /// The least and the greatest.
    pub(crate) fn spread(&self) -> (f64, f64) {
        let least = self.0.iter().copied().fold(f64::INFINITY, f64::min);
        let greatest = self.0.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        if self.0.is_empty() {
            (0.0, 0.0)
        } else {
            (least, greatest)
        }
    }
}

impl FromIterator<f64> for Runs {
    fn from_iter<I: IntoIterator<Item = f64>>(values: I) -> Self {
        Self(values.into_iter().collect())
    }
}

/// Milliseconds.
pub(crate) fn millis(span: Duration) -> f64 {
    span.as_secs_f64() * 1e3
}

/// A count as a number to calculate with; exact up to 2^53.
#[expect(
    clippy::cast_precision_loss,
    reason = "counts of rows and bytes stay far below 2^53"
)]
pub(crate) fn real(count: i64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_whatever_the_order() {
        let runs = |values: &[f64]| values.iter().copied().collect::<Runs>();
        assert_eq!(runs(&[9.0, 1.0, 3.0]).median(), 3.0);
        assert_eq!(runs(&[4.0, 2.0]).median(), 3.0);
        assert_eq!(runs(&[7.0]).median(), 7.0);
        assert_eq!(runs(&[]).median(), 0.0);
        assert_eq!(runs(&[9.0, 1.0, 3.0]).spread(), (1.0, 9.0));
    }
}
