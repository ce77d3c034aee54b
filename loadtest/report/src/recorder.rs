//! Times in histograms: one for each interval, and one over all.
//!
//! Memory is bounded whatever is recorded and for however long: at most 600 intervals of 128
//! counters for each doubling of the largest value (about 6 MB when values reach a minute), which
//! grow from one second to two, four and so on. Values are held to a day. Intervals keep two
//! significant digits, the total keeps three.

use std::time::Duration;

use anyhow::Context as _;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use hdrhistogram::{
    Counter, Histogram,
    serialization::{Deserializer as Reader, Serializer as _, V2DeflateSerializer},
};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _, ser::Error as _};

/// How many intervals are kept before two become one.
const INTERVALS: usize = 600;

/// The longest time that is told apart, in microseconds.
const CEILING_US: u64 = 24 * 3_600 * 1_000_000;

/// Collects times in microseconds.
#[derive(Clone, Debug, PartialEq)]
pub struct Recorder {
    measured_from: Duration,
    width_s: u64,
    intervals: Vec<Option<Histogram<u32>>>,
    total: Histogram<u64>,
}

/// What was recorded in one interval.
#[derive(Clone, Copy, Debug)]
pub struct Interval<'a> {
    /// Its first moment, in seconds since the start of the run.
    pub from_s: u64,
    /// Its length in seconds.
    pub width_s: u64,
    /// The times, in microseconds, with two significant digits.
    pub histogram: &'a Histogram<u32>,
}

impl Default for Recorder {
    fn default() -> Self {
        Self::new()
    }
}

impl Recorder {
    /// A recorder whose total has everything.
    pub fn new() -> Self {
        Self::measured_from(Duration::ZERO)
    }

    /// A recorder whose total begins after the warm-up; its intervals have everything.
    pub fn measured_from(warm_up: Duration) -> Self {
        Self {
            measured_from: warm_up,
            width_s: 1,
            intervals: Vec::new(),
            total: histogram(3),
        }
    }

    /// Records a time. `at` is counted from the start of the run, and its order does not matter.
    pub fn record(&mut self, at: Duration, value: Duration) {
        self.record_n(at, value, 1);
    }

    /// Records the same time `n` times.
    pub fn record_n(&mut self, at: Duration, value: Duration, n: u64) {
        if n == 0 {
            return;
        }
        let micros = u64::try_from(value.as_micros())
            .unwrap_or(u64::MAX)
            .min(CEILING_US);
        if at >= self.measured_from {
            count(&mut self.total, micros, n);
        }
        while at.as_secs() / self.width_s >= INTERVALS as u64 {
            self.coarsen();
        }
        let n = u32::try_from(n).unwrap_or(u32::MAX);
        count(self.interval(at.as_secs()), micros, n);
    }

    /// Adds what another recorder of the same run has.
    pub fn merge(&mut self, other: &Self) {
        while self.width_s < other.width_s {
            self.coarsen();
        }
        for interval in other.intervals() {
            while interval.from_s / self.width_s >= INTERVALS as u64 {
                self.coarsen();
            }
            add(self.interval(interval.from_s), interval.histogram);
        }
        add(&mut self.total, &other.total);
    }

    /// All times after the warm-up, in microseconds, with three significant digits.
    pub fn total(&self) -> &Histogram<u64> {
        &self.total
    }

    /// The time that this part of all times does not exceed; `None` without any.
    pub fn quantile(&self, quantile: f64) -> Option<Duration> {
        (!self.total.is_empty())
            .then(|| Duration::from_micros(self.total.value_at_quantile(quantile)))
    }

