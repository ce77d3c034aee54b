//! Events of the consumer group, turned into inputs of the state machine.

use std::{collections::BTreeMap, time::Duration};

use kafka::{
    Consumed, Consumer, ConsumerEvent, ConsumerHandle, KafkaConfig, class_of,
    consumer::{Commit, Events, RevokeAnswer},
    settings::SESSION_TIMEOUT,
};

use crate::{
    core::state::{Input, Revocation},
    error::FanoutError,
};

/// A member of the lane's group.
#[derive(Debug)]
pub(crate) struct Source {
    handle: ConsumerHandle,
    events: Events,
    answers: BTreeMap<Revocation, RevokeAnswer>,
    revocations: u64,
}

/// What came.
#[derive(Debug)]
pub(crate) enum Arrival {
    /// An input by itself.
    Input(Input),
    /// A record and its input.
    Record(Input, Box<Consumed>),
    /// The offsets of a partition jumped.
    OffsetLost {
        input: Input,
        expected: i64,
        found: i64,
    },
    /// A commit was refused.
    CommitFailed(String),
}

impl Source {
    pub(crate) fn join(
        config: &KafkaConfig,
        group: &str,
        topic: &str,
        instance_id: &str,
    ) -> Result<Self, kafka::Error> {
        let instance_id = (!instance_id.is_empty()).then_some(instance_id);
        let (handle, events) = Consumer::start(config, group, topic, instance_id)?;
        Ok(Self {
            handle,
            events,
            answers: BTreeMap::new(),
            revocations: 0,
        })
    }

    /// What comes next; records only if `take_records`. `None` after the member has left.
    ///
    /// # Cancel safety
    /// Cancel safe: nothing is lost.
    pub(crate) async fn recv(
        &mut self,
        take_records: bool,
    ) -> Result<Option<Arrival>, FanoutError> {
        let Some(event) = self.events.recv(take_records).await else {
            return Ok(None);
        };
        Ok(Some(match event {
            ConsumerEvent::Assigned {
                partitions,
                generation,
            } => Arrival::Input(Input::Assigned {
                partitions,
                generation,
            }),
            ConsumerEvent::Revoked {
                partitions,
                done,
                lost,
            } => {
                self.revocations += 1;
                let revocation = Revocation(self.revocations);
                let _none_before = self.answers.insert(revocation, done);
                Arrival::Input(Input::Revoked {
                    partitions,
                    lost,
                    revocation,
                })
            }
            ConsumerEvent::Record { generation, record } => {
                let input = Input::Record {
                    partition: record.partition,
                    generation,
                    offset: record.offset,
                };
                Arrival::Record(input, Box::new(record))
            }
            ConsumerEvent::OffsetLost {
                partition,
                generation,
                expected,
                found,
            } => Arrival::OffsetLost {
                input: Input::OffsetLost {
                    partition,
                    generation,
                },
                expected,
                found,
            },
            ConsumerEvent::CommitFailed { code } => Arrival::CommitFailed(code.to_string()),
            ConsumerEvent::Fenced { reason } => return Err(FanoutError::Fenced { reason }),
            ConsumerEvent::Fatal { code, reason } => {
                return Err(FanoutError::ConsumerBroke {
                    reason,
                    class: class_of(code),
                });
            }
        }))
    }

    pub(crate) fn commit(&self, partition: i32, generation: u64, offset: i64) {
        self.handle.commit(partition, generation, offset);
    }

    pub(crate) fn answer(&mut self, revocation: Revocation, offsets: BTreeMap<i32, (u64, i64)>) {
        let Some(answer) = self.answers.remove(&revocation) else {
            return;
        };
        let commit = |(generation, offset)| Commit { generation, offset };
        let commits = offsets
            .into_iter()
            .map(|(partition, done)| (partition, commit(done)));
        answer.finish(commits.collect());
    }

    /// Whether the polling thread has polled lately, so that the membership is alive.
    pub(crate) fn is_polling(&self) -> bool {
        self.handle.polled_ago() < SESSION_TIMEOUT
    }

    /// Begins to leave the group; what is assigned is revoked first.
    pub(crate) fn close(&self) {
        self.handle.close();
    }

    /// Waits for the member to have left, for at most `patience`.
    pub(crate) async fn ended(&mut self, patience: Duration) -> bool {
        self.handle.ended(patience).await
    }
}
