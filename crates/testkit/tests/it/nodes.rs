//! Servers of three nodes lose nodes as they are said to. Heavy, and one at a time on a machine, so
//! these run only when they are asked for: `cargo test -p testkit --test it -- --ignored nodes`.

use std::time::Duration;

use events::{PostId, UserId};
use kafka::{ProduceError, Producer, Record};
use testkit::{Deployment, eventually_within};

const PATIENCE: Duration = Duration::from_secs(60);
/// Longer than the brokers take to agree that one of them is gone.
const REFUSED_AFTER: Duration = Duration::from_secs(15);

#[tokio::test(flavor = "multi_thread")]
#[ignore = "starts three brokers"]
async fn a_record_is_taken_while_two_of_three_brokers_run() {
    let deployment = Deployment::on_three_brokers().await;
    let brokers = deployment.brokers();
    assert_eq!(deployment.kafka_config().replication_factor, 3);
    let (producer, _reports) = Producer::new(&deployment.kafka_config(), "t").expect("a client");
    let topic = deployment.namespace().probe();
    let before = produce(&producer, &topic, PATIENCE).await.expect("taken");

    brokers.kill(0).await;
    let with_two = produce(&producer, &topic, PATIENCE).await.expect("taken");
    assert!(with_two > before);

    brokers.kill(1).await;
    let alone = produce(&producer, &topic, REFUSED_AFTER).await;
    let error = alone.expect_err("one copy is not enough");
    assert!(matches!(error, ProduceError::TimedOut { .. }), "{error}");

    brokers.start(0).await;
    let again = produce(&producer, &topic, PATIENCE).await.expect("taken");
    assert!(again > with_two);
    brokers.start(1).await;
    // What only one broker had is not lost.
    let offsets = kafka::Admin::new(&deployment.kafka_config()).expect("a client");
    let ends = offsets.end_offsets(&topic).await.expect("an answer");
    assert!(ends.values().sum::<i64>() > again);
}

/// The record's offset, once it is taken.
async fn produce(producer: &Producer, topic: &str, within: Duration) -> Result<i64, ProduceError> {
    let record = Record {
        topic: topic.to_owned(),
        key: None,
        payload: Some("x".into()),
        headers: Vec::new(),
    };
    Ok(producer.send(record, within).await?.offset)
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "starts three CQL nodes"]
async fn a_quorum_answers_while_two_of_three_cql_nodes_run() {
    let deployment = Deployment::on_three_cql_nodes().await;
    let nodes = deployment.nodes();
    let store = deployment.timelines().await;
    let answers = async || store.row(UserId(1), PostId(1)).await.is_ok().then_some(());
    let refused = async || store.row(UserId(1), PostId(1)).await.err().map(drop);
    eventually_within(PATIENCE, "all three answer", answers).await;

    nodes.kill(0).await;
    eventually_within(PATIENCE, "two answer", answers).await;

    nodes.kill(1).await;
    eventually_within(PATIENCE, "one is no quorum", refused).await;

    nodes.start(1).await;
    eventually_within(PATIENCE, "two answer again", answers).await;
    nodes.start(0).await;
    eventually_within(PATIENCE, "all three answer again", answers).await;
}
