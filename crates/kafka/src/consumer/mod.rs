//! The consumer loop that every consumer shares: one thread polls, the service works.
//!
//! ```text
//!   broker ──▶ thread: poll ──▶ bounded channel of records ──▶ Events::recv ──▶ service
//!                │   ▲ rebalance ──▶ channel of control events ──┘                 │
//!                │   └── pending commits ◀── ConsumerHandle::commit ◀──────────────┘
//! ```
//!
//! Owns: membership. The thread polls whatever the work does, so no long post makes the member
//! lose its partitions. When the channel of records is full, it pauses its partitions, keeps
//! polling, and resumes when the channel is half empty; nothing sleeps.
//!
//! Does not own: when an offset may be committed (D-6 is the service's, with `ack-tracker`).
//!
//! Promise: an offset is committed only by [`ConsumerHandle::commit`] or by the answer to
//! `Revoked`, and only for the generation it was worked on in. A partition without a committed
//! offset starts at the log's start; when offsets jump, `OffsetLost` comes before the record.

mod context;
mod position;
mod thread;

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
        mpsc as blocking,
    },
    time::Duration,
};

use rdkafka::error::RDKafkaErrorCode;
use tokio::sync::mpsc;

use crate::{Consumed, Error, KafkaConfig};

/// How long a revoked partition is waited for: drained, answered, committed.
pub const REVOKE_PATIENCE: Duration = Duration::from_secs(5);
/// Records between the thread and the service (D-13).
pub const CHANNEL_CAPACITY: usize = 1_024;

/// What happens to a member of a group.
#[derive(Debug)]
pub enum ConsumerEvent {
    /// Partitions were assigned.
    Assigned {
        /// Which.
        partitions: Vec<i32>,
        /// Number of this assignment; records and commits carry it.
        generation: u64,
    },
    /// Partitions are being taken away. The thread waits for the answer, for at most
    /// [`REVOKE_PATIENCE`], so that the next owner starts where this one stopped.
    Revoked {
        /// Which.
        partitions: Vec<i32>,
        /// Where the last offsets go; dropping it answers with nothing to commit.
        done: RevokeAnswer,
        /// They are lost already: a commit would be refused, and another member may own them.
        lost: bool,
    },
    /// A record.
    Record {
        /// The generation of its partition's assignment.
        generation: u64,
        /// The record.
        record: Consumed,
    },
    /// The log does not go on where it should: records are gone, or the topic is a new one. The
    /// partition continues at `found`.
    OffsetLost {
        /// The partition.
        partition: i32,
        /// The generation of the records from here on; a new one if the offsets went back.
        generation: u64,
        /// The offset that should have come.
        expected: i64,
        /// The offset that came.
        found: i64,
    },
    /// The broker refused a commit; the offsets stay where they were, and the next commit of the
    /// partition repeats them.
    CommitFailed {
        /// Kafka's code.
        code: RDKafkaErrorCode,
    },
    /// Another member has, or had, this one's instance id (KIP-345): this member is over. What is
    /// assigned is gone without a revocation. The broker also says so when it comes back after
    /// longer than a session timeout and remembers the member from before.
    Fenced {
        /// What librdkafka said.
        reason: String,
    },
    /// The client is unusable: stop the process.
    Fatal {
        /// Kafka's code.
        code: RDKafkaErrorCode,
        /// What librdkafka said.
        reason: String,
    },
}

/// The way back to the thread that waits in a revocation.
#[derive(Debug)]
pub struct RevokeAnswer(blocking::SyncSender<BTreeMap<i32, Commit>>);

impl RevokeAnswer {
    /// Answers with what to commit, by partition. What was worked on in another generation than
    /// the one the thread has reached is dropped: a jump back may wait in the channel still, and
    /// an offset of the old log must not pass records of the new one (D-6).
    pub fn finish(self, commits: BTreeMap<i32, Commit>) {
        // The thread may have given up waiting; then the next owner repeats, which is harmless.
        drop(self.0.try_send(commits));
    }
}

/// How far the work on a partition has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Commit {
    /// The generation that it was worked on in.
    pub generation: u64,
    /// The offset of the next record to read.
    pub offset: i64,
}

