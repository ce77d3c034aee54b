//! Offsets and rebalances of the consumer loop.

use std::{collections::BTreeMap, time::Duration};

use kafka::{
    ConsumerEvent, ConsumerHandle,
    consumer::{CHANNEL_CAPACITY, Commit, Events},
};
use rdkafka::{
    ClientConfig, Offset, TopicPartitionList,
    admin::{AdminClient, AdminOptions},
    client::DefaultClientContext,
};
use testkit::eventually;

use crate::broker::{Broker, next};

/// Reads `count` records, answering revocations with nothing; (partition, offset, generation) each.
async fn read(events: &mut Events, count: usize) -> Vec<(i32, i64, u64)> {
    let mut seen = Vec::new();
    while seen.len() < count {
        match next(events).await {
            ConsumerEvent::Record { generation, record } => {
                seen.push((record.partition, record.offset, generation))
            }
            ConsumerEvent::Revoked { done, .. } => done.finish(BTreeMap::new()),
            _ => {}
        }
    }
    seen
}

/// Closes a member, answering the revocation with these commits.
async fn leave(mut handle: ConsumerHandle, mut events: Events, commits: &BTreeMap<i32, Commit>) {
    handle.close();
    while let Some(event) = tokio::time::timeout(Duration::from_secs(20), events.recv(false))
        .await
        .expect("in time")
    {
        if let ConsumerEvent::Revoked {
            done, partitions, ..
        } = event
        {
            done.finish(
                commits
                    .iter()
                    .filter(|(partition, _)| partitions.contains(partition))
                    .map(|(&partition, &commit)| (partition, commit))
                    .collect(),
            );
        }
    }
    assert!(handle.ended(Duration::from_secs(10)).await);
}

/// D-6: the next member starts where the answer to the revocation said, and a group without
/// offsets starts at the log's start.
#[tokio::test]
async fn d_6_only_what_was_committed_is_not_read_again() {
    let broker = Broker::new().await;
    broker.produce(100, 1).await;
    let (handle, mut events) = broker.join();
    let seen = read(&mut events, 100).await;
    assert_eq!(seen.first().map(|(_, offset, _)| *offset), Some(0));
    let (partition, _, generation) = seen[0];
    let offset = 40;
    let commits = BTreeMap::from([(partition, Commit { generation, offset })]);
    leave(handle, events, &commits).await;
    let committed = broker
        .admin
        .committed(&broker.group, &broker.topic)
        .await
        .expect("committed");
    assert_eq!(committed[&partition], Some(40));
    assert_eq!(
        committed.values().flatten().count(),
        1,
        "nothing else was committed"
    );

    let (handle, mut events) = broker.join();
    let again = read(&mut events, 60).await;
    assert_eq!(again.first().map(|(_, offset, _)| *offset), Some(40));
    let generation = again[0].2;
    handle.commit(partition, generation + 1, 99);
    handle.commit(partition, generation, 70);
    eventually("the commit of the current generation", || async {
        let committed = broker
            .admin
            .committed(&broker.group, &broker.topic)
            .await
            .ok()?;
        (committed[&partition] == Some(70)).then_some(())
    })
    .await;
    // Worked on before the log was a new one, as far as the thread knows.
    let stale = Commit {
        generation: generation - 1,
        offset: 99,
    };
    leave(handle, events, &BTreeMap::from([(partition, stale)])).await;
    let committed = broker
        .admin
        .committed(&broker.group, &broker.topic)
        .await
        .expect("committed");
    assert_eq!(committed[&partition], Some(70));
}

