//! A namespace of its own on the shared broker.

use std::time::Duration;

use bytes::Bytes;
use events::{Namespace, topic::TopicKind};
use kafka::{
    Admin, Consumer, ConsumerEvent, ConsumerHandle, KafkaConfig, Producer, Record,
    consumer::Events, topics,
};
use testkit::{Servers, unique};

/// Fresh topics.
pub(crate) struct Broker {
    pub(crate) config: KafkaConfig,
    pub(crate) topic: String,
    pub(crate) group: String,
    pub(crate) admin: Admin,
    pub(crate) producer: Producer,
}

impl Broker {
    pub(crate) async fn new() -> Self {
        let namespace = Namespace::new(&unique("k")).expect("valid");
        let config = KafkaConfig {
            brokers: Servers::get().await.kafka_brokers(),
            namespace,
            replication_factor: 1,
        };
        let _report = topics::create(&config).await.expect("create topics");
        let (producer, _reports) = Producer::new(&config, "test").expect("a producer");
        Self {
            topic: config.namespace.topic(TopicKind::Posts),
            group: config.namespace.fanout_posts_group(),
            admin: Admin::new(&config).expect("an admin client"),
            producer,
            config,
        }
    }

    pub(crate) fn record(&self, key: &str, payload: &str) -> Record {
        Record {
            topic: self.topic.clone(),
            key: Some(Bytes::from(key.to_owned())),
            payload: Some(Bytes::from(payload.to_owned())),
            headers: Vec::new(),
        }
    }

    /// Produces one record a number, keys `0..keys`.
    pub(crate) async fn produce(&self, count: usize, keys: usize) {
        let sends = (0..count).map(|number| {
            let record = self.record(&(number % keys).to_string(), &number.to_string());
            self.producer.send(record, Duration::from_secs(20))
        });
        for sent in futures::future::join_all(sends).await {
            let _position = sent.expect("acknowledged");
        }
    }

    pub(crate) fn join(&self) -> (ConsumerHandle, Events) {
        Consumer::start(&self.config, &self.group, &self.topic, None).expect("a member")
    }
}

/// The next event, within a deadline.
pub(crate) async fn next(events: &mut Events) -> ConsumerEvent {
    tokio::time::timeout(Duration::from_secs(30), events.recv(true))
        .await
        .expect("an event in time")
        .expect("a member")
}

impl Drop for Broker {
    fn drop(&mut self) {
        let config = self.config.clone();
        // The test's runtime may be ending, so this one is its own.
        let removal = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .ok()?;
            runtime.block_on(topics::remove(&config)).ok()
        });
        // Topics that stay are only a burden to the broker.
        let _outcome = removal.join();
    }
}
