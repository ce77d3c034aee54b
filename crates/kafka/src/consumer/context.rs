//! The callbacks of the client; they run on the polling thread, inside `poll`.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::Ordering, mpsc as blocking},
    time::{Duration, Instant},
};

use rdkafka::{
    ClientContext, TopicPartitionList,
    config::RDKafkaLogLevel,
    consumer::{BaseConsumer, CommitMode, Consumer as _, ConsumerContext},
    error::{KafkaError, KafkaResult, RDKafkaErrorCode},
    topic_partition_list::Offset,
    types::RDKafkaRespErr,
};
use tokio::sync::mpsc::{self, error::TrySendError};

use super::{Commit, ConsumerEvent, REVOKE_PATIENCE, RevokeAnswer, Shared, position::Positions};
use crate::log::ClientLog;

/// How long one answer about the committed offsets is waited for when partitions are assigned.
const COMMITTED_TIMEOUT: Duration = Duration::from_secs(5);
/// Between two questions that failed at once.
const COMMITTED_PAUSE: Duration = Duration::from_millis(200);
/// How long a service that does not take control events is waited for.
const CONTROL_PATIENCE: Duration = Duration::from_secs(5);

pub(super) type Client = BaseConsumer<Context>;

pub(super) struct Context {
    log: ClientLog,
    topic: String,
    control: mpsc::Sender<ConsumerEvent>,
    positions: Mutex<Positions>,
    shared: Arc<Shared>,
}

impl Context {
    pub(super) fn new(
        topic: &str,
        control: mpsc::Sender<ConsumerEvent>,
        shared: Arc<Shared>,
    ) -> Self {
        Self {
            log: ClientLog::default(),
            topic: topic.to_owned(),
            control,
            positions: Mutex::default(),
            shared,
        }
    }

    pub(super) fn positions(&self) -> MutexGuard<'_, Positions> {
        self.positions
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a control event. False when the service takes none: it is gone or stuck.
    pub(super) fn tell(&self, event: ConsumerEvent) -> bool {
        let deadline = Instant::now() + CONTROL_PATIENCE;
        let mut event = event;
        loop {
            match self.control.try_send(event) {
                Ok(()) => return true,
                Err(TrySendError::Closed(_)) => return false,
                Err(TrySendError::Full(back)) if Instant::now() < deadline => event = back,
                Err(TrySendError::Full(_)) => return false,
            }
            std::thread::park_timeout(Duration::from_millis(10));
        }
    }

    fn assign(&self, client: &Client, list: &TopicPartitionList) {
        let start = self.committed(client, list);
        let start = start.as_ref().unwrap_or(list);
        let mut wanted = TopicPartitionList::with_capacity(start.count());
        let mut expected = BTreeMap::new();
        for element in start.elements() {
            let committed = match element.offset() {
                Offset::Offset(offset) => Some(offset),
                _ => None,
            };
            let _none_before = expected.insert(element.partition(), committed);
            let offset = committed.map_or(Offset::Stored, Offset::Offset);
            if let Err(error) =
                wanted.add_partition_offset(element.topic(), element.partition(), offset)
            {
                tracing::error!(%error, partition = element.partition(), "offset of an assigned partition refused");
            }
        }
        let partitions = expected.keys().copied().collect();
        let generation = self.positions().assign(expected);
        if !self.tell(ConsumerEvent::Assigned {
            partitions,
            generation,
        }) {
            tracing::warn!("partitions were assigned, but nobody takes events");
        }
        if let Err(error) = client.incremental_assign(&wanted) {
            tracing::error!(%error, "taking assigned partitions failed");
        }
    }