/// The channel is full, nobody takes records, and the member stays in the group (D-13).
#[tokio::test]
async fn d_13_full_channel_pauses_and_resumes_without_loss() {
    let broker = Broker::new().await;
    let count = CHANNEL_CAPACITY * 3;
    broker.produce(count, 50).await;
    let (handle, mut events) = broker.join();
    let ConsumerEvent::Assigned { partitions, .. } = next(&mut events).await else {
        panic!("assigned first")
    };
    assert_eq!(partitions.len(), 12);
    eventually("the pause", || async { handle.is_paused().then_some(()) }).await;
    // Longer than a session: polling goes on, so nothing is taken away.
    assert!(
        tokio::time::timeout(Duration::from_secs(12), events.recv(false))
            .await
            .is_err()
    );
    eventually("polling goes on", || async {
        (handle.is_paused() && handle.polled_ago() < Duration::from_secs(1)).then_some(())
    })
    .await;

    let mut per_partition: BTreeMap<i32, Vec<i64>> = BTreeMap::new();
    for (partition, offset, _) in read(&mut events, count).await {
        per_partition.entry(partition).or_default().push(offset);
    }
    for offsets in per_partition.values() {
        assert!(
            offsets
                .iter()
                .copied()
                .eq(0..i64::try_from(offsets.len()).expect("few")),
            "none lost, none twice"
        );
    }
    leave(handle, events, &BTreeMap::new()).await;
}

#[tokio::test]
async fn records_that_are_gone_are_told_before_the_next_one() {
    let broker = Broker::new().await;
    broker.produce(20, 1).await;
    let (handle, mut events) = broker.join();
    let (partition, _, generation) = read(&mut events, 20).await[0];
    let offset = 5;
    let commits = BTreeMap::from([(partition, Commit { generation, offset })]);
    leave(handle, events, &commits).await;

    let client: AdminClient<DefaultClientContext> = ClientConfig::new()
        .set("bootstrap.servers", &broker.config.brokers)
        .create()
        .expect("a client");
    let mut gone = TopicPartitionList::new();
    gone.add_partition_offset(&broker.topic, partition, Offset::Offset(12))
        .expect("an offset");
    let _deleted = client
        .delete_records(&gone, &AdminOptions::new())
        .await
        .expect("deleted");

    let (handle, mut events) = broker.join();
    let ConsumerEvent::Assigned { .. } = next(&mut events).await else {
        panic!("assigned first")
    };
    match next(&mut events).await {
        ConsumerEvent::OffsetLost {
            expected, found, ..
        } => assert_eq!((expected, found), (5, 12)),
        other => panic!("expected the loss, got {other:?}"),
    }
    assert_eq!(
        read(&mut events, 8).await[0].1,
        12,
        "it goes on at the log's start"
    );
    leave(handle, events, &BTreeMap::new()).await;
}

/// Two members share the partitions; when one leaves, the other has all, and nothing was lost.
#[tokio::test]
async fn partitions_move_one_by_one() {
    let broker = Broker::new().await;
    let (first, mut first_events) = broker.join();
    let ConsumerEvent::Assigned { partitions, .. } = next(&mut first_events).await else {
        panic!("assigned first")
    };
    assert_eq!(partitions.len(), 12);
    let (second, mut second_events) = broker.join();
    let ConsumerEvent::Revoked {
        partitions,
        done,
        lost,
    } = next(&mut first_events).await
    else {
        panic!("half is taken away")
    };
    assert!(
        partitions.len() == 6 && !lost,
        "cooperative: only what moves"
    );
    done.finish(BTreeMap::new());
    let moved = loop {
        match next(&mut second_events).await {
            ConsumerEvent::Assigned { partitions, .. } if partitions.is_empty() => {}
            ConsumerEvent::Assigned { partitions, .. } => break partitions,
            other => panic!("expected an assignment, got {other:?}"),
        }
    };
    assert_eq!(moved, partitions);
    leave(second, second_events, &BTreeMap::new()).await;
    loop {
        if let ConsumerEvent::Assigned { partitions, .. } = next(&mut first_events).await
            && partitions.len() == 6
        {
            break;
        }
    }
    leave(first, first_events, &BTreeMap::new()).await;
}
