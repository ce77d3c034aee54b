//! Every metric of the sweep. Names and labels are constants of this file only.
//!
//! `tideline_ledger_…` is the account itself, so that every process that counts it can use the
//! same words; `tideline_sweep_…` is the sweep's work, `tideline_outbox_…` the state of the days.

use events::Stage;
use prometheus::{
    GaugeVec, Histogram, HistogramVec, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Opts,
    Registry,
};
use runtime::metrics::Families;

use crate::core::{DiscardReason, Standing};

/// Edges of the round histogram, seconds.
const ROUND_BUCKETS: &[f64] = &[
    0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0,
];

/// What a step of a round was, for failures.
const STEPS: [&str; 5] = ["look", "slot", "hop", "probe", "claim"];
/// What became of an outbox day.
const DAYS: [&str; 4] = ["kept", "made", "dropped", "held"];
/// What the housekeeping does.
const CHORES: [&str; 6] = ["days", "drop", "compact", "trim", "voids", CHORE_ACCOUNT];
/// The one of them that asks the broker.
pub(crate) const CHORE_ACCOUNT: &str = "account";

/// The metrics of one process.
#[derive(Clone, Debug)]
pub struct SweepMetrics {
    pub(crate) unaccounted: IntGaugeVec,
    pub(crate) accepted: IntGaugeVec,
    pub(crate) delivered: IntGaugeVec,
    pub(crate) dead_lettered: IntGaugeVec,
    pub(crate) discarded_ids: IntGaugeVec,
    pub(crate) in_flight: IntGaugeVec,
    pub(crate) missing: IntGaugeVec,
    pub(crate) marked: IntGauge,
    pub(crate) mark_lsn: IntGauge,
    pub(crate) oldest_missing: GaugeVec,
    pub(crate) redelivered: IntCounterVec,
    pub(crate) repeated: IntCounterVec,
    pub(crate) discarded: IntCounterVec,
    pub(crate) dead_letters: IntCounterVec,
    pub(crate) not_consumed: IntCounter,
    pub(crate) failures: IntCounterVec,
    pub(crate) rounds: IntCounterVec,
    pub(crate) round_seconds: HistogramVec,
    pub(crate) look_seconds: HistogramVec,
    pub(crate) epochs: IntCounter,
    pub(crate) requests: IntCounter,
    pub(crate) gaps: IntGaugeVec,
    pub(crate) chore_failures: IntCounterVec,
    pub(crate) chore_seconds: Histogram,
    pub(crate) compacted_rows: IntCounter,
    pub(crate) default_rows: IntGauge,
    pub(crate) days: IntGaugeVec,
    pub(crate) day_held: IntGauge,
    standing: IntGaugeVec,
}

impl SweepMetrics {
    /// Registers every metric, with each label value that is known at zero.
    ///
    /// # Errors
    /// When the registry has one of them already.
    pub fn new(registry: &Registry) -> Result<Self, prometheus::Error> {
        let make = Families::of(registry);
        let metrics = Self {
            unaccounted: make.gauges("tideline_ledger_unaccounted", "Committed events that no entry, dead letter or discard accounts for, as of the last look; at rest this is 0 (D-9).", &["stage"])?,
            accepted: make.gauges("tideline_ledger_accepted", "Committed events in the outbox: the sum of what is delivered, dead-lettered, discarded and unaccounted.", &["stage"])?,
            delivered: make.gauges("tideline_ledger_delivered", "Events in the ledger of the stage, those that the stage does not consume included.", &["stage"])?,
            dead_lettered: make.gauges("tideline_ledger_dead_lettered", "Events that an open dead letter accounts for.", &["stage"])?,
            discarded_ids: make.gauges("tideline_ledger_discarded", "Events that are discarded with a reason.", &["stage"])?,
            in_flight: make.gauges("tideline_ledger_in_flight", "Events on their way: unpublished ones that the slot has not passed, and for delivered also the records that the groups have not committed.", &["stage"])?,
            missing: make.gauges("tideline_sweep_missing", "Events that the last look found in no account.", &["stage"])?,
            marked: make.gauge("tideline_sweep_marked", "Unpublished events that the last look with a mark in the log found.")?,
            mark_lsn: make.gauge("tideline_sweep_mark_lsn_bytes", "That mark: a relay that has confirmed it has passed all of them.")?,
            oldest_missing: make.keep(GaugeVec::new(Opts::new("tideline_sweep_oldest_missing_seconds", "Age of the oldest event that the last look found in no account."), &["stage"])?)?,
            redelivered: make.counters("tideline_sweep_redelivered_total", "Events sent again and acknowledged.", &["stage"])?,
            repeated: make.counters("tideline_sweep_repeated_total", "Events sent for the third time or more: something keeps them from passing.", &["stage"])?,
            discarded: make.counters("tideline_sweep_discarded_total", "Events given up, by reason; a rebuild repairs them.", &["stage", "reason"])?,
            dead_letters: make.counters("tideline_sweep_dead_letters_total", "Rows that can never be produced and became dead letters here.", &["stage"])?,
            not_consumed: make.counter("tideline_sweep_not_consumed_total", "Events entered in a ledger because the stage does not consume their type.")?,
            failures: make.counters("tideline_sweep_failures_total", "Steps of a round that failed and are done again.", &["stage", "step"])?,
            rounds: make.counters("tideline_sweep_rounds_total", "Looks that came to an end: with a claim, or with nothing missing.", &["stage"])?,
            round_seconds: make.histograms("tideline_sweep_round_seconds", "From the start of a look to the end of its claim, or of the look when nothing was missing.", &["stage"], ROUND_BUCKETS)?,
            look_seconds: make.histograms("tideline_sweep_look_seconds", "Time of one look.", &["stage"], ROUND_BUCKETS)?,
            epochs: make.counter("tideline_sweep_epochs_total", "Epochs that this process began after a failover or a restore.")?,
            requests: make.counter("tideline_sweep_requests_total", "Requests to look at once that were honoured.")?,
            gaps: make.gauges("tideline_outbox_gap_ids", "Ids that no row has: noted, or settled since every transaction of their time is over.", &["state"])?,
            chore_failures: make.counters("tideline_sweep_housekeeping_failures_total", "Parts of the housekeeping that failed and are done again.", &["part"])?,
            chore_seconds: make.histogram("tideline_sweep_housekeeping_seconds", "Time of one round of housekeeping.", ROUND_BUCKETS)?,
            compacted_rows: make.counter("tideline_sweep_compacted_rows_total", "Ledger rows that compaction saved.")?,
            default_rows: make.gauge("tideline_outbox_default_rows", "Rows in the default partition: days that nobody made; meant to be 0.")?,
            days: make.gauges("tideline_outbox_days", "Outbox days: those there are, made and dropped by this process, and expired but held by an unfinished row or a lock.", &["state"])?,
            day_held: make.gauge("tideline_outbox_day_held", "1 while an expired outbox day cannot be dropped.")?,
            standing: make.gauges("tideline_sweep_standing", "1 for where the stage's round stands.", &["stage", "standing"])?,
        };
        metrics.zero();
        Ok(metrics)
    }

