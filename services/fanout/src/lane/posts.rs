//! The posts lane: one record, from its bytes to the end of its delivery.
//!
//! Order and failure promise: `handle` returns `Ok` only when the record is finished: every row
//! written, or the dead letter acknowledged by the broker and then entered in Postgres. Only
//! after that may its offset move (D-6). An outage of anything is waited out, never skipped
//! (D-12).

use std::{
    panic::AssertUnwindSafe,
    time::{SystemTime, UNIX_EPOCH},
};

use database::post_delivery;
use events::{Class, Event, EventId, PostId, envelope};
use futures::FutureExt;
use kafka::{Consumed, dead_letters};
use runtime::report::chain;
use timeline_store::TimelineStore;

use crate::{
    core::{
        delivery::Outcome,
        plan::{self, AudienceClass, Plan, Post},
        retry::{self, Verdict},
    },
    error::FanoutError,
    lane::{
        attempts::{Attempts, Failure},
        drive::{Driver, Report},
    },
    metrics::FanoutMetrics,
    sink::{dead_letters::DeadLetters, progress::Progress},
};

/// What the lane works with.
#[derive(Clone, Debug)]
pub(crate) struct Posts<S> {
    pub(crate) driver: Driver<S>,
    pub(crate) dead_letters: DeadLetters,
    pub(crate) progress: Progress,
    pub(crate) attempts: Attempts,
    pub(crate) metrics: FanoutMetrics,
}

impl<S: TimelineStore> Posts<S> {
    /// Works on one record until it is finished.
    ///
    /// # Errors
    /// Only what stops the lane.
    ///
    /// # Cancel safety
    /// Dropping the future leaves any part of the work done, and doing it again is harmless (D-7).
    pub(crate) async fn handle(&self, record: Consumed) -> Result<(), FanoutError> {
        let (event_id, event, epoch) = match decode(&record) {
            Ok(decoded) => decoded,
            Err(error) => {
                let event_id = record.envelope().ok().map(|envelope| envelope.event_id);
                return self
                    .bury(&record, "decode", &error, 1, event_id, None)
                    .await;
            }
        };
        let plan = plan::plan(&event);
        let (Plan::Direct(post) | Plan::Delete { post, .. }) = plan else {
            self.count(Outcome::Nothing.as_str());
            return Ok(());
        };
        match self.deliver(plan, post.id).await {
            Ok(report) if report.outcome == Outcome::PastHorizon => {
                let error = FanoutError::PastHorizon { post: post.id };
                self.bury(&record, "plan", &error, 1, Some(event_id), Some(post.id))
                    .await
            }
            Ok(report) => {
                self.finish(event_id, epoch, &post, &report);
                Ok(())
            }
            Err(Failure::Record { error, attempts }) => {
                self.bury(
                    &record,
                    "deliver",
                    &error,
                    attempts,
                    Some(event_id),
                    Some(post.id),
                )
                .await
            }
            Err(Failure::Stop(error)) => Err(error),
        }
    }

    /// Delivers. A panic is caught and the work done again, which is harmless (D-7); after
    /// [`retry::MOST_PANICS`] the record is given up.
    async fn deliver(&self, plan: Plan, post: PostId) -> Result<Report, Failure> {
        let mut panics = 0;
        loop {
            let work = async {
                poison(post);
                self.driver.deliver(plan).await
            };
            let error = match AssertUnwindSafe(work).catch_unwind().await {
                Ok(outcome) => return outcome,
                Err(panic) => FanoutError::panicked(&*panic),
            };
            panics += 1;
            match retry::after_panic(panics, fastrand::f64()) {
                Verdict::Again(pause) => {
                    let class = [Class::Bug.as_str()];
                    self.metrics.retries.with_label_values(&class).inc();
                    tracing::error!(post = post.0, panics, error = %chain(&error), "work on a record panicked, trying again");
                    tokio::time::sleep(pause).await;
                }
                Verdict::DeadLetter | Verdict::Stop(_) => {
                    return Err(Failure::Record {
                        error,
                        attempts: panics,
                    });
                }
            }
        }
    }

    fn finish(&self, event: EventId, epoch: Option<i64>, post: &Post, report: &Report) {
        self.count(report.outcome.as_str());
        if report.outcome == Outcome::Ghost {
            self.metrics.ghosts.inc();
            tracing::warn!(
                event = event.0,
                post = post.id.0,
                "post of an event is not in the database"
            );
        }
        if !report.outcome.is_delivered() {
            return;
        }
        if let (Outcome::Delivered, Some(last)) = (report.outcome, report.last_row_us) {
            let audience = AudienceClass::of(report.audience).as_str();
            let micros = last.0.saturating_sub(post.post_us.0).max(0);
            self.metrics
                .delivery_seconds
                .with_label_values(&[audience])
                .observe(micros as f64 / 1e6);
        }
        let delivery = post_delivery::Delivery {
            event,
            post: post.id,
            audience: as_i64(report.audience),
            rows: as_i64(report.rows),
            first_row_us: report.first_row_us,
            last_row_us: report.last_row_us,
        };
        self.progress.delivered(epoch, delivery);
    }

