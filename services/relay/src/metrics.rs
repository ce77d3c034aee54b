//! The relay's metrics. Every series is there from the start, at zero.

use events::Class;
use prometheus::{Histogram, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Registry};
use runtime::metrics::Families;

use crate::core::{DeadReason, Gauges, Ignored, State};
use crate::source::{Happened, Request};

/// Outcomes of a record, as label values.
const ACKED: &str = "acked";
const DEAD_LETTER: &str = "dead_letter";

/// Edges of the time from the commit to the acknowledgement, seconds.
const COMMIT_TO_ACK_BUCKETS: &[f64] = &[
    0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0,
    3600.0,
];

/// The metrics of one process; what each means is its help text.
#[derive(Debug)]
pub struct RelayMetrics {
    state: IntGaugeVec,
    records_in_flight: IntGauge,
    bytes_in_flight: IntGauge,
    records: IntCounterVec,
    transactions: IntCounter,
    received_lsn: IntGauge,
    acked_lsn: IntGauge,
    confirmed_lsn: IntGauge,
    reconnects: IntCounterVec,
    commit_to_ack: Histogram,
    dead_letters: IntCounterVec,
    slot_gaps: IntCounter,
    publication_gaps: IntCounter,
    other_server: IntCounter,
    slots_recreated: IntCounter,
    slots_advanced: IntCounter,
    sweep_requests: IntCounterVec,
    ignored: IntCounterVec,
    ledger_failures: IntCounter,
    idle_advances: IntCounter,
}

impl RelayMetrics {
    /// Registers them.
    ///
    /// # Errors
    /// When a name is taken.
    pub fn new(registry: &Registry) -> Result<Self, prometheus::Error> {
        let make = Families::of(registry);
        let counters = |name, help, label, values: &[&str]| {
            let counters = make.counters(name, help, &[label])?;
            for value in values {
                counters.with_label_values(&[*value]).reset();
            }
            Ok::<_, prometheus::Error>(counters)
        };
        let metrics = Self {
            state: make.gauges(
                "tideline_relay_state",
                "1 for the state that the relay is in, 0 for all others.",
                &["state"],
            )?,
            commit_to_ack: make.histogram(
                "tideline_relay_commit_to_ack_seconds",
                "Time from the commit in Postgres to the broker's acknowledgement of a record.",
                COMMIT_TO_ACK_BUCKETS,
            )?,
            records_in_flight: make.gauge(
                "tideline_relay_records_in_flight",
                "Records that are not acknowledged.",
            )?,
            bytes_in_flight: make.gauge(
                "tideline_relay_bytes_in_flight",
                "Bytes of records that are not acknowledged.",
            )?,
            records: counters(
                "tideline_relay_records_total",
                "Records by what became of them.",
                "result",
                &[
                    ACKED,
                    DEAD_LETTER,
                    "outage",
                    "record",
                    "unsure",
                    "config",
                    "bug",
                ],
            )?,
            transactions: make.counter(
                "tideline_relay_transactions_total",
                "Transactions received whole.",
            )?,
            received_lsn: make.gauge(
                "tideline_relay_received_lsn_bytes",
                "Position in the log up to which all arrived.",
            )?,
            acked_lsn: make.gauge(
                "tideline_relay_acked_lsn_bytes",
                "Position up to which the broker has all.",
            )?,
            confirmed_lsn: make.gauge(
                "tideline_relay_confirmed_lsn_bytes",
                "Position confirmed to Postgres.",
            )?,
            reconnects: counters(
                "tideline_relay_reconnects_total",
                "Replication connections that ended or failed, by the state that followed.",
                "reason",
                &State::ALL.map(State::as_str),
            )?,
            dead_letters: counters(
                "tideline_relay_dead_letters_total",
                "Rows that can never be produced, by reason.",
                "reason",
                &DeadReason::ALL.map(DeadReason::as_str),
            )?,
            slot_gaps: make.counter(
                "tideline_relay_slot_gaps_total",
                "How often the slot was found missing or lost.",
            )?,
            publication_gaps: make.counter(
                "tideline_relay_publication_gaps_total",
                "How often the publication was found missing or insufficient.",
            )?,
            other_server: make.counter(
                "tideline_relay_epoch_changes_total",
                "Connections to a server or timeline that is not the one of the newest epoch.",
            )?,
            slots_recreated: make.counter(
                "tideline_relay_slot_recreated_total",
                "How often a lost slot was made anew; the sweep delivers the rows in between.",
            )?,
            slots_advanced: make.counter(
                "tideline_relay_slot_advanced_total",
                "How often the slot was moved past rows that the publication did not cover.",
            )?,
            sweep_requests: counters(
                "tideline_relay_sweep_requests_total",
                "How often the sweep was asked to look, by reason.",
                "reason",
                &Request::ALL.map(Request::as_str),
            )?,
            ignored: counters(
                "tideline_relay_ignored_messages_total",
                "Messages that mean nothing to the relay, by kind.",
                "kind",
                &Ignored::ALL.map(Ignored::as_str),
            )?,
            ledger_failures: make.counter(
                "tideline_relay_ledger_failures_total",
                "Published ids that did not reach the ledger.",
            )?,
            idle_advances: make.counter(
                "tideline_relay_idle_advances_total",
                "How often a keepalive moved the confirmed position of a quiet outbox.",
            )?,
        };
        metrics.enter(State::Connecting);
        Ok(metrics)
    }

