//! One metric as an interval log of HdrHistogram, version 2.
//!
//! The intervals stand without a tag and have two significant digits; the total, which leaves out
//! the warm-up and has three, follows under the tag `total`.

use std::{
    io::{self, Write},
    time::{Duration, SystemTime},
};

use hdrhistogram::serialization::{
    V2DeflateSerializer,
    interval_log::{IntervalLogWriterBuilder, Tag},
};

use crate::Recorder;

/// Values are in microseconds; the readable column of the log is in milliseconds.
const MICROS_PER_MILLI: f64 = 1_000.0;

/// Writes the log of one metric.
///
/// # Errors
/// When `out` does not take it.
pub(crate) fn write(
    out: &mut impl Write,
    metric: &str,
    recorder: &Recorder,
    started_unix_ms: u64,
    run: Duration,
) -> io::Result<()> {
    let mut serializer = V2DeflateSerializer::new();
    let started = SystemTime::UNIX_EPOCH + Duration::from_millis(started_unix_ms);
    let mut log = IntervalLogWriterBuilder::new()
        .add_comment(&format!("[Histogram log format version 1.3] {metric}"))
        .add_comment("Values in microseconds; the last column before the histogram in milliseconds")
        .with_start_time(started)
        .with_base_time(started)
        .with_max_value_divisor(MICROS_PER_MILLI)
        .begin_log_with(out, &mut serializer)?;
    let faulty = |error| io::Error::other(format!("{error}"));
    for interval in recorder.intervals() {
        log.write_histogram(
            interval.histogram,
            Duration::from_secs(interval.from_s),
            Duration::from_secs(interval.width_s),
            None,
        )
        .map_err(faulty)?;
    }
    log.write_histogram(recorder.total(), Duration::ZERO, run, Tag::new("total"))
        .map_err(faulty)
}
