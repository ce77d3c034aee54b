//! Looks for records of one key in the log, as an operator would: without a group, without a trace.
//!
//! Owns the partition of a key, which is that of every client with Kafka's own hash, and a read of
//! that partition from a moment on. Does not own what is looked for.
//!
//! Promise: bounded in time, in matches and in memory, and the answer says how far it got.

use std::time::{Duration, Instant};

use rdkafka::{
    TopicPartitionList,
    consumer::{BaseConsumer, Consumer as _},
    topic_partition_list::Offset,
};

use crate::{
    Admin, Consumed, Error, KafkaConfig,
    log::LogContext,
    producer::blocking,
    settings::{self, REQUEST_TIMEOUT},
};

/// Matches that are kept at most; a record is published once, and again by the sweep a few times.
pub const MAX_MATCHES: usize = 1_000;

/// The longest wait for the next record.
const POLL: Duration = Duration::from_millis(200);

/// What is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Search {
    /// The topic.
    pub topic: String,
    /// The record key; it names the partition.
    pub key: Vec<u8>,
    /// Records from this moment on, milliseconds since 1970 by the record's own timestamp; `None`
    /// from the first record that is kept.
    pub since_ms: Option<i64>,
    /// How long it may read. At most 20 s: the requests before it take their own time.
    pub budget: Duration,
}

/// What was found, and where was looked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Searched {
    /// The partition of the key.
    pub partition: i32,
    /// The first offset that was looked at.
    pub from: i64,
    /// The offset behind the last one that was looked at.
    pub to: i64,
    /// The offset behind the last record when the search began.
    pub end: i64,
    /// The matches, in the order of the log.
    pub matches: Vec<Consumed>,
}

impl Searched {
    /// Whether every record up to the end was looked at.
    pub const fn is_complete(&self) -> bool {
        self.to >= self.end
    }
}

/// Reads the partition of the key and keeps the records that are `wanted`.
///
/// # Errors
/// When the broker does not answer or the topic does not exist. A broker that falls silent while
/// it is read is no error: the answer is then not complete.
pub async fn search(
    config: &KafkaConfig,
    search: &Search,
    wanted: impl Fn(&Consumed) -> bool + Send + 'static,
) -> Result<Searched, Error> {
    let count = Admin::new(config)?.partition_count(&search.topic).await?;
    let partition = partition_of(&search.key, count);
    let (config, search) = (config.clone(), search.clone());
    blocking("search", move || {
        let reader = reader(&config)?;
        let (low, end) = reader
            .fetch_watermarks(&search.topic, partition, REQUEST_TIMEOUT)
            .map_err(|source| Error::Request {
                what: "offsets".into(),
                source,
            })?;
        let from = match search.since_ms {
            Some(since) => first_since(&reader, &search.topic, partition, since)?.unwrap_or(end),
            None => low,
        };
        let mut searched = Searched {
            partition,
            from,
            to: from,
            end,
            matches: Vec::new(),
        };
        if !searched.is_complete() {
            read(&reader, &search, &mut searched, wanted)?;
        }
        Ok(searched)
    })
    .await
}

/// The partition of a key among `count`: Kafka's murmur2, as every producer here uses it.
pub fn partition_of(key: &[u8], count: i32) -> i32 {
    // Kafka takes the hash as positive by dropping its sign bit.
    let hash = (murmur2(key) & 0x7fff_ffff).cast_signed();
    hash.checked_rem(count).unwrap_or(0)
}

fn reader(config: &KafkaConfig) -> Result<BaseConsumer<LogContext>, Error> {
    // Assigning needs a group's name, but nothing joins it and nothing is committed.
    settings::observer_config(config, "tideline-lookup")
        .set("enable.partition.eof", "true")
        .set("auto.offset.reset", "earliest")
        .create_with_context(LogContext::default())
        .map_err(|source| Error::Client {
            client: "lookup",
            source,
        })
}

