//! The producer: records in, in order; one outcome for each out.
//!
//! Promise: records reach the client in the order of the calls, also when its queue was full
//! meanwhile. After [`Sink::rebuild`] nothing that was handed over before is reported any more,
//! and nothing of it is written behind what comes after.

use std::collections::{HashMap, VecDeque};

use events::Class;
use kafka::{EnqueueError, KafkaConfig, Producer, producer::Reports};
use tracing::{error, info, warn};

use crate::core::{Letter, Record};
use crate::sink::letters::{Letters, Row};

const CLIENT_ID: &str = "tideline-relay";

/// What became of a tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is safe.
    Acked(u64),
    /// It is not.
    Failed(u64, Class),
}

/// See the module.
#[derive(Debug)]
pub struct Sink {
    config: KafkaConfig,
    producer: Producer,
    reports: Reports,
    letters: Letters,
    /// Letters on their way.
    rows: HashMap<u64, Row>,
    /// What the client had no room for. Bounded by what the core lets fly.
    backlog: VecDeque<(u64, kafka::Record)>,
    /// What the client refused at once.
    refused: VecDeque<Outcome>,
}

impl Sink {
    /// A producer, and the writer of dead letters' rows.
    ///
    /// # Errors
    /// When the client cannot be made.
    pub fn new(config: KafkaConfig, letters: Letters) -> Result<Self, kafka::Error> {
        let (producer, reports) = Producer::new(&config, CLIENT_ID)?;
        Ok(Self {
            config,
            producer,
            reports,
            letters,
            rows: HashMap::new(),
            backlog: VecDeque::new(),
            refused: VecDeque::new(),
        })
    }

    /// Hands a record over.
    pub fn produce(&mut self, tag: u64, record: Record) {
        self.hand_over(tag, record.into());
    }

    /// Hands a dead letter over.
    pub fn dead_letter(&mut self, tag: u64, letter: Letter) {
        warn!(
            event = %letter.event,
            reason = letter.reason.as_str(),
            topic = &*letter.topic,
            "row can never be produced: dead letter"
        );
        self.rows.insert(tag, Row::of(&letter));
        self.hand_over(tag, letter.into());
    }

    /// The next outcome; waits for it.
    ///
    /// # Cancel safety
    /// Cancel-safe: no outcome is lost.
    pub async fn next(&mut self) -> Outcome {
        loop {
            if let Some(outcome) = self.refused.pop_front() {
                return outcome;
            }
            tokio::select! {
                report = self.reports.recv() => match report {
                    Some(report) => {
                        if let Some(outcome) = self.judge(report) {
                            return outcome;
                        }
                    }
                    // The producer lives as long as this struct.
                    None => std::future::pending().await,
                },
                written = self.letters.written() => match written {
                    Some(tag) => return Outcome::Acked(tag),
                    None => std::future::pending().await,
                },
            }
        }
    }

    /// The next outcome, if one is there.
    pub fn try_next(&mut self) -> Option<Outcome> {
        loop {
            if let Some(outcome) = self.refused.pop_front() {
                return Some(outcome);
            }
            let report = self.reports.try_recv()?;
            if let Some(outcome) = self.judge(report) {
                return Some(outcome);
            }
        }
    }

    /// Whether the writer of dead letters' rows has ended, which it never does by itself.
    pub fn is_dead(&self) -> bool {
        self.letters.is_dead()
    }

    /// Whether records wait for room in the client.
    pub fn has_backlog(&self) -> bool {
        !self.backlog.is_empty()
    }

    /// Hands over what waits, as far as there is room.
    pub fn push_backlog(&mut self) {
        while let Some((tag, record)) = self.backlog.pop_front() {
            if !self.try_hand_over(tag, record, true) {
                return;
            }
        }
    }

    /// Throws the client with everything it holds away and makes a new one.
    ///
    /// # Errors
    /// When the new one cannot be made.
    pub async fn rebuild(&mut self) -> Result<(), kafka::Error> {
        if let Some((code, text)) = self.producer.fatal_error() {
            error!(%code, text, "kafka client failed for good");
        }
        let (producer, reports) = Producer::new(&self.config, CLIENT_ID)?;
        let old = std::mem::replace(&mut self.producer, producer);
        drop(std::mem::replace(&mut self.reports, reports));
        self.rows.clear();
        self.backlog.clear();
        self.refused.clear();
        old.close().await;
        info!("kafka client made anew");
        Ok(())
    }

    /// Ends the client.
    pub async fn close(self) {
        drop(self.reports);
        self.producer.close().await;
    }

    fn hand_over(&mut self, tag: u64, record: kafka::Record) {
        if self.backlog.is_empty() {
            let _taken = self.try_hand_over(tag, record, false);
        } else {
            self.backlog.push_back((tag, record));
        }
    }

    /// Whether the client took or refused it; when not, it waits in the backlog.
    fn try_hand_over(&mut self, tag: u64, record: kafka::Record, in_front: bool) -> bool {
        match self.producer.enqueue(record, tag) {
            Ok(()) => true,
            Err(EnqueueError::QueueFull(record)) => {
                if in_front {
                    self.backlog.push_front((tag, *record));
                } else {
                    self.backlog.push_back((tag, *record));
                }
                false
            }
            Err(error) => {
                let class = error.class();
                warn!(error = %runtime::report::chain(&error), class = class.as_str(), "kafka client refused a record");
                self.rows.remove(&tag);
                self.refused.push_back(Outcome::Failed(tag, class));
                true
            }
        }
    }

    fn judge(&mut self, report: kafka::DeliveryReport) -> Option<Outcome> {
        let tag = report.tag;
        let row = self.rows.remove(&tag);
        match report.result {
            Ok(position) => {
                let Some(row) = row else {
                    return Some(Outcome::Acked(tag));
                };
                // Acknowledged only when its row is written.
                let room = self
                    .letters
                    .enter(tag, row, position.partition, position.offset);
                (!room).then_some(Outcome::Failed(tag, Class::Outage))
            }
            Err(error) => {
                let class = error.class();
                warn!(%error, class = class.as_str(), "record not acknowledged");
                Some(Outcome::Failed(tag, class))
            }
        }
    }
}
