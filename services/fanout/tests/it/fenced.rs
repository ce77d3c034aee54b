//! Members that share an instance id, for a moment or for good.

use events::{Event, UserId};
use kafka::{Consumer, ConsumerEvent};
use runtime::report::chain;
use testkit::eventually;

use crate::stage::{Member, Stage};

const ID: &str = "fanout-0";

/// D-12: a member whose place another one took for a moment, as a broker remembers it after an
/// outage, joins again and goes on; nothing is lost.
#[tokio::test]
async fn d_12_a_fenced_member_joins_again() {
    let stage = Stage::new().await;
    let (author, _) = stage.author(4).await;
    let member = stage.start_as(ID);
    deliver(&stage, author).await;

    let (rival, mut events) = Consumer::start(
        &stage.deployment.kafka_config(),
        &stage.deployment.namespace().fanout_posts_group(),
        &stage.topic(),
        Some(ID),
    )
    .expect("a rival");
    eventually("the member was fenced", || fenced(&member)).await;
    // The rival is fenced in its turn when the member is back; it must not join a second time.
    while let Some(event) = events.recv(false).await {
        if let ConsumerEvent::Revoked { done, .. } = event {
            done.finish(std::collections::BTreeMap::new());
        } else if matches!(event, ConsumerEvent::Fenced { .. }) {
            break;
        }
    }
    drop(rival);
    deliver(&stage, author).await;
    member.stop().await;
}

/// Two processes that keep one instance id: one of them ends and says which setting is wrong, the
/// other one works.
#[tokio::test]
async fn a_member_that_is_fenced_again_names_the_setting() {
    let stage = Stage::new().await;
    let (author, _) = stage.author(4).await;
    let first = stage.start_as(ID);
    deliver(&stage, author).await;
    let second = stage.start_as(ID);
    let (ended, other) = {
        let (mut first, mut second) = (Box::pin(first.ended()), Box::pin(second.ended()));
        tokio::select! {
            ended = &mut first => (ended, second),
            ended = &mut second => (ended, first),
        }
    };
    let exit = ended.expect_err("it cannot go on");
    assert_eq!(exit.code(), 64);
    assert!(
        chain(&exit).to_string().contains("fanout.instance_id"),
        "{exit:?}"
    );
    let delivery = deliver(&stage, author);
    tokio::select! {
        () = delivery => {}
        ended = other => panic!("the other one ended too: {ended:?}"),
    }
}

/// One post, delivered.
async fn deliver(stage: &Stage, author: UserId) {
    let (id, post) = stage.post(author).await;
    let position = stage.produce(id, &Event::PostCreated(post.clone())).await;
    stage.delivered(id).await;
    stage.committed(position).await;
    assert_eq!(stage.rows(post.post_id).await.len(), 4);
}

async fn fenced(member: &Member) -> Option<()> {
    let series = "tideline_fanout_rebalances_total{kind=\"fenced\"}";
    (member.metric(series).await > 0.0).then_some(())
}
