//! When operations are due: arrival processes as streams of times since the start.
//!
//! The times follow from the process and the seed alone. Nothing here knows whether an earlier
//! operation has been answered: that is what makes the load open.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use fastrand::Rng;

/// How operations arrive. Rates are per second.
#[derive(Clone, Debug, PartialEq)]
pub enum Arrival {
    /// Evenly spaced.
    Constant {
        /// Rate.
        rate: f64,
    },
    /// Independent of one another: exponential gaps.
    Poisson {
        /// Mean rate.
        rate: f64,
    },
    /// Evenly spaced, at a rate that changes linearly over the whole duration.
    Ramp {
        /// Rate at the start.
        from: f64,
        /// Rate at the end.
        to: f64,
    },
    /// Evenly spaced, at a base rate with peaks at regular times.
    Burst {
        /// Rate between the peaks.
        base: f64,
        /// Rate in a peak.
        peak: f64,
        /// From the start of one peak to the next; the first begins after one such time.
        every: Duration,
        /// How long a peak lasts.
        length: Duration,
    },
    /// The times of a file, one a line, in seconds since the start, ascending.
    Replay {
        /// The file.
        trace: PathBuf,
    },
}

impl Arrival {
    /// How many operations are due within `duration`, on average for Poisson.
    ///
    /// # Errors
    /// When a trace cannot be read.
    pub fn expected(&self, duration: Duration) -> anyhow::Result<f64> {
        let seconds = duration.as_secs_f64();
        Ok(match self {
            Self::Constant { rate } | Self::Poisson { rate } => rate * seconds,
            Self::Ramp { from, to } => (from + to) / 2.0 * seconds,
            Self::Burst {
                base,
                peak,
                every,
                length,
            } => {
                let (every, length) = (every.as_secs_f64(), length.as_secs_f64());
                let peaks = (seconds / every).floor();
                let last = (seconds - peaks * every).min(length);
                let in_peaks =
                    (peaks - 1.0).max(0.0) * length + if peaks > 0.0 { last } else { 0.0 };
                base * (seconds - in_peaks) + peak * in_peaks
            }
            Self::Replay { trace } => {
                let mut count = 0.0;
                for at in times(trace)? {
                    if at? < duration {
                        count += 1.0;
                    }
                }
                count
            }
        })
    }

    /// The highest rate that is planned.
    pub fn peak(&self) -> Option<f64> {
        match self {
            Self::Constant { rate } | Self::Poisson { rate } => Some(*rate),
            Self::Ramp { from, to } => Some(from.max(*to)),
            Self::Burst { base, peak, .. } => Some(base.max(*peak)),
            Self::Replay { .. } => None,
        }
    }

    /// The times below `duration`, ascending.
    ///
    /// # Errors
    /// When a trace cannot be opened. Later faults of a trace end the stream: it was checked when
    /// the scenario was read.
    pub fn times(&self, duration: Duration, rng: Rng) -> anyhow::Result<Times> {
        let steps: Box<dyn Iterator<Item = f64> + Send> = match self {
            Self::Constant { rate } => even(ConstantRate(*rate)),
            Self::Poisson { rate } => poisson(*rate, rng),
            Self::Ramp { from, to } => even(Linear {
                from: *from,
                slope: (to - from) / duration.as_secs_f64(),
                end: duration.as_secs_f64(),
            }),
            Self::Burst {
                base,
                peak,
                every,
                length,
            } => even(Peaks {
                base: *base,
                peak: *peak,
                every: every.as_secs_f64(),
                length: length.as_secs_f64(),
            }),
            Self::Replay { trace } => {
                Box::new(times(trace)?.map_while(|at| Some(at.ok()?.as_secs_f64())))
            }
        };
        Ok(Times { steps, duration })
    }
}

/// A stream of due times.
pub struct Times {
    steps: Box<dyn Iterator<Item = f64> + Send>,
    duration: Duration,
}

impl std::fmt::Debug for Times {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Times(below {:?})", self.duration)
    }
}

impl Iterator for Times {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        let at = Duration::try_from_secs_f64(self.steps.next()?).ok()?;
        (at < self.duration).then_some(at)
    }
}