/// The first offset whose record is of `since_ms` or later; none if all are earlier.
fn first_since(
    reader: &BaseConsumer<LogContext>,
    topic: &str,
    partition: i32,
    since_ms: i64,
) -> Result<Option<i64>, Error> {
    let mut wanted = TopicPartitionList::new();
    let request = |source| Error::Request {
        what: "the offset of a moment".into(),
        source,
    };
    wanted
        .add_partition_offset(topic, partition, Offset::Offset(since_ms.max(0)))
        .map_err(request)?;
    let found = reader
        .offsets_for_times(wanted, REQUEST_TIMEOUT)
        .map_err(request)?;
    Ok(found
        .elements()
        .first()
        .and_then(|element| match element.offset() {
            Offset::Offset(offset) => Some(offset),
            _ => None,
        }))
}

fn read(
    reader: &BaseConsumer<LogContext>,
    search: &Search,
    searched: &mut Searched,
    wanted: impl Fn(&Consumed) -> bool,
) -> Result<(), Error> {
    let request = |source| Error::Request {
        what: "records".into(),
        source,
    };
    let mut place = TopicPartitionList::new();
    place
        .add_partition_offset(
            &search.topic,
            searched.partition,
            Offset::Offset(searched.from),
        )
        .map_err(request)?;
    reader.assign(&place).map_err(request)?;
    let began = Instant::now();
    while began.elapsed() < search.budget
        && !searched.is_complete()
        && searched.matches.len() < MAX_MATCHES
    {
        match reader.poll(POLL) {
            None => {}
            Some(Ok(message)) => {
                let record = Consumed::read(&message);
                searched.to = record.offset + 1;
                if record.key.as_deref() == Some(&search.key) && wanted(&record) {
                    searched.matches.push(record);
                }
            }
            // Offsets without a record, such as those of transactions, may end the log.
            Some(Err(rdkafka::error::KafkaError::PartitionEOF(_))) => searched.to = searched.end,
            Some(Err(source)) => return Err(request(source)),
        }
    }
    Ok(())
}

/// MurmurHash2 with Kafka's seed (`org.apache.kafka.common.utils.Utils.murmur2`).
fn murmur2(data: &[u8]) -> u32 {
    const SEED: u32 = 0x9747_b28c;
    const FACTOR: u32 = 0x5bd1_e995;
    let length = u32::try_from(data.len()).unwrap_or(u32::MAX);
    let mut hash = SEED ^ length;
    let (words, rest) = data.as_chunks::<4>();
    for word in words {
        let mut mixed = u32::from_le_bytes(*word).wrapping_mul(FACTOR);
        mixed ^= mixed >> 24;
        hash = hash.wrapping_mul(FACTOR) ^ mixed.wrapping_mul(FACTOR);
    }
    if !rest.is_empty() {
        for (place, byte) in rest.iter().enumerate() {
            hash ^= u32::from(*byte) << (8 * place);
        }
        hash = hash.wrapping_mul(FACTOR);
    }
    hash ^= hash >> 13;
    hash = hash.wrapping_mul(FACTOR);
    hash ^ (hash >> 15)
}

#[cfg(test)]
mod tests {
    use super::{murmur2, partition_of};

    #[test]
    fn hash_is_that_of_the_java_client() {
        // From Kafka's own UtilsTest.
        let table: [(&[u8], i32); 7] = [
            (b"21", -973_932_308),
            (b"foobar", -790_332_482),
            (b"a-little-bit-long-string", -985_981_536),
            (b"a-little-bit-longer-string", -1_486_304_829),
            (
                b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8",
                -58_897_971,
            ),
            (b"abc", 479_470_107),
            (b"", 275_646_681),
        ];
        for (key, hash) in table {
            assert_eq!(murmur2(key).cast_signed(), hash, "{key:?}");
        }
    }

    #[test]
    fn partition_is_within_the_topic() {
        assert_eq!(partition_of(b"4711", 12), 10);
        assert_eq!(partition_of(b"21", 1), 0);
        assert_eq!(partition_of(b"21", 0), 0);
    }
}
