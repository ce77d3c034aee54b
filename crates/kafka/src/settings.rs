//! Where the brokers are, and the client settings.
//!
//! Owns the settings that guard correctness: they are constants with a reason each, not options.

use std::time::Duration;

use events::{Namespace, topic::InvalidNamespace};
use rdkafka::ClientConfig;

/// Where Kafka is and how this deployment's names begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KafkaConfig {
    /// `host:port`, comma separated.
    pub brokers: String,
    /// First part of every topic and group name.
    pub namespace: Namespace,
    /// Replicas of the topics that [`crate::topics::create`] makes.
    pub replication_factor: i32,
}

impl KafkaConfig {
    /// The deployment whose names begin with `namespace`.
    ///
    /// # Errors
    /// With a namespace that is none.
    pub fn new(
        brokers: &str,
        namespace: &str,
        replication_factor: i32,
    ) -> Result<Self, InvalidNamespace> {
        Ok(Self {
            brokers: brokers.to_owned(),
            namespace: Namespace::new(namespace)?,
            replication_factor,
        })
    }
}

/// How long a request that is not part of the flow may take.
pub const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// A member that has not been heard of for this long is dead and its partitions move.
pub const SESSION_TIMEOUT: Duration = Duration::from_secs(10);
/// How many records a producer holds that the broker has not acknowledged (D-13).
pub const MAX_UNREPORTED: usize = 20_000;

/// All replicas in sync have the record before it counts as acknowledged.
const ACKS: &str = "all";
/// Retries inside the client neither repeat nor reorder records.
const IDEMPOTENCE: &str = "true";
/// The same hash as the Java client, so that every tool finds an author in the same partition.
const PARTITIONER: &str = "murmur2_random";
/// The client keeps trying while the broker is away, in order: a record that timed out here and
/// was enqueued again would land behind its successors (D-5).
const MESSAGE_TIMEOUT: &str = "0";
/// A few milliseconds make batches under load and are not noticed without.
const LINGER_MS: &str = "2";
/// Offsets move only when the service says that the work is finished (D-6).
const AUTO_COMMIT: &str = "false";
/// The same for the offset store, which would run ahead by the record in hand.
const AUTO_OFFSET_STORE: &str = "false";
/// Never the log's end, which would skip; a jump to the start is noticed by the consumer thread
/// and reported as [`crate::ConsumerEvent::OffsetLost`].
const OFFSET_RESET: &str = "earliest";
/// A member that joins or leaves moves only the partitions that change hands.
const ASSIGNMENT: &str = "cooperative-sticky";

fn base(config: &KafkaConfig, client_id: &str) -> ClientConfig {
    let mut client = ClientConfig::new();
    client
        .set("bootstrap.servers", &config.brokers)
        .set("client.id", client_id)
        .set("socket.keepalive.enable", "true")
        .set("reconnect.backoff.ms", "100")
        .set("reconnect.backoff.max.ms", "2000")
        // A producer or consumer never makes a topic: `tideline migrate` does.
        .set("allow.auto.create.topics", "false")
        // Brokers close idle connections; that is no event.
        .set("log.connection.close", "false");
    client
}

/// Settings of a producer.
pub fn producer_config(config: &KafkaConfig, client_id: &str) -> ClientConfig {
    let mut client = base(config, client_id);
    client
        .set("acks", ACKS)
        .set("enable.idempotence", IDEMPOTENCE)
        .set("partitioner", PARTITIONER)
        .set("message.timeout.ms", MESSAGE_TIMEOUT)
        .set("linger.ms", LINGER_MS)
        .set("compression.type", "lz4")
        // The broker's limit of the topic decides; see `Producer::max_message_bytes`.
        .set("message.max.bytes", "2097152")
        .set("queue.buffering.max.messages", MAX_UNREPORTED.to_string())
        .set("queue.buffering.max.kbytes", "32768");
    client
}

/// Settings of a member of `group`. With an `instance_id` the membership is static: a restart
/// within the session timeout moves no partition, and two processes with one id fence each other.
pub fn consumer_config(
    config: &KafkaConfig,
    group: &str,
    instance_id: Option<&str>,
) -> ClientConfig {
    let mut client = base(config, group);
    client
        .set("group.id", group)
        .set("enable.auto.commit", AUTO_COMMIT)
        .set("enable.auto.offset.store", AUTO_OFFSET_STORE)
        .set("auto.offset.reset", OFFSET_RESET)
        .set("partition.assignment.strategy", ASSIGNMENT)
        .set(
            "session.timeout.ms",
            SESSION_TIMEOUT.as_millis().to_string(),
        )
        .set("heartbeat.interval.ms", "3000")
        // What the client fetches ahead, all partitions together (D-13).
        .set("queued.max.messages.kbytes", "16384")
        .set("queued.min.messages", "1000")
        .set("fetch.message.max.bytes", "2097152")
        .set("fetch.wait.max.ms", "100");
    if let Some(id) = instance_id {
        client.set("group.instance.id", id);
    }
    client
}

/// Settings of a client that only asks and creates.
pub fn admin_config(config: &KafkaConfig) -> ClientConfig {
    base(config, "tideline-admin")
}

/// Settings of a client that reads the committed offsets of `group` without joining it.
pub(crate) fn observer_config(config: &KafkaConfig, group: &str) -> ClientConfig {
    let mut client = base(config, "tideline-admin");
    client
        .set("group.id", group)
        .set("enable.auto.commit", AUTO_COMMIT);
    client
}
