//! The idempotent producer: records in, one report for each out.
//!
//! Owns the count of records without a report, which bounds everything here (D-13): the client's
//! queue, the channel of reports, and what is on the wire.
//!
//! Promise: records of one key that are enqueued in order are written in order (D-5); each record
//! that was taken is reported exactly once; a record that was not taken is handed back.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use events::Class;
use rdkafka::{
    ClientContext,
    config::RDKafkaLogLevel,
    error::{KafkaError, RDKafkaErrorCode},
    message::{Header as ClientHeader, Message as _, OwnedHeaders},
    producer::{
        BaseRecord, DeliveryResult, NoCustomPartitioner, Producer as _, ProducerContext,
        ThreadedProducer,
    },
};
use tokio::sync::{mpsc, oneshot};

use crate::{
    Error, KafkaConfig, Record,
    error::{class_of, class_of_error},
    log::ClientLog,
    settings::{self, MAX_UNREPORTED, REQUEST_TIMEOUT},
};

/// How long a client may take to end.
const CLOSED_WITHIN: Duration = Duration::from_secs(10);

/// The producer. Cheap to clone; all clones share one client.
#[derive(Clone)]
pub struct Producer {
    client: Arc<ThreadedProducer<Context>>,
    unreported: Arc<AtomicUsize>,
    config: Arc<KafkaConfig>,
}

/// Where the reports of [`Producer::enqueue`] arrive.
#[derive(Debug)]
pub struct Reports {
    receiver: mpsc::Receiver<DeliveryReport>,
    unreported: Arc<AtomicUsize>,
}

/// What became of one record.
#[derive(Debug)]
pub struct DeliveryReport {
    /// The number given at [`Producer::enqueue`].
    pub tag: u64,
    /// Partition and offset.
    pub result: Result<Position, ProduceError>,
}

/// Where a record was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// The kafka partition.
    pub partition: i32,
    /// The offset.
    pub offset: i64,
}

/// A record that was taken and not acknowledged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProduceError {
    /// The client or the broker gave up on it.
    #[error("producing to {topic}: {code}")]
    Refused {
        /// The topic.
        topic: String,
        /// Kafka's code.
        code: RDKafkaErrorCode,
    },
    /// No report came within the time the caller gave; it may still be written.
    #[error("no acknowledgement from {topic} within {waited:?}")]
    TimedOut {
        /// The topic.
        topic: String,
        /// How long the caller waited.
        waited: Duration,
    },
}

impl ProduceError {
    /// What the failure means for the record.
    pub fn class(&self) -> Class {
        match self {
            Self::Refused { code, .. } => class_of(*code),
            Self::TimedOut { .. } => Class::Unsure,
        }
    }
}

/// A record that was not taken.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EnqueueError {
    /// As many records as are allowed wait for their report. Take reports first.
    #[error("the producer's queue is full")]
    QueueFull(Box<Record>),
    /// The client refuses it.
    #[error("enqueueing a record for {}", record.topic)]
    Refused {
        /// The record, handed back.
        record: Box<Record>,
        /// What librdkafka said.
        #[source]
        source: KafkaError,
    },
}

impl EnqueueError {
    /// What the failure means for the record; a full queue is pressure, an outage at most.
    pub fn class(&self) -> Class {
        match self {
            Self::QueueFull(_) => Class::Outage,
            Self::Refused { source, .. } => class_of_error(source),
        }
    }
}

impl Producer {
    /// A producer and the channel of its reports. Connects in the background.
    ///
    /// # Errors
    /// When librdkafka refuses the settings.
    pub fn new(config: &KafkaConfig, client_id: &str) -> Result<(Self, Reports), Error> {
        let (sender, receiver) = mpsc::channel(MAX_UNREPORTED);
        let unreported = Arc::new(AtomicUsize::new(0));
        let context = Context {
            log: ClientLog::default(),
            sender,
            unreported: Arc::clone(&unreported),
        };
        let client = settings::producer_config(config, client_id)
            .create_with_context(context)
            .map_err(|source| Error::Client {
                client: "producer",
                source,
            })?;
        let producer = Self {
            client: Arc::new(client),
            unreported: Arc::clone(&unreported),
            config: Arc::new(config.clone()),
        };
        Ok((
            producer,
            Reports {
                receiver,
                unreported,
            },
        ))
    }