    /// The committed offsets of partitions that are being assigned, asked for until the broker
    /// tells. `None` when the answer no longer matters: the assignment is lost, or the member leaves.
    ///
    /// They are asked for here for two reasons. A log that no longer reaches back to them is noticed
    /// by the first record. And when librdkafka asks by itself and the broker does not answer, it
    /// never asks again until the partitions are assigned anew: they stand still.
    fn committed(&self, client: &Client, list: &TopicPartitionList) -> Option<TopicPartitionList> {
        let mut told = false;
        loop {
            match client.committed_offsets(list.clone(), COMMITTED_TIMEOUT) {
                Ok(offsets) => return Some(offsets),
                Err(error) if !told => {
                    tracing::warn!(%error, "committed offsets not read yet, asking again");
                    told = true;
                }
                Err(_) => {}
            }
            if client.assignment_lost() || self.shared.closing.load(Ordering::Acquire) {
                return None;
            }
            std::thread::park_timeout(COMMITTED_PAUSE);
        }
    }

    fn revoke(&self, client: &Client, list: &TopicPartitionList) {
        let partitions: Vec<_> = list
            .elements()
            .iter()
            .map(|element| element.partition())
            .collect();
        let lost = client.assignment_lost();
        let (sender, answer) = blocking::sync_channel(1);
        let told = self.tell(ConsumerEvent::Revoked {
            partitions: partitions.clone(),
            done: RevokeAnswer(sender),
            lost,
        });
        if told && !lost {
            match answer.recv_timeout(REVOKE_PATIENCE) {
                Ok(commits) => self.commit_current(client, commits),
                Err(_) => {
                    tracing::warn!(?partitions, "revoked partitions were not drained in time")
                }
            }
        }
        {
            let mut positions = self.positions();
            partitions
                .iter()
                .for_each(|&partition| positions.revoke(partition));
        }
        if let Err(error) = client.incremental_unassign(list) {
            tracing::error!(%error, "giving up revoked partitions failed");
        }
    }

    /// Commits what was worked on in the current generation of its partition. An offset of another
    /// one belongs to an earlier assignment, or to a log that is gone.
    pub(super) fn commit_current(&self, client: &Client, commits: BTreeMap<i32, Commit>) {
        let current = {
            let positions = self.positions();
            commits
                .into_iter()
                .filter(|(partition, commit)| positions.is_current(*partition, commit.generation))
                .map(|(partition, commit)| (partition, commit.offset))
                .collect()
        };
        self.commit(client, current);
    }

    /// Commits without waiting: requests to the coordinator stay in order, so this one arrives
    /// before the request that gives the partitions up.
    fn commit(&self, client: &Client, offsets: BTreeMap<i32, i64>) {
        if offsets.is_empty() {
            return;
        }
        let mut list = TopicPartitionList::with_capacity(offsets.len());
        for (partition, offset) in offsets {
            if let Err(error) =
                list.add_partition_offset(&self.topic, partition, Offset::Offset(offset))
            {
                tracing::error!(%error, partition, offset, "offset to commit refused");
            }
        }
        if let Err(error) = client.commit(&list, CommitMode::Async) {
            self.commit_failed(&error);
        }
    }

    fn commit_failed(&self, error: &KafkaError) {
        let code = error
            .rdkafka_error_code()
            .unwrap_or(RDKafkaErrorCode::Unknown);
        // Nothing to commit is no failure.
        if code != RDKafkaErrorCode::NoOffset {
            let _told = self.control.try_send(ConsumerEvent::CommitFailed { code });
        }
    }
}

impl ClientContext for Context {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, text: &str) {
        self.log.line(level, facility, text);
    }

    fn error(&self, error: KafkaError, reason: &str) {
        self.log.error(&error, reason);
    }
}

impl ConsumerContext for Context {
    fn rebalance(
        &self,
        client: &BaseConsumer<Self>,
        code: RDKafkaRespErr,
        list: &mut TopicPartitionList,
    ) {
        match code {
            RDKafkaRespErr::RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS => self.assign(client, list),
            _ => self.revoke(client, list),
        }
    }

    fn commit_callback(&self, result: KafkaResult<()>, _offsets: &TopicPartitionList) {
        if let Err(error) = result {
            self.commit_failed(&error);
        }
    }
}