    /// The intervals with at least one time, in order.
    pub fn intervals(&self) -> impl Iterator<Item = Interval<'_>> {
        (0u64..).zip(&self.intervals).filter_map(|(index, slot)| {
            slot.as_ref().map(|histogram| Interval {
                from_s: index * self.width_s,
                width_s: self.width_s,
                histogram,
            })
        })
    }

    /// What was recorded in the intervals that begin within this part of the run, with two
    /// significant digits.
    pub fn between(&self, from_s: f64, to_s: f64) -> Histogram<u32> {
        let mut times = histogram(2);
        for interval in self.intervals() {
            if (from_s..to_s).contains(&(interval.from_s as f64)) {
                add(&mut times, interval.histogram);
            }
        }
        times
    }

    /// The histogram of the interval with this second, which lies within [`INTERVALS`].
    fn interval(&mut self, second: u64) -> &mut Histogram<u32> {
        let index = usize::try_from(second / self.width_s).unwrap_or(INTERVALS - 1);
        if self.intervals.len() <= index {
            self.intervals.resize(index + 1, None);
        }
        self.intervals[index].get_or_insert_with(|| histogram(2))
    }

    fn coarsen(&mut self) {
        self.width_s = self.width_s.saturating_mul(2);
        let mut pairs = std::mem::take(&mut self.intervals).into_iter();
        while let Some(first) = pairs.next() {
            self.intervals.push(match (first, pairs.next().flatten()) {
                (Some(mut first), Some(second)) => {
                    add(&mut first, &second);
                    Some(first)
                }
                (first, second) => first.or(second),
            });
        }
    }
}

fn histogram<T: Counter>(digits: u8) -> Histogram<T> {
    Histogram::new(digits).expect("two and three significant digits are allowed")
}

/// `saturating_record_n` would not resize, but record a smaller time.
fn count<T: Counter>(to: &mut Histogram<T>, micros: u64, n: T) {
    to.record_n(micros, n)
        .expect("a histogram that resizes takes all");
}

fn add<T: Counter>(to: &mut Histogram<T>, from: &Histogram<T>) {
    to.add(from).expect("a histogram that resizes takes all");
}

/// The wire shape: numbers for people and programs, and the histograms in full.
#[derive(Serialize, Deserialize)]
struct Wire {
    measured_from_s: f64,
    interval_s: u64,
    count: u64,
    p50_us: u64,
    p90_us: u64,
    p99_us: u64,
    p999_us: u64,
    max_us: u64,
    total: String,
    intervals: Vec<WireInterval>,
}

#[derive(Serialize, Deserialize)]
struct WireInterval {
    from_s: u64,
    count: u64,
    p50_us: u64,
    p99_us: u64,
    max_us: u64,
    histogram: String,
}

impl Serialize for Recorder {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let intervals: anyhow::Result<Vec<WireInterval>> = self
            .intervals()
            .map(|interval| {
                let times = interval.histogram;
                Ok(WireInterval {
                    from_s: interval.from_s,
                    count: times.len(),
                    p50_us: times.value_at_quantile(0.5),
                    p99_us: times.value_at_quantile(0.99),
                    max_us: times.max(),
                    histogram: encode(times)?,
                })
            })
            .collect();
        let wire = Wire {
            measured_from_s: self.measured_from.as_secs_f64(),
            interval_s: self.width_s,
            count: self.total.len(),
            p50_us: self.total.value_at_quantile(0.5),
            p90_us: self.total.value_at_quantile(0.9),
            p99_us: self.total.value_at_quantile(0.99),
            p999_us: self.total.value_at_quantile(0.999),
            max_us: self.total.max(),
            total: encode(&self.total).map_err(S::Error::custom)?,
            intervals: intervals.map_err(S::Error::custom)?,
        };
        wire.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Recorder {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let wire = Wire::deserialize(deserializer)?;
        let faulty = |error: anyhow::Error| D::Error::custom(format!("{error:#}"));
        let measured_from = Duration::try_from_secs_f64(wire.measured_from_s)
            .map_err(|error| D::Error::custom(format!("measured_from_s: {error}")))?;
        let mut recorder = Self {
            measured_from,
            width_s: wire.interval_s.max(1),
            intervals: Vec::new(),
            total: decode(&wire.total).map_err(faulty)?,
        };
        for interval in wire.intervals {
            if interval.from_s / recorder.width_s >= INTERVALS as u64 {
                return Err(D::Error::custom(format!(
                    "interval of second {} lies outside {INTERVALS} of {} s",
                    interval.from_s, recorder.width_s
                )));
            }
            *recorder.interval(interval.from_s) = decode(&interval.histogram).map_err(faulty)?;
        }
        Ok(recorder)
    }
}