    /// Says where a stage stands.
    pub(crate) fn stand(&self, stage: Stage, standing: Standing) {
        for each in Standing::ALL {
            let labels = [stage.as_str(), each.as_str()];
            let value = i64::from(each == standing);
            self.standing.with_label_values(&labels).set(value);
        }
    }

    fn zero(&self) {
        for stage in Stage::ALL.map(Stage::as_str) {
            for gauges in [
                &self.unaccounted,
                &self.accepted,
                &self.delivered,
                &self.dead_lettered,
                &self.discarded_ids,
                &self.in_flight,
                &self.missing,
            ] {
                gauges.with_label_values(&[stage]).set(0);
            }
            self.oldest_missing.with_label_values(&[stage]).set(0.0);
            for counters in [
                &self.redelivered,
                &self.repeated,
                &self.dead_letters,
                &self.rounds,
            ] {
                let _zero = counters.with_label_values(&[stage]);
            }
            for reason in DiscardReason::ALL {
                let labels = [stage, reason.as_str()];
                let _zero = self.discarded.with_label_values(&labels);
            }
            for step in STEPS {
                let _zero = self.failures.with_label_values(&[stage, step]);
            }
            let _zero = self.round_seconds.with_label_values(&[stage]);
            let _zero = self.look_seconds.with_label_values(&[stage]);
        }
        for stage in Stage::ALL {
            self.stand(stage, Standing::Idle);
        }
        for state in DAYS {
            self.days.with_label_values(&[state]).set(0);
        }
        for state in ["noted", "settled"] {
            self.gaps.with_label_values(&[state]).set(0);
        }
        for part in CHORES {
            let _zero = self.chore_failures.with_label_values(&[part]);
        }
    }
}

/// A count as the value of a gauge.
pub(crate) fn gauge(count: impl TryInto<i64>) -> i64 {
    count.try_into().unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_family_is_there_from_the_start_with_a_sentence() {
        let registry = Registry::new();
        let metrics = SweepMetrics::new(&registry).expect("registers");
        let families = registry.gather();
        assert_eq!(
            families.len(),
            29,
            "each of the struct's fields has a series"
        );
        for family in families {
            let name = family.name();
            let known = ["tideline_sweep_", "tideline_ledger_", "tideline_outbox_"];
            assert!(
                known.iter().any(|prefix| name.starts_with(prefix)),
                "{name}"
            );
            assert!(family.help().ends_with('.'), "{name}");
        }
        metrics.stand(Stage::Published, Standing::Blocked);
        let at = |standing: Standing| {
            let labels = ["published", standing.as_str()];
            metrics.standing.with_label_values(&labels).get()
        };
        assert_eq!((at(Standing::Blocked), at(Standing::Idle)), (1, 0));
    }
}
