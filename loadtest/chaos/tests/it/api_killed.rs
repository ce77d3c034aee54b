//! write-api is killed between commit and answer.

use chaos::{Client, Flow};
use events::UserId;
use testkit::{Service, Signal, eventually};

const AUTHOR: UserId = UserId(1);

/// D-1, D-2: the post exists once, and the retry gets the original.
#[tokio::test(flavor = "multi_thread")]
async fn a_retry_after_the_kill_gets_the_original_post() {
    let _turn = crate::ONE_AT_A_TIME.lock().await;
    let flow = Flow::new(1, 5).await.unwrap();
    let mut api = flow
        .start(
            Service::WriteApi,
            &[("FAILPOINTS", "write-api::committed=pause")],
        )
        .await;

    let client: Client = flow.client().clone();
    let request = tokio::spawn(async move { client.attempt(AUTHOR, "key").await });
    let committed = eventually("the post is committed", async || {
        flow.posts_of(AUTHOR)
            .await
            .ok()
            .filter(|posts| posts.len() == 1)
    })
    .await;
    api.signal(Signal::Kill).unwrap();
    assert!(request.await.unwrap().is_err(), "the client got an answer");

    drop(api);
    let _api = flow.start(Service::WriteApi, &[]).await;
    let _relay = flow.start(Service::Relay, &[]).await;
    let _fanout = flow.start(Service::Fanout, &[]).await;
    let posted = flow.client().post(AUTHOR, "key").await.unwrap();
    assert!(posted.replayed);
    assert_eq!(vec![posted.id], committed);
    assert_eq!(flow.posts_of(AUTHOR).await.unwrap(), committed);
    let verdict = flow.verdict().await.unwrap();
    assert!(verdict.is_clean(), "{verdict}");
}
