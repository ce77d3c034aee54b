//! Everything that is in a topic now, read once from its start, without a group.
//!
//! Owns nothing that lasts: the reader exists for one call. It is for judging and for operators;
//! services read through [`crate::Consumer`].

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use rdkafka::{
    Message as _, TopicPartitionList,
    consumer::{BaseConsumer, Consumer as _},
    error::{KafkaError, RDKafkaErrorCode},
    topic_partition_list::Offset,
};

use crate::{
    Admin, Consumed, Error, KafkaConfig, log::LogContext, producer::blocking, settings,
    settings::REQUEST_TIMEOUT,
};

const POLL: Duration = Duration::from_millis(100);

/// Reads the records that `topic` holds when this is called, and answers what `take` makes of
/// each. The order is that of each partition. Memory: what `take` keeps.
///
/// # Errors
/// When the topic is missing, the broker does not answer, or no record arrives within the request
/// timeout.
pub async fn read<T: Send + 'static>(
    config: &KafkaConfig,
    topic: &str,
    mut take: impl FnMut(Consumed) -> Option<T> + Send + 'static,
) -> Result<Vec<T>, Error> {
    let marks = Admin::new(config)?.watermarks(topic).await?;
    let mut left: BTreeMap<i32, i64> = marks
        .iter()
        .filter(|(_, (low, end))| low < end)
        .map(|(partition, (_, end))| (*partition, *end))
        .collect();
    let settings = settings::observer_config(config, "tideline-snapshot");
    let topic = topic.to_owned();
    blocking("records", move || {
        let client: BaseConsumer<LogContext> = settings
            .create_with_context(LogContext::default())
            .map_err(|source| Error::Client {
                client: "snapshot",
                source,
            })?;
        let mut assignment = TopicPartitionList::new();
        for partition in left.keys() {
            assignment
                .add_partition_offset(&topic, *partition, Offset::Beginning)
                .map_err(failed)?;
        }
        client.assign(&assignment).map_err(failed)?;
        let (mut taken, mut heard) = (Vec::new(), Instant::now());
        while !left.is_empty() {
            match client.poll(POLL) {
                Some(Ok(message)) => {
                    heard = Instant::now();
                    let (partition, next) = (message.partition(), message.offset() + 1);
                    let wanted = left.get(&partition).is_some_and(|end| next <= *end);
                    if wanted {
                        taken.extend(take(Consumed::read(&message)));
                    }
                    if left.get(&partition).is_some_and(|end| next >= *end) {
                        let _finished = left.remove(&partition);
                    }
                }
                Some(Err(source)) => return Err(failed(source)),
                None if heard.elapsed() > REQUEST_TIMEOUT => {
                    return Err(failed(KafkaError::MessageConsumption(
                        RDKafkaErrorCode::OperationTimedOut,
                    )));
                }
                None => {}
            }
        }
        Ok(taken)
    })
    .await
}

fn failed(source: KafkaError) -> Error {
    Error::Request {
        what: "all records of a topic".to_owned(),
        source,
    }
}
