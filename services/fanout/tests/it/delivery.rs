//! Posts, replays, deletes, ghosts.

use std::time::Instant;

use database::post_delivery;
use events::{Event, EventId, PostId, UserId, envelope};
use kafka::Header;
use testkit::eventually;

use crate::stage::Stage;

#[tokio::test]
async fn each_follower_gets_one_row_and_the_ledger_says_delivered() {
    let stage = Stage::new().await;
    let (author, mut followers) = stage.author(7).await;
    let member = stage.start();
    let (id, post) = stage.post(author).await;
    let position = stage.produce(id, &Event::PostCreated(post.clone())).await;
    stage.delivered(id).await;
    stage.committed(position).await;

    followers.sort();
    let rows = stage.rows(post.post_id).await;
    assert_eq!(
        rows.iter().map(|row| row.owner).collect::<Vec<_>>(),
        followers
    );
    for row in &rows {
        assert_eq!((row.author, row.write_us), (author, post.post_us));
        let ttl = row.ttl_seconds.expect("an end");
        assert!((30 * 86_400 - 120..=30 * 86_400).contains(&ttl), "{ttl}");
    }
    let status = post_delivery::of_post(&stage.client().await, post.post_id)
        .await
        .expect("a status")
        .expect("known");
    assert_eq!(
        (status.audience, status.rows, status.delivered),
        (Some(7), Some(7), true)
    );
    assert!(status.first_row_us <= status.last_row_us && status.first_row_us > Some(post.post_us));

    let metrics = reqwest::get(format!("http://{}/metrics", member.admin))
        .await
        .expect("metrics");
    let text = metrics.text().await.expect("text");
    for line in [
        "tideline_fanout_posts_total{result=\"delivered\"} 1",
        "tideline_fanout_rows_written_total 7",
        "tideline_fanout_rows_outstanding 0",
        "tideline_fanout_delivery_seconds_count{audience=\"small\"} 1",
    ] {
        assert!(text.contains(line), "{line} in {text}");
    }
    eventually("ready", || async {
        let ready = reqwest::get(format!("http://{}/readyz", member.admin))
            .await
            .ok()?;
        ready.status().is_success().then_some(())
    })
    .await;
    member.stop().await;
}

#[tokio::test]
async fn post_without_followers_is_delivered() {
    let stage = Stage::new().await;
    let author = stage.user().await;
    let member = stage.start();
    let (id, post) = stage.post(author).await;
    let _position = stage.produce(id, &Event::PostCreated(post.clone())).await;
    stage.delivered(id).await;
    assert!(stage.rows(post.post_id).await.is_empty());
    member.stop().await;
}

/// D-7: the same record again leaves the same cells and write timestamps, a later follower within
/// the hour gets the post by it, and a later one does not.
#[tokio::test]
async fn d_7_replay_leaves_the_same_cells() {
    let stage = Stage::new().await;
    let (author, _) = stage.author(5).await;
    let member = stage.start();
    let (id, post) = stage.post(author).await;
    let event = Event::PostCreated(post.clone());
    let position = stage.produce(id, &event).await;
    stage.committed(position).await;
    let first_asked = Instant::now();
    let first = stage.rows(post.post_id).await;
    let first_read = Instant::now();
    assert_eq!(first.len(), 5);

    let again = stage.produce(id, &event).await;
    stage.committed(again).await;
    let second_asked = Instant::now();
    let second = stage.rows(post.post_id).await;
    // Between the two looks pass at least and at most so many seconds.
    let least = (second_asked - first_read).as_secs();
    let most = first_asked.elapsed().as_secs() + 1;
    assert_eq!(first.len(), second.len());
    for (a, b) in first.iter().zip(&second) {
        assert_eq!(
            (a.owner, a.author, a.write_us),
            (b.owner, b.author, b.write_us)
        );
        let [a, b] = [a, b].map(|row| i64::from(row.ttl_seconds.expect("an end")));
        let expected = a - most.cast_signed() - 5..=a - least.cast_signed() + 5;
        assert!(expected.contains(&b), "{b} is not in {expected:?}");
    }
    // The edge rule: within the hour and after it.
    let (soon, late) = (stage.user().await, stage.user().await);
    let sql = stage.deployment.sql().await;
    for (follower, edge_us) in [
        (soon, post.post_us.0 + 60_000_000),
        (late, post.post_us.0 + 3_600_000_001),
    ] {
        let insert =
            "insert into tideline.follows (followee_id, follower_id, edge_us) values ($1, $2, $3)";
        let _count = sql
            .execute(insert, &[&author.0, &follower.0, &edge_us])
            .await
            .expect("an edge");
    }
    let once_more = stage.produce(id, &event).await;
    stage.committed(once_more).await;
    let third = stage.rows(post.post_id).await;
    assert_eq!(third.len(), 6);
    let row = third
        .iter()
        .find(|row| row.owner == soon)
        .expect("the early edge");
    assert_eq!(row.write_us, post.post_us.plus(60_000_000));
    member.stop().await;
}

