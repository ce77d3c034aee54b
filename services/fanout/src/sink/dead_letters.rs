//! Records that can never be delivered: the full record into the dead-letter topic, then a row.
//!
//! Owns the two steps; their order and the retries of each are the lane's. Promise: `produce`
//! returns after the broker has acknowledged the record.

use std::time::Duration;

use database::Pool;
use events::{EventId, PostId, Stage};
use kafka::{Consumed, ProduceError, Producer, dead_letters as letters};

/// How long an acknowledgement is waited for before the step counts as failed.
const ACKNOWLEDGED_WITHIN: Duration = Duration::from_secs(30);

/// The lane's dead letters.
#[derive(Clone, Debug)]
pub(crate) struct DeadLetters {
    producer: Producer,
    topic: String,
    pool: Pool,
}

impl DeadLetters {
    pub(crate) fn new(producer: Producer, topic: String, pool: Pool) -> Self {
        Self {
            producer,
            topic,
            pool,
        }
    }

    /// Puts the record into the dead-letter topic.
    pub(crate) async fn produce(
        &self,
        record: &Consumed,
        failure: &letters::Failure,
    ) -> Result<(), ProduceError> {
        let letter = letters::of_consumed(&self.topic, record, failure);
        self.producer
            .send(letter, ACKNOWLEDGED_WITHIN)
            .await
            .map(drop)
    }

    /// Writes the row that accounts for it.
    pub(crate) async fn account(
        &self,
        record: &Consumed,
        event: Option<EventId>,
        post: Option<PostId>,
        reason: &str,
    ) -> Result<(), database::Error> {
        let letter = database::dead_letters::DeadLetter {
            stage: Stage::Delivered,
            event,
            post,
            topic: record.topic.clone(),
            partition: record.partition,
            offset: record.offset,
            reason: reason.to_owned(),
        };
        let client = self.pool.get().await?;
        database::dead_letters::record(&client, &letter).await
    }
}