fn encode<T: Counter>(histogram: &Histogram<T>) -> anyhow::Result<String> {
    let mut bytes = Vec::new();
    let _length = V2DeflateSerializer::new()
        .serialize(histogram, &mut bytes)
        .map_err(|error| anyhow::anyhow!("encode a histogram: {error}"))?;
    Ok(STANDARD.encode(bytes))
}

fn decode<T: Counter>(text: &str) -> anyhow::Result<Histogram<T>> {
    let bytes = STANDARD.decode(text).context("base64 of a histogram")?;
    let mut histogram = Reader::new()
        .deserialize(&mut bytes.as_slice())
        .map_err(|error| anyhow::anyhow!("decode a histogram: {error}"))?;
    histogram.auto(true);
    Ok(histogram)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MILLI: Duration = Duration::from_millis(1);

    fn seconds(recorder: &Recorder) -> Vec<(u64, u64)> {
        recorder
            .intervals()
            .map(|interval| (interval.from_s, interval.histogram.len()))
            .collect()
    }

    #[test]
    fn intervals_have_everything_and_the_total_leaves_out_the_warm_up() {
        let mut recorder = Recorder::measured_from(Duration::from_secs(2));
        for second in [5, 0, 2, 1, 5] {
            recorder.record(Duration::from_secs(second), MILLI);
        }
        assert_eq!(seconds(&recorder), [(0, 1), (1, 1), (2, 1), (5, 2)]);
        assert_eq!(recorder.total().len(), 3);
        assert_eq!(recorder.quantile(0.5), Some(MILLI));
        assert_eq!(Recorder::new().quantile(0.5), None);
        assert_eq!(recorder.between(0.5, 5.0).len(), 2);
        assert_eq!(recorder.between(5.0, f64::INFINITY).len(), 2);
    }

    #[test]
    fn a_long_run_gets_wider_intervals_and_loses_no_count() {
        let mut recorder = Recorder::new();
        for second in 0..5_000 {
            recorder.record(Duration::from_secs(second), MILLI);
        }
        let intervals = seconds(&recorder);
        assert!(intervals.len() <= INTERVALS, "{}", intervals.len());
        assert_eq!(intervals[1], (16, 16));
        assert_eq!(intervals.iter().map(|(_, count)| count).sum::<u64>(), 5_000);
        recorder.record(Duration::MAX, Duration::MAX);
        assert_eq!(recorder.total().len(), 5_001);
        assert!(recorder.quantile(1.0) >= Some(Duration::from_secs(24 * 3_600)));
        assert!(seconds(&recorder).len() <= INTERVALS);
    }

    #[test]
    fn merged_recorders_are_as_one() {
        let (mut all, mut left, mut right) = (Recorder::new(), Recorder::new(), Recorder::new());
        for second in 0..900u64 {
            let (at, value) = (Duration::from_secs(second), MILLI * (1 + second as u32));
            all.record(at, value);
            let part = if second < 500 { &mut left } else { &mut right };
            part.record(at, value);
        }
        left.merge(&right);
        assert_eq!(left, all);
    }

    #[test]
    fn a_recorder_is_read_as_it_was_written() {
        let mut recorder = Recorder::measured_from(Duration::from_millis(1_500));
        for value in 1..2_000u32 {
            recorder.record(MILLI * value, MILLI * (value % 97));
        }
        let text = serde_json::to_string(&recorder).unwrap();
        let read: Recorder = serde_json::from_str(&text).unwrap();
        assert_eq!(read, recorder);
        let mut read = read;
        read.record(Duration::ZERO, Duration::from_secs(3_000));
        read.record(Duration::from_secs(9), Duration::from_secs(3_000));
        assert!(read.quantile(1.0) >= Some(Duration::from_secs(3_000)));
        let wrong = text.replace("\"total\":\"H", "\"total\":\"!");
        let error = serde_json::from_str::<Recorder>(&wrong).unwrap_err();
        assert!(
            error.to_string().contains("base64 of a histogram"),
            "{error}"
        );
    }
}
