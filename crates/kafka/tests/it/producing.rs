//! Reports, keys, limits.

use std::time::Duration;

use events::Class;
use kafka::{Header, Producer, dead_letters};

use crate::broker::{Broker, next};

#[tokio::test]
async fn each_record_is_reported_once_and_one_key_is_one_partition() {
    let broker = Broker::new().await;
    let (producer, mut reports) = Producer::new(&broker.config, "test").expect("a producer");
    for tag in 0..500 {
        producer
            .enqueue(broker.record("4711", "x"), tag)
            .expect("taken");
    }
    assert_eq!(producer.unreported(), 500);
    let mut seen = Vec::new();
    let mut offsets = Vec::new();
    while seen.len() < 500 {
        let report = tokio::time::timeout(Duration::from_secs(20), reports.recv())
            .await
            .expect("in time")
            .expect("open");
        let position = report.result.expect("acknowledged");
        // murmur2("4711") % 12, as the Java client has it.
        assert_eq!(position.partition, 10);
        seen.push(report.tag);
        offsets.push(position.offset);
    }
    assert_eq!(producer.unreported(), 0);
    assert!(offsets.is_sorted(), "D-5: one key stays in order");
    seen.sort_unstable();
    assert!(seen.into_iter().eq(0..500));
}

#[tokio::test]
async fn oversized_record_is_the_records_fault() {
    let broker = Broker::new().await;
    let text = String::from_utf8((0..3_000_000).map(|_| random_byte()).collect()).expect("ascii");
    let sent = broker
        .producer
        .send(broker.record("1", &text), Duration::from_secs(20))
        .await;
    assert_eq!(sent.expect_err("too large").class(), Class::Record);
}

/// Bytes that do not compress.
fn random_byte() -> u8 {
    use std::hash::{BuildHasher, RandomState};
    let hash = RandomState::new().hash_one(0_u8).to_be_bytes();
    b'!' + hash[0] % 90
}

#[tokio::test]
async fn record_comes_back_byte_for_byte() {
    let broker = Broker::new().await;
    let mut sent = broker.record("1", "payload");
    sent.headers = vec![
        Header::text("ce_id", "1"),
        Header {
            name: "none".into(),
            value: None,
        },
    ];
    let _position = broker
        .producer
        .send(sent.clone(), Duration::from_secs(20))
        .await
        .expect("acknowledged");
    let mut null = broker.record("1", "");
    (null.key, null.payload) = (None, None);
    let _position = broker
        .producer
        .send(null, Duration::from_secs(20))
        .await
        .expect("acknowledged");

    let (_handle, mut events) = broker.join();
    let mut records = Vec::new();
    while records.len() < 2 {
        if let kafka::ConsumerEvent::Record { record, .. } = next(&mut events).await {
            records.push(record);
        }
    }
    let read = records
        .iter()
        .find(|record| record.key.is_some())
        .expect("the first");
    assert_eq!(
        (&read.key, &read.payload, &read.headers),
        (&sent.key, &sent.payload, &sent.headers)
    );
    assert!(read.append_ms > 1_600_000_000_000);
    let null = records
        .iter()
        .find(|record| record.key.is_none())
        .expect("the second");
    assert_eq!(null.payload, None);

    let failure = dead_letters::Failure {
        step: "decode",
        reason: "payload_null".into(),
        error: "text".into(),
        attempts: 1,
        first_failed_us: 1,
    };
    let letter = dead_letters::of_consumed(
        &broker.config.namespace.fanout_posts_dead_letters(),
        null,
        &failure,
    );
    let position = broker
        .producer
        .send(letter, Duration::from_secs(20))
        .await
        .expect("acknowledged");
    assert_eq!(position.partition, 0);
}