    /// Hands a record to the client; its report carries `tag`. Never waits.
    ///
    /// # Errors
    /// [`EnqueueError`], with the record.
    pub fn enqueue(&self, record: Record, tag: u64) -> Result<(), EnqueueError> {
        self.hand_over(record, Waiter::Tag(tag))
    }

    /// Produces one record and waits until the broker has acknowledged it, for at most `timeout`.
    ///
    /// # Errors
    /// [`ProduceError`]: after `TimedOut` the record may be written nevertheless.
    ///
    /// # Cancel safety
    /// A dropped future leaves the record with the client, which may write it.
    pub async fn send(&self, record: Record, timeout: Duration) -> Result<Position, ProduceError> {
        let topic = record.topic.clone();
        let (sender, receiver) = oneshot::channel();
        if let Err(error) = self.hand_over(record, Waiter::Once(sender)) {
            let code = match error {
                EnqueueError::QueueFull(_) => RDKafkaErrorCode::QueueFull,
                EnqueueError::Refused { source, .. } => source
                    .rdkafka_error_code()
                    .unwrap_or(RDKafkaErrorCode::InvalidArgument),
            };
            return Err(ProduceError::Refused { topic, code });
        }
        match tokio::time::timeout(timeout, receiver).await {
            Ok(Ok(Ok(position))) => Ok(position),
            Ok(Ok(Err(code))) => Err(ProduceError::Refused { topic, code }),
            // The client went away with the record.
            Ok(Err(_)) => Err(ProduceError::Refused {
                topic,
                code: RDKafkaErrorCode::PurgeInflight,
            }),
            Err(_) => Err(ProduceError::TimedOut {
                topic,
                waited: timeout,
            }),
        }
    }

    /// How many records have been taken and not reported.
    pub fn unreported(&self) -> usize {
        self.unreported.load(Ordering::Acquire)
    }

    /// Waits until the client has written everything, for at most `timeout`. Reports have to be
    /// taken meanwhile or afterwards.
    ///
    /// # Errors
    /// When something is still unwritten.
    pub async fn flush(&self, timeout: Duration) -> Result<(), Error> {
        let client = Arc::clone(&self.client);
        blocking("producer's flush", move || {
            client.flush(timeout).map_err(|source| Error::Request {
                what: "a flush".into(),
                source,
            })
        })
        .await
    }

    /// Ends the client and throws away what it holds. The last handle joins the client's thread,
    /// which may take a moment; one that does not end is left behind.
    pub async fn close(self) {
        let ended = tokio::task::spawn_blocking(move || drop(self));
        if tokio::time::timeout(CLOSED_WITHIN, ended).await.is_err() {
            tracing::warn!("kafka client does not end: leaving it behind");
        }
    }

    /// The largest record batch the broker takes for `topic`.
    ///
    /// # Errors
    /// When the broker cannot be asked or does not have the topic.
    pub async fn max_message_bytes(&self, topic: &str) -> Result<usize, Error> {
        crate::topics::max_message_bytes(&self.config, topic).await
    }

    /// The client's fatal error, if it has one: only a new process can go on.
    pub fn fatal_error(&self) -> Option<(RDKafkaErrorCode, String)> {
        self.client.client().fatal_error()
    }

    fn hand_over(&self, record: Record, waiter: Waiter) -> Result<(), EnqueueError> {
        let counted = waiter.is_counted();
        if counted && self.unreported.fetch_add(1, Ordering::AcqRel) >= MAX_UNREPORTED {
            self.unreported.fetch_sub(1, Ordering::AcqRel);
            return Err(EnqueueError::QueueFull(Box::new(record)));
        }
        let Err(source) = self.hand_to_client(&record, waiter) else {
            return Ok(());
        };
        if counted {
            self.unreported.fetch_sub(1, Ordering::AcqRel);
        }
        if source.rdkafka_error_code() == Some(RDKafkaErrorCode::QueueFull) {
            return Err(EnqueueError::QueueFull(Box::new(record)));
        }
        Err(EnqueueError::Refused {
            record: Box::new(record),
            source,
        })
    }