/// D-8: a delete takes all rows, and nothing that comes again brings one back.
#[tokio::test]
async fn d_8_deleted_post_stays_deleted() {
    let stage = Stage::new().await;
    let (author, _) = stage.author(4).await;
    let member = stage.start();
    let (id, post) = stage.post(author).await;
    let created = Event::PostCreated(post.clone());
    let position = stage.produce(id, &created).await;
    stage.committed(position).await;
    assert_eq!(stage.rows(post.post_id).await.len(), 4);

    let (delete_id, deleted) = stage.delete(author, post.post_id).await;
    let position = stage
        .produce(delete_id, &Event::PostDeleted(deleted.clone()))
        .await;
    stage.committed(position).await;
    stage.delivered(delete_id).await;
    assert!(stage.rows(post.post_id).await.is_empty());

    // The replay reads that the post is deleted, and writes nothing.
    let position = stage.produce(id, &created).await;
    stage.committed(position).await;
    let position = stage.produce(delete_id, &Event::PostDeleted(deleted)).await;
    stage.committed(position).await;
    assert!(stage.rows(post.post_id).await.is_empty());
    member.stop().await;
}

#[tokio::test]
async fn ghost_writes_nothing_and_is_not_in_the_ledger() {
    let stage = Stage::new().await;
    let (author, _) = stage.author(2).await;
    let member = stage.start();
    let (_, mut post) = stage.post(author).await;
    post.post_id = PostId(post.post_id.0 + 1);
    let id = EventId(4_000_000_000);
    let position = stage.produce(id, &Event::PostCreated(post.clone())).await;
    stage.committed(position).await;
    assert!(stage.rows(post.post_id).await.is_empty());

    // The same id in another database: another author.
    let (_, mut other) = stage.post(author).await;
    other.author_id = UserId(author.0 + 1_000_000);
    let position = stage.produce(id, &Event::PostCreated(other.clone())).await;
    stage.committed(position).await;
    assert!(stage.rows(other.post_id).await.is_empty());
    let client = stage.client().await;
    assert!(
        !database::delivery_ledger::contains(&client, events::Stage::Delivered, id)
            .await
            .expect("an answer")
    );
    assert_eq!(member.metric("tideline_fanout_ghosts_total").await, 2.0);
    member.stop().await;
}

/// A delivery is accounted for under the epoch that its record names: one that has ended is not in
/// the ledger, whatever the newest one is, and a batch may hold several.
#[tokio::test]
async fn deliveries_are_entered_under_the_epoch_of_their_record() {
    let stage = Stage::new().await;
    let (author, _) = stage.author(2).await;
    let sql = stage.deployment.sql().await;
    let begin = "insert into tideline.epoch (epoch, system_id, pg_timeline)
        select epoch + 1, system_id, pg_timeline from tideline.epoch";
    sql.batch_execute(begin).await.expect("epoch 2");
    let mut events = Vec::new();
    for source in [
        envelope::source("test", 1),
        envelope::source("test", 2),
        "/somebody/else".to_owned(),
        envelope::source("test", 2),
    ] {
        let (id, post) = stage.post(author).await;
        let mut record = stage.record(id, &Event::PostCreated(post.clone()));
        for header in &mut record.headers {
            if header.name == envelope::SOURCE {
                *header = Header::text(envelope::SOURCE, source.clone());
            }
        }
        events.push((id, post, stage.send(record).await));
    }
    let member = stage.start();
    stage.delivered(events[1].0).await;
    stage.delivered(events[3].0).await;
    for (_, post, position) in &events {
        stage.committed(*position).await;
        assert_eq!(stage.rows(post.post_id).await.len(), 2, "rows are written");
    }
    eventually("both others are counted", || async {
        let series = "tideline_fanout_progress_total{result=\"other_epoch\"}";
        (member.metric(series).await == 2.0).then_some(())
    })
    .await;
    let client = stage.client().await;
    for index in [0, 2] {
        let id = events[index].0;
        let there =
            database::delivery_ledger::contains(&client, events::Stage::Delivered, id).await;
        assert!(!there.expect("an answer"), "event {id}");
    }
    member.stop().await;
}
