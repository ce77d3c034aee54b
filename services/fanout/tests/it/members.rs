//! Members that come and go, and servers that go away.

use events::Event;
use testkit::eventually;

use crate::stage::Stage;

/// D-6: two members share the work, one leaves in the middle, another one comes, and every post
/// has every row.
#[tokio::test]
async fn d_6_members_that_come_and_go_lose_nothing() {
    let stage = Stage::new().await;
    let mut authors = Vec::new();
    for _ in 0..6 {
        authors.push(stage.author(5).await);
    }
    let first = stage.start();
    let mut posts = Vec::new();
    let (mut second, mut third) = (None, None);
    for round in 0..60 {
        let (author, _) = &authors[round % authors.len()];
        let (id, post) = stage.post(*author).await;
        let position = stage.produce(id, &Event::PostCreated(post.clone())).await;
        posts.push((id, post, position));
        match round {
            10 => second = Some(stage.start()),
            30 => {
                // Both have partitions before one goes.
                eventually("the second member has partitions", || {
                    assigned(second.as_ref().map(|m| m.admin.clone()))
                })
                .await;
                third = Some(stage.start());
            }
            40 => {
                if let Some(second) = second.take() {
                    second.stop().await;
                }
            }
            _ => {}
        }
    }
    for (id, post, position) in &posts {
        stage.delivered(*id).await;
        stage.committed(*position).await;
        assert_eq!(
            stage.rows(post.post_id).await.len(),
            5,
            "post {}",
            post.post_id
        );
    }
    first.stop().await;
    if let Some(third) = third {
        third.stop().await;
    }
}

/// D-6, D-7: a member that ends in the middle of its work has committed nothing that is not
/// written; the next one does the rest.
#[tokio::test]
async fn d_6_crash_in_the_middle_is_made_good_by_the_next_member() {
    let stage = Stage::new().await;
    let (author, _) = stage.author(30).await;
    let mut posts = Vec::new();
    for _ in 0..20 {
        let (id, post) = stage.post(author).await;
        let position = stage.produce(id, &Event::PostCreated(post.clone())).await;
        posts.push((post, position));
    }
    let member = stage.start();
    eventually("some rows are written", || async {
        (!stage.rows(posts[0].0.post_id).await.is_empty()).then_some(())
    })
    .await;
    member.crash().await;
    let member = stage.start();
    for (post, position) in &posts {
        stage.committed(*position).await;
        assert_eq!(
            stage.rows(post.post_id).await.len(),
            30,
            "post {}",
            post.post_id
        );
    }
    member.stop().await;
}

/// Whether a member holds partitions, as its metrics say.
async fn assigned(admin: Option<String>) -> Option<()> {
    let text = reqwest::get(format!("http://{}/metrics", admin?))
        .await
        .ok()?
        .text()
        .await
        .ok()?;
    let line = text
        .lines()
        .find(|line| line.starts_with("tideline_fanout_assigned_partitions "))?;
    line.rsplit(' ')
        .next()?
        .parse::<i64>()
        .ok()
        .filter(|held| *held > 0)
        .map(drop)
}

/// D-12: while the follow graph cannot be read, nothing is skipped or dead-lettered; when it can,
/// the post arrives.
#[tokio::test]
async fn d_12_outage_blocks_and_ends() {
    let stage = Stage::new().await;
    let (author, _) = stage.author(4).await;
    let member = stage.start();
    let (id, post) = stage.post(author).await;
    let sql = stage.deployment.sql().await;
    // What a reader sees of a server that does not answer: a lock that is not let go.
    sql.batch_execute("begin; lock table tideline.follows in access exclusive mode")
        .await
        .expect("a lock");
    let position = stage.produce(id, &Event::PostCreated(post.clone())).await;
    eventually("the step is tried again", || async {
        let text = reqwest::get(format!("http://{}/metrics", member.admin))
            .await
            .ok()?
            .text()
            .await
            .ok()?;
        let retried = text.lines().any(|line| {
            line.starts_with("tideline_fanout_retries_total{class=\"unsure\"}")
                && !line.ends_with(" 0")
        });
        retried.then_some(())
    })
    .await;
    let group = stage.deployment.namespace().fanout_posts_group();
    let committed = stage
        .admin
        .committed(&group, &stage.topic())
        .await
        .expect("offsets");
    assert_eq!(committed[&position.partition], None, "nothing is committed");
    sql.batch_execute("commit")
        .await
        .expect("the lock is let go");
    stage.delivered(id).await;
    stage.committed(position).await;
    assert_eq!(stage.rows(post.post_id).await.len(), 4);
    let open = database::dead_letters::count_open(&stage.client().await)
        .await
        .expect("a count");
    assert_eq!(open, 0);
    member.stop().await;
}
