//! Changes to what the broker holds that no service ever makes: for operators and fault tests.
//!
//! Owns: deleting a topic, and moving or forgetting the offsets of a group. Does not own: making
//! topics ([`crate::topics::create`] makes again what was deleted).
//!
//! Promise: each call returns when the broker tells the new state to a client that asks. Records
//! and offsets that are gone stay gone; the ledger in Postgres is what finds out and repairs.

use std::{collections::BTreeMap, future::Future, time::Duration};

use rdkafka::{
    TopicPartitionList,
    consumer::{BaseConsumer, CommitMode, Consumer as _},
    error::RDKafkaErrorCode,
    topic_partition_list::Offset,
};
use tokio::time::{Instant, sleep};

use crate::{
    Admin, Error, KafkaConfig,
    log::LogContext,
    producer::blocking,
    settings::{self, REQUEST_TIMEOUT, SESSION_TIMEOUT},
    topics::{admin, options},
};

/// A static member that was killed belongs to its group until its session ends.
const EMPTY_WITHIN: Duration = SESSION_TIMEOUT.saturating_mul(2);
const STEP: Duration = Duration::from_millis(50);

/// Deletes a topic with all its records and waits until it is gone. What is missing is no error.
///
/// # Errors
/// When the broker does not answer, refuses, or still tells of the topic after the request
/// timeout.
pub async fn delete_topic(config: &KafkaConfig, topic: &str) -> Result<(), Error> {
    delete(config, topic).await?;
    let admin = Admin::new(config)?;
    let deadline = Instant::now() + REQUEST_TIMEOUT;
    loop {
        match admin.partition_count(topic).await {
            Err(Error::TopicMissing { .. }) => return Ok(()),
            Err(error) => return Err(error),
            Ok(_) if Instant::now() >= deadline => {
                return Err(Error::Topic {
                    what: "waiting for the end of",
                    topic: topic.to_owned(),
                    code: RDKafkaErrorCode::OperationTimedOut,
                });
            }
            Ok(_) => sleep(STEP).await,
        }
    }
}

/// Sets what `group` has committed to the end of each partition of `topic`, so that whatever it
/// has not read yet is skipped. Answers the offsets. Waits until the group has no members.
///
/// # Errors
/// When the broker does not answer, the topic is missing, or the group keeps its members.
pub async fn offsets_to_end(
    config: &KafkaConfig,
    group: &str,
    topic: &str,
) -> Result<BTreeMap<i32, i64>, Error> {
    let ends = Admin::new(config)?.end_offsets(topic).await?;
    when_empty(async || commit(config, group, topic, ends.clone()).await).await?;
    Ok(ends)
}

/// Forgets everything that `group` has committed, and the group itself. Waits until it has no
/// members. A group that does not exist is no error.
///
/// # Errors
/// When the broker does not answer, or the group keeps its members.
pub async fn delete_offsets(config: &KafkaConfig, group: &str) -> Result<(), Error> {
    let client = admin(config)?;
    when_empty(async || {
        let results = client
            .delete_groups(&[group], &options())
            .await
            .map_err(|source| request(group, source))?;
        match results.into_iter().next() {
            Some(Err((_, code))) if code != RDKafkaErrorCode::GroupIdNotFound => {
                Err(request(group, rdkafka::error::KafkaError::AdminOp(code)))
            }
            _ => Ok(()),
        }
    })
    .await
}

/// Repeats what the broker refuses while the group has members.
async fn when_empty<F, Fut>(mut change: F) -> Result<(), Error>
where
    F: FnMut() -> Fut,
    Fut: Future<Output = Result<(), Error>>,
{
    let deadline = Instant::now() + EMPTY_WITHIN;
    loop {
        match change().await {
            Err(error) if has_members(&error) && Instant::now() < deadline => {
                sleep(STEP * 4).await;
            }
            outcome => return outcome,
        }
    }
}

fn has_members(error: &Error) -> bool {
    use RDKafkaErrorCode as Code;
    let Error::Request { source, .. } = error else {
        return false;
    };
    matches!(
        source.rdkafka_error_code(),
        Some(
            Code::NonEmptyGroup
                | Code::UnknownMemberId
                | Code::IllegalGeneration
                | Code::RebalanceInProgress
        )
    )
}

/// Asks the broker to delete a topic; a missing one is no error.
async fn delete(config: &KafkaConfig, topic: &str) -> Result<(), Error> {
    let results = admin(config)?
        .delete_topics(&[topic], &options())
        .await
        .map_err(|source| Error::Request {
            what: format!("the end of topic {topic}"),
            source,
        })?;
    match results.into_iter().next() {
        Some(Err((topic, code))) if code != RDKafkaErrorCode::UnknownTopicOrPartition => {
            Err(Error::Topic {
                what: "deleting",
                topic,
                code,
            })
        }
        _ => Ok(()),
    }
}

/// Commits for a group without joining it, which the broker takes while nobody is in it.
async fn commit(
    config: &KafkaConfig,
    group: &str,
    topic: &str,
    offsets: BTreeMap<i32, i64>,
) -> Result<(), Error> {
    let settings = settings::observer_config(config, group);
    let (group, topic) = (group.to_owned(), topic.to_owned());
    blocking("offsets", move || {
        let client: BaseConsumer<LogContext> = settings
            .create_with_context(LogContext::default())
            .map_err(|source| Error::Client {
                client: "admin",
                source,
            })?;
        let mut wanted = TopicPartitionList::new();
        for (partition, offset) in offsets {
            wanted
                .add_partition_offset(&topic, partition, Offset::Offset(offset))
                .map_err(|source| request(&group, source))?;
        }
        client
            .commit(&wanted, CommitMode::Sync)
            .map_err(|source| request(&group, source))
    })
    .await
}

fn request(group: &str, source: rdkafka::error::KafkaError) -> Error {
    Error::Request {
        what: format!("other offsets of group {group}"),
        source,
    }
}
