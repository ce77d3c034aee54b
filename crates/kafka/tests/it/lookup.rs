//! Looking for the records of one key.

use std::time::Duration;

use kafka::{
    Consumed,
    lookup::{Search, Searched, search},
};

use crate::broker::Broker;

/// Searches; a moment after a topic was made, a partition may have no leader yet.
async fn searched(
    broker: &Broker,
    key: &str,
    since_ms: Option<i64>,
    wanted: fn(&Consumed) -> bool,
) -> Searched {
    let question = Search {
        topic: broker.topic.clone(),
        key: key.as_bytes().to_vec(),
        since_ms,
        budget: Duration::from_secs(15),
    };
    testkit::eventually("the partition has a leader", || async {
        match search(&broker.config, &question, wanted).await {
            Ok(found) => Some(found),
            Err(error) if error.class().is_retried() => None,
            Err(error) => panic!("{error}"),
        }
    })
    .await
}

#[tokio::test]
async fn records_of_a_key_are_found_where_they_lie_and_nothing_is_committed() {
    let broker = Broker::new().await;
    let mut sent = Vec::new();
    for text in ["a", "b", "a"] {
        let record = broker.record("4711", text);
        let position = broker.producer.send(record, Duration::from_secs(20)).await;
        sent.push(position.expect("acknowledged"));
    }
    broker.produce(200, 40).await;
    let found = searched(&broker, "4711", None, |record| {
        record.payload.as_deref() == Some(b"a")
    })
    .await;
    assert!(found.is_complete(), "{found:?}");
    let places: Vec<_> = found
        .matches
        .iter()
        .map(|r| (r.partition, r.offset))
        .collect();
    assert_eq!(
        places,
        [(10, sent[0].offset), (10, sent[2].offset)],
        "the partition of the Java client"
    );
    let admin = &broker.admin;
    let committed = admin
        .committed("tideline-lookup", &broker.topic)
        .await
        .expect("asked");
    assert!(committed.values().all(Option::is_none), "{committed:?}");
}

#[tokio::test]
async fn a_search_begins_at_its_moment() {
    let broker = Broker::new().await;
    broker.produce(50, 1).await;
    let all = searched(&broker, "0", None, |_| true).await;
    assert_eq!(all.matches.len(), 50);
    let last_ms = all.matches[49].append_ms;
    let first_of_last = all.matches.iter().find(|r| r.append_ms == last_ms);
    let late = searched(&broker, "0", Some(last_ms), |_| true).await;
    assert_eq!(Some(late.from), first_of_last.map(|record| record.offset));
    assert!(late.is_complete() && late.matches.len() <= 50);
    let never = searched(&broker, "0", Some(last_ms + 3_600_000), |_| true).await;
    assert!(never.is_complete() && never.matches.is_empty(), "{never:?}");
}

#[tokio::test]
async fn a_key_without_records_is_an_answer() {
    let broker = Broker::new().await;
    let none = searched(&broker, "1", None, |_| true).await;
    assert!(none.is_complete() && none.matches.is_empty(), "{none:?}");
}
