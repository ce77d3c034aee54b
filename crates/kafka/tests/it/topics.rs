//! Creation and comparison.

use kafka::{Error, topics};
use rdkafka::{
    ClientConfig,
    admin::{AdminClient, AdminOptions, AlterConfig, ResourceSpecifier},
    client::DefaultClientContext,
};

use testkit::eventually;

use crate::broker::Broker;

#[tokio::test]
async fn created_once_and_as_declared() {
    let broker = Broker::new().await;
    topics::verify(&broker.config).await.expect("as declared");
    let again = topics::create(&broker.config).await.expect("idempotent");
    let declared = topics::declared(&broker.config.namespace).len();
    assert_eq!((again.created.len(), again.existing.len()), (0, declared));
    assert_eq!(
        broker
            .producer
            .max_message_bytes(&broker.topic)
            .await
            .expect("a limit"),
        1_048_576
    );
    assert_eq!(
        broker
            .admin
            .partition_count(&broker.topic)
            .await
            .expect("a count"),
        12
    );
    let copies = broker.admin.copies_in_sync(&broker.topic).await;
    let copies = copies.expect("an answer");
    assert_eq!(
        (copies.len(), copies.values().max()),
        (12, Some(&1)),
        "one broker"
    );
}

#[tokio::test]
async fn difference_is_named() {
    let broker = Broker::new().await;
    let client: AdminClient<DefaultClientContext> = ClientConfig::new()
        .set("bootstrap.servers", &broker.config.brokers)
        .create()
        .expect("a client");
    let change = AlterConfig::new(ResourceSpecifier::Topic(&broker.topic))
        .set("message.timestamp.type", "CreateTime")
        .set("retention.ms", "604800000")
        .set("max.message.bytes", "1048576");
    let results = client
        .alter_configs([&change], &AdminOptions::new())
        .await
        .expect("altered");
    assert!(results.iter().all(Result::is_ok), "{results:?}");
    // The broker acknowledges a change before it tells of it.
    let difference = eventually("the difference", || async {
        topics::verify(&broker.config).await.err()
    })
    .await;
    let Error::TopicDiffers {
        topic,
        setting,
        found,
        ..
    } = difference
    else {
        panic!("expected a difference, got {difference:?}");
    };
    assert_eq!(
        (topic, setting, found.as_str()),
        (broker.topic.clone(), "message.timestamp.type", "CreateTime")
    );
}

#[tokio::test]
async fn copies_that_would_not_be_waited_for_are_a_difference() {
    let mut broker = Broker::new().await;
    // These topics were made for one copy each.
    broker.config.replication_factor = 3;
    let difference = topics::verify(&broker.config)
        .await
        .expect_err("a difference");
    let Error::TopicDiffers {
        setting,
        expected,
        found,
        ..
    } = difference
    else {
        panic!("expected a difference, got {difference:?}");
    };
    assert_eq!(setting, "min.insync.replicas");
    assert_eq!((expected.as_str(), found.as_str()), ("2 or more", "1"));
}

#[tokio::test]
async fn missing_topic_is_waited_for() {
    let mut broker = Broker::new().await;
    broker.config.namespace = events::Namespace::new(&testkit::unique("none")).expect("valid");
    let error = topics::verify(&broker.config)
        .await
        .expect_err("nothing is there");
    assert!(matches!(error, Error::TopicMissing { .. }), "{error}");
    assert_eq!(error.class(), events::Class::Outage);
}
