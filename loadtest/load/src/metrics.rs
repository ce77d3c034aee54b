//! What the services say of themselves: Prometheus texts, read every second.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context;
use report::Series;

use crate::clock::Clock;

/// How long one answer may take.
const TIMEOUT: Duration = Duration::from_secs(3);

const ROWS_WRITTEN: &str = "tideline_fanout_rows_written_total";
const IN_FLIGHT: &str = "tideline_ledger_in_flight";
const REDELIVERED: &str = "tideline_sweep_redelivered_total";

/// One look at all services together; none where no service says it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Seen {
    /// Events that are not published.
    pub unpublished: Option<f64>,
    /// Records that the consumer groups have not finished.
    pub lag: Option<f64>,
    /// Rows written by all workers, ever.
    pub rows_written: Option<f64>,
    /// Events that the sweep has sent again, ever.
    pub redelivered: Option<f64>,
}

/// Reads the services' metrics.
#[derive(Debug)]
pub struct Metrics {
    http: reqwest::Client,
    urls: Vec<String>,
    kept: Mutex<Kept>,
}

#[derive(Debug)]
struct Kept {
    unpublished: Series,
    lag: Series,
}

impl Metrics {
    /// Reads from these addresses (`http://host:port/metrics`).
    ///
    /// # Errors
    /// When no HTTP client can be made.
    pub fn new(urls: Vec<String>) -> anyhow::Result<Self> {
        let http = reqwest::Client::builder()
            .timeout(TIMEOUT)
            .build()
            .context("making an HTTP client")?;
        Ok(Self {
            http,
            urls,
            kept: Mutex::new(Kept {
                unpublished: Series::new("not published", "events"),
                lag: Series::new("lag of the fan-out groups", "records"),
            }),
        })
    }

    /// Looks once. A service that does not answer says nothing.
    pub async fn look(&self) -> Seen {
        let mut seen = Seen::default();
        for url in &self.urls {
            let Ok(text) = self.text(url).await else {
                continue;
            };
            let stage = |stage: &str| sum(&text, IN_FLIGHT, &format!("stage=\"{stage}\""));
            add(&mut seen.unpublished, stage("published"));
            add(&mut seen.lag, stage("delivered"));
            add(&mut seen.rows_written, sum(&text, ROWS_WRITTEN, ""));
            add(&mut seen.redelivered, sum(&text, REDELIVERED, ""));
        }
        seen
    }

    /// Keeps a look for the report.
    pub fn note(&self, clock: &Clock, seen: &Seen) {
        let now = clock.now();
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.unpublished.push(now, seen.unpublished);
        kept.lag.push(now, seen.lag);
    }

    /// What was kept.
    pub fn series(&self) -> Vec<Series> {
        if self.urls.is_empty() {
            return Vec::new();
        }
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        vec![kept.lag.clone(), kept.unpublished.clone()]
    }

    async fn text(&self, url: &str) -> reqwest::Result<String> {
        let answer = self.http.get(url).send().await?.error_for_status()?;
        answer.text().await
    }
}

fn add(to: &mut Option<f64>, value: Option<f64>) {
    if let Some(value) = value {
        *to = Some(to.unwrap_or(0.0) + value);
    }
}

/// The sum of all series of a metric whose labels hold `label`; none when there is no such series.
pub fn sum(text: &str, name: &str, label: &str) -> Option<f64> {
    let value = |line: &str| {
        let rest = line.strip_prefix(name)?;
        let (labels, number) = match rest.as_bytes().first()? {
            b' ' => ("", rest),
            b'{' => rest.rsplit_once('}')?,
            _ => return None,
        };
        if !labels.contains(label) {
            return None;
        }
        number.split_whitespace().next()?.parse::<f64>().ok()
    };
    text.lines()
        .filter_map(value)
        .reduce(|sum, value| sum + value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn series_are_summed_by_whole_name_and_label() {
        let text = "# HELP a_total Things.\n# TYPE a_total counter\na_total{x=\"} 1\"} 2\na_total{x=\"b\"} 3.5 17\n\
                    a_total_created 9\nb 4\n";
        assert_eq!(sum(text, "a_total", ""), Some(5.5));
        assert_eq!(sum(text, "a_total", "x=\"b\""), Some(3.5));
        assert_eq!(sum(text, "b", ""), Some(4.0));
        assert_eq!(sum(text, "a", ""), None);
        assert_eq!(sum(text, "b", "x"), None);
    }
}
