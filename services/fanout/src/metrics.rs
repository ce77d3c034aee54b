//! Every metric of fan-out. Names and labels are constants of this file only.

use events::Class;
use prometheus::{
    Gauge, Histogram, HistogramVec, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Registry,
};
use runtime::metrics::Families;

use crate::core::{delivery::Outcome, plan::AudienceClass};

/// Edges of the latency histograms, seconds; the objectives are among them.
const LATENCY_BUCKETS: &[f64] = &[
    0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0,
    1800.0, 3600.0,
];

/// The states of the lane; exactly one is 1.
pub(crate) const STATES: [&str; 5] = ["starting", "standby", "running", "paused", "draining"];

/// The metrics of one process.
#[derive(Clone, Debug)]
pub struct FanoutMetrics {
    pub(crate) posts: IntCounterVec,
    pub(crate) rows_written: IntCounter,
    pub(crate) rows_expired: IntCounter,
    pub(crate) rows_deleted: IntCounter,
    pub(crate) rows_outstanding: IntGauge,
    pub(crate) records_in_flight: IntGauge,
    pub(crate) oldest_unfinished: Gauge,
    pub(crate) ghosts: IntCounter,
    pub(crate) retries: IntCounterVec,
    pub(crate) dead_letters: IntCounterVec,
    pub(crate) commits: IntCounterVec,
    pub(crate) delivery_seconds: HistogramVec,
    pub(crate) page_write_seconds: Histogram,
    pub(crate) rebalances: IntCounterVec,
    pub(crate) offsets_lost: IntCounter,
    pub(crate) sweep_requests: IntCounter,
    pub(crate) progress: IntCounterVec,
    pub(crate) assigned: IntGauge,
    state: IntGaugeVec,
}

impl FanoutMetrics {
    /// Registers every metric, with each label value that is known at zero.
    ///
    /// # Errors
    /// When the registry has one of them already.
    pub fn new(registry: &Registry) -> Result<Self, prometheus::Error> {
        let make = Families::of(registry);
        let metrics = Self {
            posts: make.counters(
                "tideline_fanout_posts_total",
                "Events finished, by how they ended.",
                &["result"],
            )?,
            rows_written: make.counter(
                "tideline_fanout_rows_written_total",
                "Timeline rows written.",
            )?,
            rows_expired: make.counter(
                "tideline_fanout_rows_expired_total",
                "Timeline rows not written because their time was over.",
            )?,
            rows_deleted: make.counter(
                "tideline_fanout_rows_deleted_total",
                "Timeline rows deleted.",
            )?,
            rows_outstanding: make.gauge(
                "tideline_fanout_rows_outstanding",
                "Rows read and not yet written or deleted.",
            )?,
            records_in_flight: make
                .gauge("tideline_fanout_records_in_flight", "Records in work.")?,
            oldest_unfinished: make.seconds(
                "tideline_fanout_oldest_unfinished_seconds",
                "How long the oldest unfinished record has been in work.",
            )?,
            ghosts: make.counter(
                "tideline_fanout_ghosts_total",
                "Events of posts that are not in the database.",
            )?,
            retries: make.counters(
                "tideline_fanout_retries_total",
                "Steps done again, by class of failure; bug: the work on a record panicked.",
                &["class"],
            )?,
            dead_letters: make.counters(
                "tideline_fanout_dead_letters_total",
                "Dead letters stored, by reason.",
                &["reason"],
            )?,
            commits: make.counters(
                "tideline_fanout_commits_total",
                "Offsets handed over for commit, and refusals.",
                &["result"],
            )?,
            delivery_seconds: make.histograms(
                "tideline_fanout_delivery_seconds",
                "From the post to the row of the last follower.",
                &["audience"],
                LATENCY_BUCKETS,
            )?,
            page_write_seconds: make.histogram(
                "tideline_fanout_page_write_seconds",
                "Time to write or delete the rows of one follower page.",
                LATENCY_BUCKETS,
            )?,
            rebalances: make.counters(
                "tideline_fanout_rebalances_total",
                "Changes of the assignment, by kind.",
                &["kind"],
            )?,
            offsets_lost: make.counter(
                "tideline_fanout_offsets_lost_total",
                "Jumps of a partition's offsets: records are gone, or the topic is a new one.",
            )?,
            sweep_requests: make.counter(
                "tideline_fanout_sweep_requests_total",
                "How often the sweep was asked to look because offsets were lost.",
            )?,
            progress: make.counters(
                "tideline_fanout_progress_total",
                "Deliveries on their way into the ledger, by what became of them.",
                &["result"],
            )?,
            assigned: make.gauge(
                "tideline_fanout_assigned_partitions",
                "Partitions this process holds.",
            )?,
            state: make.gauges(
                "tideline_fanout_state",
                "1 for the state the lane is in.",
                &["state"],
            )?,
        };
        metrics.zero();
        Ok(metrics)
    }

    /// Makes `state` the one the lane is in.
    pub(crate) fn enter(&self, state: &str) {
        for name in STATES {
            self.state
                .with_label_values(&[name])
                .set(i64::from(name == state));
        }
    }

    fn zero(&self) {
        for outcome in Outcome::ALL {
            let _zero = self.posts.with_label_values(&[outcome.as_str()]);
        }
        let _zero = self.posts.with_label_values(&["dead_letter"]);
        for class in [Class::Outage, Class::Unsure, Class::Bug] {
            let _zero = self.retries.with_label_values(&[class.as_str()]);
        }
        for audience in AudienceClass::ALL {
            let _zero = self
                .delivery_seconds
                .with_label_values(&[audience.as_str()]);
        }
        for kind in ["assigned", "revoked", "lost", "fenced"] {
            let _zero = self.rebalances.with_label_values(&[kind]);
        }
        for result in ["handed_over", "refused"] {
            let _zero = self.commits.with_label_values(&[result]);
        }
        for result in ["recorded", "dropped", "other_epoch"] {
            let _zero = self.progress.with_label_values(&[result]);
        }
        self.enter("starting");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_the_prefix_and_every_family_has_help() {
        let registry = Registry::new();
        let _metrics = FanoutMetrics::new(&registry).expect("registers");
        let families = registry.gather();
        assert!(families.len() > 12);
        for family in families {
            assert!(
                family.name().starts_with("tideline_fanout_"),
                "{}",
                family.name()
            );
            assert!(family.help().ends_with('.'), "{}", family.name());
        }
    }
}