/// Starts members of groups.
#[derive(Debug)]
pub struct Consumer;

impl Consumer {
    /// Joins `group` to read `topic`. Connects in the background.
    ///
    /// # Errors
    /// When librdkafka refuses the settings or no thread can be started.
    pub fn start(
        config: &KafkaConfig,
        group: &str,
        topic: &str,
        instance_id: Option<&str>,
    ) -> Result<(ConsumerHandle, Events), Error> {
        let (control_sender, control) = mpsc::channel(CHANNEL_CAPACITY);
        let (record_sender, records) = mpsc::channel(CHANNEL_CAPACITY);
        let shared = Arc::new(Shared::default());
        let (ended_sender, ended) = tokio::sync::oneshot::channel();
        let client = thread::client(
            config,
            group,
            topic,
            instance_id,
            control_sender,
            Arc::clone(&shared),
        )?;
        let work =
            thread::Poller::new(client, topic.to_owned(), record_sender, Arc::clone(&shared));
        let _detached = std::thread::Builder::new()
            .name("kafka-poll".into())
            .spawn(move || {
                work.run();
                // Nobody waits if the process is ending anyway.
                let _ = ended_sender.send(());
            })
            .map_err(|_| Error::Ended {
                what: "polling thread",
            })?;
        let handle = ConsumerHandle {
            shared,
            ended: Some(ended),
        };
        Ok((handle, Events { control, records }))
    }
}

/// Where the events of one member arrive.
#[derive(Debug)]
pub struct Events {
    control: mpsc::Receiver<ConsumerEvent>,
    records: mpsc::Receiver<ConsumerEvent>,
}

impl Events {
    /// The next event; records only if `take_records`, so a service that has enough work leaves
    /// them in the channel and the thread pauses. `None` when the member is gone.
    ///
    /// Rebalances come before records that wait: a record of a partition that was taken away is
    /// told by its generation.
    ///
    /// # Cancel safety
    /// Cancel safe: no event is lost.
    pub async fn recv(&mut self, take_records: bool) -> Option<ConsumerEvent> {
        tokio::select! {
            biased;
            event = self.control.recv() => event,
            Some(event) = self.records.recv(), if take_records => Some(event),
        }
    }
}

/// Speaks to the thread. Dropping it closes the member.
#[derive(Debug)]
pub struct ConsumerHandle {
    shared: Arc<Shared>,
    ended: Option<tokio::sync::oneshot::Receiver<()>>,
}

impl ConsumerHandle {
    /// Lets the thread commit `offset`, that of the next record to read, soon. Later offsets of a
    /// partition replace earlier ones; those of a generation that has ended are dropped.
    pub fn commit(&self, partition: i32, generation: u64, offset: i64) {
        let mut pending = self
            .shared
            .pending
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let _replaced = pending.insert(partition, Commit { generation, offset });
    }

    /// When the thread polled last, as the age of it: the member is alive while this is small.
    pub fn polled_ago(&self) -> Duration {
        let polled = self
            .shared
            .polled
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        polled.map_or(Duration::ZERO, |at| at.elapsed())
    }

    /// Whether the partitions are paused for lack of room.
    pub fn is_paused(&self) -> bool {
        self.shared.paused.load(Ordering::Acquire)
    }

    /// Begins to leave the group. `Revoked` comes for what is still assigned, then
    /// [`Events::recv`] ends; the service has to go on receiving until then.
    pub fn close(&self) {
        self.shared.closing.store(true, Ordering::Release);
    }

    /// Waits until the thread has left the group and ended, for at most `patience`. With brokers
    /// that are down it may not end; the process may, nothing is lost by it.
    pub async fn ended(&mut self, patience: Duration) -> bool {
        match self.ended.take() {
            Some(ended) => tokio::time::timeout(patience, ended).await.is_ok(),
            None => true,
        }
    }
}

impl Drop for ConsumerHandle {
    fn drop(&mut self) {
        self.close();
    }
}

/// What the thread and the handle share.
#[derive(Debug, Default)]
struct Shared {
    closing: AtomicBool,
    paused: AtomicBool,
    pending: Mutex<BTreeMap<i32, Commit>>,
    polled: Mutex<Option<std::time::Instant>>,
}