    /// Dead letter acknowledged, row entered, and only then done.
    async fn bury(
        &self,
        record: &Consumed,
        step: &'static str,
        error: &FanoutError,
        attempts: u32,
        event: Option<EventId>,
        post: Option<PostId>,
    ) -> Result<(), FanoutError> {
        let reason = error.reason();
        let failure = dead_letters::Failure {
            step,
            reason: reason.to_owned(),
            error: chain(error).to_string(),
            attempts,
            first_failed_us: wall_us(),
        };
        tracing::error!(
            topic = record.topic,
            partition = record.partition,
            offset = record.offset,
            reason,
            error = failure.error,
            "record goes to the dead letters"
        );
        let produce = || async {
            self.dead_letters
                .produce(record, &failure)
                .await
                .map_err(FanoutError::DeadLetter)
        };
        self.must(
            self.attempts
                .until_done("store a dead letter", produce)
                .await,
        )?;
        let account = || self.dead_letters.account(record, event, post, reason);
        self.must(
            self.attempts
                .until_done("enter a dead letter", account)
                .await,
        )?;
        self.metrics.dead_letters.with_label_values(&[reason]).inc();
        self.count("dead_letter");
        Ok(())
    }

    /// A dead letter has no dead letter: what can never be stored stops the lane.
    fn must(&self, outcome: Result<(), Failure>) -> Result<(), FanoutError> {
        match outcome {
            Ok(()) => Ok(()),
            Err(Failure::Record { error, .. } | Failure::Stop(error)) => Err(error),
        }
    }

    fn count(&self, result: &str) {
        self.metrics.posts.with_label_values(&[result]).inc();
    }
}

/// Panics for the post that a fault test names.
fn poison(post: PostId) {
    // Without the feature `crash-points` there is no fault point, and nobody asks.
    let _post = post;
    fail::fail_point!("fanout::poisoned-post", |named| {
        let is_it = named.is_some_and(|named| named == post.0.to_string());
        assert!(!is_it, "a fault test made the work on post {post} panic");
    });
}

/// Event id, event and epoch of a record whose key is the event's. No epoch: the source is not an
/// outbox of ours. (A record without a source is no event at all.)
fn decode(record: &Consumed) -> Result<(EventId, Event, Option<i64>), FanoutError> {
    let (id, event) = record.event().map_err(FanoutError::Decode)?;
    let epoch = record
        .header(envelope::SOURCE)
        .and_then(envelope::source_epoch);
    let expected = event.partition_key().to_string();
    if record.key.as_deref() == Some(expected.as_bytes()) {
        return Ok((id, event, epoch));
    }
    let found = record.key.as_ref().map_or_else(
        || "null".to_owned(),
        |key| {
            format!(
                "{:?}",
                String::from_utf8_lossy(key)
                    .chars()
                    .take(100)
                    .collect::<String>()
            )
        },
    );
    Err(FanoutError::Key { found, expected })
}

/// The worker's clock, for a header that people read.
fn wall_us() -> i64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}

fn as_i64(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use kafka::Header;

    use super::*;

    fn record(key: Option<&'static str>) -> Consumed {
        let headers = [
            ("ce_id", "5"),
            ("ce_type", "tideline.post.created.v1"),
            ("ce_source", "/tideline/t/outbox/1"),
        ];
        Consumed {
            topic: "t".into(),
            partition: 0,
            offset: 0,
            append_ms: 0,
            key: key.map(|key| Bytes::from_static(key.as_bytes())),
            payload: Some(Bytes::from_static(
                br#"{"post_id":"1","author_id":"2","post_us":3}"#,
            )),
            headers: headers
                .map(|(name, value)| Header::text(name, value))
                .to_vec(),
        }
    }

    #[test]
    fn the_source_names_the_epoch() {
        let with = |source: &str| {
            let mut record = record(Some("2"));
            record.headers.retain(|header| header.name != "ce_source");
            record
                .headers
                .push(Header::text("ce_source", source.to_owned()));
            decode(&record)
                .map(|(_, _, epoch)| epoch)
                .expect("an event")
        };
        assert_eq!(with("/tideline/t/outbox/7"), Some(7));
        assert_eq!(with("/somebody/else"), None);
    }

    #[test]
    fn key_has_to_be_the_authors() {
        assert!(decode(&record(Some("2"))).is_ok());
        for key in [None, Some("3"), Some("")] {
            let error = decode(&record(key)).expect_err("another key");
            assert_eq!(error.reason(), "key_mismatch");
        }
    }
}
