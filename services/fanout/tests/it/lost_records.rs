//! Records that Kafka no longer has: the lane goes on by itself, and the sweep is asked to look.

use std::time::Duration;

use events::{Event, EventId, PostCreated};
use kafka::{Producer, producer::Position};
use rdkafka::{
    ClientConfig, Offset, TopicPartitionList,
    admin::{AdminClient, AdminOptions},
    client::DefaultClientContext,
};
use testkit::{answered, eventually, eventually_within};

use crate::stage::Stage;

/// The log starts behind the committed offset: what is left is delivered.
#[tokio::test]
async fn a_log_that_starts_later_is_read_from_its_start() {
    let stage = Stage::new().await;
    let (author, _) = stage.author(2).await;
    let member = stage.start();
    let (id, post) = stage.post(author).await;
    let first = stage.produce(id, &Event::PostCreated(post)).await;
    stage.committed(first).await;
    member.stop().await;
    let mut posts = Vec::new();
    for _ in 0..4 {
        let (id, post) = stage.post(author).await;
        let position = stage.produce(id, &Event::PostCreated(post.clone())).await;
        assert_eq!(
            position.partition, first.partition,
            "one key, one partition"
        );
        posts.push((id, post, position));
    }
    delete_before(&stage, posts[2].2).await;

    let member = stage.start();
    for (id, post, position) in &posts[2..] {
        stage.delivered(*id).await;
        stage.committed(*position).await;
        assert_eq!(stage.rows(post.post_id).await.len(), 2);
    }
    for (_, post, _) in &posts[..2] {
        assert!(stage.rows(post.post_id).await.is_empty(), "the sweep's");
    }
    eventually("the sweep is asked", || async {
        (requests(&stage).await == 1).then_some(())
    })
    .await;
    assert_eq!(
        member.metric("tideline_fanout_offsets_lost_total").await,
        1.0
    );
    member.stop().await;
}

/// The topic is deleted and made again under a running member: an outage that ends.
#[tokio::test]
async fn a_topic_made_anew_is_read() {
    let stage = Stage::new().await;
    let (author, _) = stage.author(2).await;
    let member = stage.start();
    for _ in 0..5 {
        let (id, post) = stage.post(author).await;
        let position = stage.produce(id, &Event::PostCreated(post)).await;
        stage.committed(position).await;
    }
    let (config, topic) = (stage.deployment.kafka_config(), stage.topic());
    // Returns when the topic is gone: what is made before that would still be the old one.
    answered(|| kafka::surgery::delete_topic(&config, &topic)).await;
    answered(|| kafka::topics::create(&config)).await;
    let (id, post) = stage.post(author).await;
    let _position = produce_anew(&stage, id, &post).await;
    let limit = Duration::from_secs(90);
    eventually_within(limit, "the post is delivered", || async {
        (stage.rows(post.post_id).await.len() == 2).then_some(())
    })
    .await;
    stage.delivered(id).await;
    let (id, post) = stage.post(author).await;
    let position = produce_anew(&stage, id, &post).await;
    stage.delivered(id).await;
    stage.committed(position).await;
    assert_eq!(stage.rows(post.post_id).await.len(), 2);
    member.stop().await;
}

async fn requests(stage: &Stage) -> i64 {
    let sql = "select count(*) from tideline.sweep_request where reason = 'offset_lost'";
    let row = stage.deployment.sql().await.query_one(sql, &[]).await;
    row.expect("a count").get(0)
}

/// Lets the log of this record's partition start with it.
async fn delete_before(stage: &Stage, position: Position) {
    let brokers = stage.deployment.servers().kafka_brokers();
    let admin: AdminClient<DefaultClientContext> = ClientConfig::new()
        .set("bootstrap.servers", brokers)
        .create()
        .expect("an admin client");
    let mut start = TopicPartitionList::new();
    start
        .add_partition_offset(
            &stage.topic(),
            position.partition,
            Offset::Offset(position.offset),
        )
        .expect("an offset");
    let options = AdminOptions::new().operation_timeout(Some(Duration::from_secs(10)));
    let _list = admin
        .delete_records(&start, &options)
        .await
        .expect("records deleted");
}

/// Produces with a client that has never seen the topic of before.
async fn produce_anew(stage: &Stage, id: EventId, post: &PostCreated) -> Position {
    let (producer, _no_tags) =
        Producer::new(&stage.deployment.kafka_config(), "test").expect("a producer");
    let record = stage.record(id, &Event::PostCreated(post.clone()));
    eventually("the record is acknowledged", || async {
        producer
            .send(record.clone(), Duration::from_secs(20))
            .await
            .ok()
    })
    .await
}
