//! The polling thread.

use std::{
    collections::VecDeque,
    mem,
    sync::{Arc, PoisonError, atomic::Ordering},
    time::{Duration, Instant},
};

use events::Class;
use rdkafka::{
    TopicPartitionList,
    consumer::Consumer as _,
    error::{KafkaError, RDKafkaErrorCode},
};
use tokio::sync::mpsc::{self, error::TrySendError};

use super::{
    CHANNEL_CAPACITY, ConsumerEvent, Shared,
    context::{Client, Context},
    position::Seen,
};
use crate::{Consumed, Error, KafkaConfig, error::class_of, settings};

/// The longest the thread is in one poll: how soon it sees a commit, a close, a resume.
const POLL: Duration = Duration::from_millis(50);
/// The same while records wait for room.
const POLL_WAITING: Duration = Duration::from_millis(5);

pub(super) fn client(
    config: &KafkaConfig,
    group: &str,
    topic: &str,
    instance_id: Option<&str>,
    control: mpsc::Sender<ConsumerEvent>,
    shared: Arc<Shared>,
) -> Result<Client, Error> {
    let client: Client = settings::consumer_config(config, group, instance_id)
        .create_with_context(Context::new(topic, control, shared))
        .map_err(|source| Error::Client {
            client: "consumer",
            source,
        })?;
    client
        .subscribe(&[topic])
        .map_err(|source| Error::Request {
            what: format!("a subscription to {topic}"),
            source,
        })?;
    Ok(client)
}

pub(super) struct Poller {
    client: Client,
    topic: String,
    records: mpsc::Sender<ConsumerEvent>,
    shared: Arc<Shared>,
    /// Records that found the channel full. Paused partitions bring no more, so it stays short.
    waiting: VecDeque<ConsumerEvent>,
    paused: Option<TopicPartitionList>,
}

impl Poller {
    pub(super) fn new(
        client: Client,
        topic: String,
        records: mpsc::Sender<ConsumerEvent>,
        shared: Arc<Shared>,
    ) -> Self {
        Self {
            client,
            topic,
            records,
            shared,
            waiting: VecDeque::new(),
            paused: None,
        }
    }

    /// Polls until the handle closes or the client breaks. Dropping the client leaves the group,
    /// which revokes what is assigned.
    pub(super) fn run(mut self) {
        while !self.shared.closing.load(Ordering::Acquire) {
            *self
                .shared
                .polled
                .lock()
                .unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
            let timeout = if self.waiting.is_empty() {
                POLL
            } else {
                POLL_WAITING
            };
            let polled = match self.client.poll(timeout) {
                Some(Ok(message)) => Some(Ok(Consumed::read(&message))),
                Some(Err(error)) => Some(Err(error)),
                None => None,
            };
            match polled {
                Some(Ok(record)) => self.take(record),
                Some(Err(error)) if self.is_fatal(&error) => return,
                Some(Err(_)) | None => {}
            }
            self.hand_on();
            self.commit_pending();
        }
        // What was worked on until now is committed in the answer to the revocation.
    }

    fn take(&mut self, record: Consumed) {
        let seen = self
            .client
            .context()
            .positions()
            .see(record.partition, record.offset);
        let generation = match seen {
            Seen::Next { generation } => generation,
            Seen::Jump {
                generation,
                expected,
                found,
            } => {
                let partition = record.partition;
                self.waiting.push_back(ConsumerEvent::OffsetLost {
                    partition,
                    generation,
                    expected,
                    found,
                });
                generation
            }
            Seen::Foreign => return,
        };
        self.waiting
            .push_back(ConsumerEvent::Record { generation, record });
        if self.paused.is_some() {
            // From a partition that was assigned during the pause.
            self.pause();
        }
    }

    /// Moves records into the channel; pauses when it is full and resumes when it is half empty.
    fn hand_on(&mut self) {
        if self.paused.is_some() && self.records.capacity() < CHANNEL_CAPACITY / 2 {
            return;
        }
        while let Some(event) = self.waiting.pop_front() {
            if let Err(TrySendError::Full(back)) = self.records.try_send(event) {
                self.waiting.push_front(back);
                break;
            }
        }
        match (self.waiting.is_empty(), self.paused.is_some()) {
            (true, true) => self.resume(),
            (false, false) => self.pause(),
            (true, false) | (false, true) => {}
        }
    }

    fn pause(&mut self) {
        let list = self.assigned();
        match self.client.pause(&list) {
            Ok(()) => {
                self.paused = Some(list);
                self.shared.paused.store(true, Ordering::Release);
            }
            Err(error) => tracing::warn!(%error, "pausing partitions failed"),
        }
    }

    fn resume(&mut self) {
        let Some(list) = self.paused.take() else {
            return;
        };
        self.shared.paused.store(false, Ordering::Release);
        // Those taken away meanwhile are skipped: resuming them is an error for the whole list.
        let mut still = TopicPartitionList::new();
        let assigned: Vec<_> = self.client.context().positions().assigned().collect();
        for element in list
            .elements()
            .iter()
            .filter(|element| assigned.contains(&element.partition()))
        {
            let _element = still.add_partition(element.topic(), element.partition());
        }
        if still.count() > 0
            && let Err(error) = self.client.resume(&still)
        {
            tracing::warn!(%error, "resuming partitions failed");
            self.paused = Some(still);
        }
    }

    fn assigned(&self) -> TopicPartitionList {
        let mut list = TopicPartitionList::new();
        for partition in self.client.context().positions().assigned() {
            let _element = list.add_partition(&self.topic, partition);
        }
        list
    }

    fn commit_pending(&self) {
        let pending = mem::take(
            &mut *self
                .shared
                .pending
                .lock()
                .unwrap_or_else(PoisonError::into_inner),
        );
        self.client.context().commit_current(&self.client, pending);
    }

    fn is_fatal(&self, error: &KafkaError) -> bool {
        let context = self.client.context();
        if let Some((code, reason)) = self.client.client().fatal_error() {
            let _told = context.tell(match code {
                RDKafkaErrorCode::FencedInstanceId => ConsumerEvent::Fenced { reason },
                code => ConsumerEvent::Fatal { code, reason },
            });
            return true;
        }
        let code = error
            .rdkafka_error_code()
            .unwrap_or(RDKafkaErrorCode::Unknown);
        match class_of(code) {
            // Rights and settings do not mend themselves while the process runs.
            Class::Config => {
                let _told = context.tell(ConsumerEvent::Fatal {
                    code,
                    reason: error.to_string(),
                });
                true
            }
            Class::Outage | Class::Unsure | Class::Record | Class::Bug => {
                tracing::debug!(%error, "polling met an error, the client goes on");
                false
            }
        }
    }
}
