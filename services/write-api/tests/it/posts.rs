//! Creating, repeating and deleting posts.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use reqwest::Method;
use serde_json::json;
use testkit::eventually_within;

use crate::app::{App, answer, problem};

const EVENTS: &str = "select count(*) from tideline.outbox where type = 'tideline.post.created.v1'";

/// D-1, D-2: a post, its repeat, another request under its key, its delete, the repeat after it.
#[tokio::test]
async fn d_2_a_post_through_its_life() {
    let app = App::start().await;
    let alice = app.user("alice").await;
    let bob = app.user("bob").await;
    let request = json!({ "client_post_id": "k 1", "body": "hellö 🙂" });

    let traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let first = app
        .of(&alice, Method::POST, "/v1/posts")
        .header("traceparent", traceparent)
        .json(&request);
    let first = first.send().await.unwrap();
    let location = first.headers()["location"].to_str().unwrap().to_owned();
    let (status, post) = answer(first).await;
    assert_eq!(status, 201);
    assert_eq!(
        (&post["body"], &post["author_id"], &post["deleted"]),
        (&json!("hellö 🙂"), &json!(alice), &json!(false))
    );
    assert_eq!(
        location,
        format!("/v1/posts/{}", post["id"].as_str().unwrap())
    );
    assert_eq!(app.count(EVENTS).await, 1);
    let kept: String = app
        .deployment
        .sql()
        .await
        .query_one("select traceparent from tideline.outbox", &[])
        .await
        .unwrap()
        .get(0);
    assert_eq!(kept, traceparent);

    // The repeat is the same resource, by member as by header, quoted or not.
    assert_eq!(app.post(&alice, request.clone()).await, (200, post.clone()));
    for header in ["\"k 1\"", "k 1"] {
        let alias = app
            .of(&alice, Method::POST, "/v1/posts")
            .header("idempotency-key", header);
        let (status, again) = answer(
            alias
                .json(&json!({ "body": "hellö 🙂" }))
                .send()
                .await
                .unwrap(),
        )
        .await;
        assert_eq!((status, &again["id"]), (200, &post["id"]));
    }
    // Another request under the key is refused, and the key of somebody else is another key.
    let other = app
        .of(&alice, Method::POST, "/v1/posts")
        .json(&json!({ "client_post_id": "k 1", "body": "other" }));
    problem(other.send().await.unwrap(), 422, "idempotency-key-reused").await;
    assert_eq!(app.post(&bob, request.clone()).await.0, 201);
    assert_eq!(app.count(EVENTS).await, 2);

    // Deleting: not by others, and as often as one likes.
    problem(
        app.of(&bob, Method::DELETE, &location)
            .send()
            .await
            .unwrap(),
        404,
        "not-found",
    )
    .await;
    for _ in 0..2 {
        assert_eq!(
            app.of(&alice, Method::DELETE, &location)
                .send()
                .await
                .unwrap()
                .status(),
            204
        );
    }
    let deletes = "select count(*) from tideline.outbox where type = 'tideline.post.deleted.v1'";
    assert_eq!(app.count(deletes).await, 1);
    let (status, gone) = app.post(&alice, request).await;
    assert_eq!(
        (status, &gone["id"], &gone["deleted"]),
        (200, &post["id"], &json!(true))
    );
    assert!(gone.get("body").is_none(), "{gone}");
    app.stop().await;
}

/// D-2: however concurrently it is sent, one key makes one post.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn d_2_fifty_at_once_make_one_post() {
    let app = App::start().await;
    let alice = app.user("alice").await;
    let request = json!({ "client_post_id": "same", "body": "once" });
    // All share a few connections: when Postgres stalls, some wait too long for theirs and come
    // again, as the 503 asks them to.
    let (minute, refused) = (Duration::from_secs(60), AtomicUsize::new(0));
    let post = || {
        eventually_within(minute, "another answer than 503", async || {
            let answer = app.post(&alice, request.clone()).await;
            if answer.0 == 503 {
                refused.fetch_add(1, Ordering::Relaxed);
                return None;
            }
            Some(answer)
        })
    };
    let answers = futures::future::join_all((0..50).map(|_| post())).await;
    let created = answers.iter().filter(|(status, _)| *status == 201).count();
    let replayed = answers.iter().filter(|(status, _)| *status == 200).count();
    assert_eq!(created + replayed, 50, "{answers:?}");
    assert!(created <= 1, "{answers:?}");
    // A 503 may have been the answer to the one that made the post.
    if refused.into_inner() == 0 {
        assert_eq!(created, 1, "{answers:?}");
    }
    let first = &answers[0].1;
    assert!(answers.iter().all(|(_, post)| post == first));
    assert_eq!(app.count("select count(*) from tideline.posts").await, 1);
    assert_eq!(app.count(EVENTS).await, 1);
    app.stop().await;
}