    /// Shows a state.
    pub fn enter(&self, state: State) {
        for each in State::ALL {
            self.state
                .with_label_values(&[each.as_str()])
                .set(i64::from(each == state));
        }
    }

    /// A connection ended, or an attempt failed, and this state followed.
    pub fn reconnect(&self, state: State) {
        self.reconnects.with_label_values(&[state.as_str()]).inc();
    }

    /// A state began that may stand for lost rows.
    pub fn gap(&self, state: State) {
        match state {
            State::SlotLost => self.slot_gaps.inc(),
            State::PublicationGap => self.publication_gaps.inc(),
            State::Connecting
            | State::Standby
            | State::Streaming
            | State::SinkUnavailable
            | State::SchemaError => {}
        }
    }

    /// A record is at the broker, so many seconds after its commit.
    pub fn published(&self, seconds: f64) {
        self.records.with_label_values(&[ACKED]).inc();
        self.commit_to_ack.observe(seconds.max(0.0));
    }

    /// A record was not acknowledged.
    pub fn failed(&self, class: Class) {
        self.records.with_label_values(&[class.as_str()]).inc();
    }

    /// A row became a dead letter.
    pub fn dead_letter(&self, reason: DeadReason) {
        self.records.with_label_values(&[DEAD_LETTER]).inc();
        self.dead_letters
            .with_label_values(&[reason.as_str()])
            .inc();
    }

    /// A message was skipped.
    pub fn ignored(&self, kind: Ignored) {
        self.ignored.with_label_values(&[kind.as_str()]).inc();
    }

    /// A connection attempt did this.
    pub fn happened(&self, happened: &Happened) {
        self.other_server.inc_by(u64::from(happened.other_server));
        self.slots_recreated
            .inc_by(u64::from(happened.slot_recreated));
        // A slot that was made anew has left the gap behind as well, without being moved.
        let advanced = happened.gap_mended && !happened.slot_recreated;
        self.slots_advanced.inc_by(u64::from(advanced));
        for request in &happened.requests {
            self.sweep_requests
                .with_label_values(&[request.as_str()])
                .inc();
        }
    }

    /// The counter that the ledger counts on.
    pub fn ledger_failures(&self) -> IntCounter {
        self.ledger_failures.clone()
    }

    /// Shows what the core counts.
    pub fn show(&self, gauges: &Gauges) {
        let signed = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        let count = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
        self.records_in_flight.set(count(gauges.rows));
        self.bytes_in_flight.set(count(gauges.bytes));
        self.received_lsn.set(signed(gauges.received.as_u64()));
        self.acked_lsn.set(signed(gauges.acked.as_u64()));
        self.confirmed_lsn.set(signed(gauges.confirmed.as_u64()));
        self.transactions
            .inc_by(gauges.transactions.saturating_sub(self.transactions.get()));
        self.idle_advances.inc_by(
            gauges
                .idle_advances
                .saturating_sub(self.idle_advances.get()),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_series_is_there_from_the_start() {
        let registry = Registry::new();
        let metrics = RelayMetrics::new(&registry).unwrap();
        let families = registry.gather();
        let series = |name: &str| {
            families
                .iter()
                .find(|f| f.name() == name)
                .map_or(0, |f| f.get_metric().len())
        };
        assert_eq!(series("tideline_relay_state"), State::ALL.len());
        assert_eq!(
            series("tideline_relay_dead_letters_total"),
            DeadReason::ALL.len()
        );
        assert_eq!(
            series("tideline_relay_ignored_messages_total"),
            Ignored::ALL.len()
        );
        assert_eq!(series("tideline_relay_reconnects_total"), State::ALL.len());
        assert!(
            RelayMetrics::new(&registry).is_err(),
            "names are taken once"
        );
        metrics.gap(State::SlotLost);
        assert_eq!(metrics.slot_gaps.get(), 1);
    }
}