/// Checks a trace to its end and answers how many times it has.
///
/// # Errors
/// With the number of the first line that is no time, or goes back.
pub fn check_trace(trace: &Path) -> anyhow::Result<u64> {
    let mut before = Duration::ZERO;
    let mut count = 0;
    for at in times(trace)? {
        let at = at?;
        ensure!(
            at >= before,
            "{}: time {} is earlier than the one before it; sort the file",
            trace.display(),
            count + 1
        );
        (before, count) = (at, count + 1);
    }
    ensure!(count > 0, "{} holds no time", trace.display());
    Ok(count)
}

fn times(trace: &Path) -> anyhow::Result<impl Iterator<Item = anyhow::Result<Duration>> + use<>> {
    let file = File::open(trace).with_context(|| format!("opening {}", trace.display()))?;
    let name = trace.display().to_string();
    let read = move |(index, line): (usize, std::io::Result<String>)| {
        let line = match line.with_context(|| format!("reading {name}")) {
            Ok(line) => line,
            Err(error) => return Some(Err(error)),
        };
        let text = line.trim();
        if text.is_empty() || text.starts_with('#') {
            return None;
        }
        Some(time(text).with_context(|| format!("{name} line {}", index + 1)))
    };
    Ok(BufReader::new(file).lines().enumerate().filter_map(read))
}

fn time(text: &str) -> anyhow::Result<Duration> {
    let Ok(seconds) = text.parse::<f64>() else {
        bail!("{text:?} is not a number of seconds since the start");
    };
    Duration::try_from_secs_f64(seconds)
        .with_context(|| format!("{text:?} is not a time since the start"))
}

fn poisson(rate: f64, mut rng: Rng) -> Box<dyn Iterator<Item = f64> + Send> {
    let mut at = 0.0;
    Box::new(std::iter::from_fn(move || {
        // 1 - f64() is above zero, so the logarithm is finite.
        at += -(1.0 - rng.f64()).ln() / rate;
        Some(at)
    }))
}

/// Evenly spaced: each arrival comes when the rate has summed up to one more.
fn even(rate: impl Rate + 'static) -> Box<dyn Iterator<Item = f64> + Send> {
    let mut count = 0.0;
    Box::new(std::iter::from_fn(move || {
        let at = rate.when(count)?;
        count += 1.0;
        Some(at)
    }))
}

/// A rate over time, by the inverse of its sum.
trait Rate: Send {
    /// When the sum over the rate reaches `count`; none when it never does.
    fn when(&self, count: f64) -> Option<f64>;
}

struct ConstantRate(f64);

impl Rate for ConstantRate {
    fn when(&self, count: f64) -> Option<f64> {
        (self.0 > 0.0).then(|| count / self.0)
    }
}

struct Linear {
    from: f64,
    slope: f64,
    end: f64,
}

impl Rate for Linear {
    fn when(&self, count: f64) -> Option<f64> {
        if self.slope.abs() < 1e-12 {
            return ConstantRate(self.from).when(count);
        }
        // from·t + slope·t²/2 = count, solved in the form that does not cancel.
        let root = (self.from * self.from + 2.0 * self.slope * count).sqrt();
        let at = 2.0 * count / (self.from + root);
        // A count of zero at a rate of zero is the start itself.
        let at = if count == 0.0 { 0.0 } else { at };
        (at <= self.end).then_some(at)
    }
}

struct Peaks {
    base: f64,
    peak: f64,
    every: f64,
    length: f64,
}

impl Rate for Peaks {
    fn when(&self, count: f64) -> Option<f64> {
        let first = self.base * self.every;
        if count < first {
            return Some(count / self.base);
        }
        // After the first stretch every period begins with a peak.
        let in_peak = self.peak * self.length;
        let period = in_peak + self.base * (self.every - self.length);
        if period <= 0.0 {
            return None;
        }
        let rest = count - first;
        let periods = (rest / period).floor();
        let rest = rest - periods * period;
        let begin = self.every * (1.0 + periods);
        let within = if rest <= in_peak {
            rest / self.peak
        } else {
            self.length + (rest - in_peak) / self.base
        };
        Some(begin + within)
    }
}

#[cfg(test)]
mod tests;