    fn hand_to_client(&self, record: &Record, waiter: Waiter) -> Result<(), KafkaError> {
        let mut headers = OwnedHeaders::new_with_capacity(record.headers.len());
        for header in &record.headers {
            headers = headers.insert(ClientHeader {
                key: &header.name,
                value: header.value.as_deref(),
            });
        }
        let mut outgoing: BaseRecord<'_, [u8], [u8], Box<Waiter>> =
            BaseRecord::with_opaque_to(&record.topic, Box::new(waiter)).headers(headers);
        if let Some(key) = &record.key {
            outgoing = outgoing.key(key);
        }
        if let Some(payload) = &record.payload {
            outgoing = outgoing.payload(payload);
        }
        self.client.send(outgoing).map_err(|(error, _)| error)
    }
}

impl std::fmt::Debug for Producer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Producer")
            .field("unreported", &self.unreported())
            .finish_non_exhaustive()
    }
}

impl Reports {
    /// The next report; `None` after the producer is gone.
    ///
    /// # Cancel safety
    /// Cancel safe: no report is lost.
    pub async fn recv(&mut self) -> Option<DeliveryReport> {
        let report = self.receiver.recv().await;
        if report.is_some() {
            self.unreported.fetch_sub(1, Ordering::AcqRel);
        }
        report
    }

    /// The next report, if one is there.
    pub fn try_recv(&mut self) -> Option<DeliveryReport> {
        let report = self.receiver.try_recv().ok();
        if report.is_some() {
            self.unreported.fetch_sub(1, Ordering::AcqRel);
        }
        report
    }
}

/// Who waits for the report of one record.
enum Waiter {
    Tag(u64),
    Once(oneshot::Sender<Result<Position, RDKafkaErrorCode>>),
}

impl Waiter {
    fn is_counted(&self) -> bool {
        matches!(self, Self::Tag(_))
    }
}

struct Context {
    log: ClientLog,
    sender: mpsc::Sender<DeliveryReport>,
    unreported: Arc<AtomicUsize>,
}

impl ClientContext for Context {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, text: &str) {
        self.log.line(level, facility, text);
    }

    fn error(&self, error: KafkaError, reason: &str) {
        self.log.error(&error, reason);
    }
}

impl ProducerContext<NoCustomPartitioner> for Context {
    type DeliveryOpaque = Box<Waiter>;

    fn delivery(&self, result: &DeliveryResult<'_>, waiter: Box<Waiter>) {
        let outcome = match result {
            Ok(message) => Ok(Position {
                partition: message.partition(),
                offset: message.offset(),
            }),
            Err((error, _)) => Err(error
                .rdkafka_error_code()
                .unwrap_or(RDKafkaErrorCode::Unknown)),
        };
        match *waiter {
            // Whoever gave up waiting has dropped the receiver, which is its right.
            Waiter::Once(sender) => drop(sender.send(outcome)),
            Waiter::Tag(tag) => {
                let topic = || match result {
                    Ok(message) => message.topic().to_owned(),
                    Err((_, message)) => message.topic().to_owned(),
                };
                let result = outcome.map_err(|code| ProduceError::Refused {
                    topic: topic(),
                    code,
                });
                // Never full: `unreported` counts what is in the channel and never passes its
                // capacity. Closed means that the service has stopped listening.
                if self
                    .sender
                    .try_send(DeliveryReport { tag, result })
                    .is_err()
                {
                    self.unreported.fetch_sub(1, Ordering::AcqRel);
                }
            }
        }
    }
}

/// Runs a blocking call of the client off the runtime's threads.
pub(crate) async fn blocking<T: Send + 'static>(
    what: &'static str,
    call: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    match tokio::time::timeout(REQUEST_TIMEOUT * 3, tokio::task::spawn_blocking(call)).await {
        Ok(Ok(result)) => result,
        Ok(Err(_)) => Err(Error::Ended { what }),
        Err(_) => Err(Error::Request {
            what: what.into(),
            source: KafkaError::AdminOp(RDKafkaErrorCode::OperationTimedOut),
        }),
    }
}
