//! What is refused, and how a refusal looks. Nothing of it is stored.

use reqwest::Method;
use serde_json::{Value, json};

use crate::app::{App, problem};

#[tokio::test]
async fn invalid_requests_are_problem_documents_and_store_nothing() {
    let app = App::start().await;
    let alice = app.user("alice").await;
    let post = |body: Value| app.of(&alice, Method::POST, "/v1/posts").json(&body).send();

    let rows = [
        (
            json!({ "client_post_id": "k", "body": "a\u{0}b" }),
            422,
            "invalid-body",
            Some("/body"),
        ),
        (
            json!({ "client_post_id": "k", "body": "" }),
            422,
            "invalid-body",
            Some("/body"),
        ),
        (
            json!({ "client_post_id": "k", "body": "x".repeat(5_001) }),
            422,
            "invalid-body",
            Some("/body"),
        ),
        (
            json!({ "client_post_id": "k", "body": 5 }),
            422,
            "invalid-body",
            Some("/body"),
        ),
        (
            json!({ "client_post_id": "k", "body": "b", "due_at": 1 }),
            422,
            "invalid-body",
            Some("/due_at"),
        ),
        (
            json!({ "client_post_id": "k\u{7}", "body": "b" }),
            422,
            "invalid-body",
            Some("/client_post_id"),
        ),
        (
            json!({ "client_post_id": "k" }),
            422,
            "invalid-body",
            Some(""),
        ),
        (json!({ "body": "b" }), 400, "idempotency-key-missing", None),
        (
            json!({ "client_post_id": "k", "body": "x".repeat(70_000) }),
            413,
            "body-too-large",
            None,
        ),
    ];
    for (body, status, code, pointer) in rows {
        let document = problem(post(body).await.unwrap(), status, code).await;
        assert_eq!(
            document["errors"][0]["pointer"].as_str(),
            pointer,
            "{document}"
        );
    }
    // Both faults are told together.
    let both = problem(
        post(json!({ "client_post_id": "", "body": "" }))
            .await
            .unwrap(),
        422,
        "invalid-body",
    )
    .await;
    assert_eq!(both["errors"].as_array().unwrap().len(), 2, "{both}");

    let with_header = |value: &'static str| {
        let request = app
            .of(&alice, Method::POST, "/v1/posts")
            .header("idempotency-key", value);
        request
            .json(&json!({ "client_post_id": "k", "body": "b" }))
            .send()
    };
    problem(
        with_header("\"other\"").await.unwrap(),
        400,
        "idempotency-key-differs",
    )
    .await;
    problem(
        with_header("\"open").await.unwrap(),
        400,
        "idempotency-key-malformed",
    )
    .await;
    let text = app
        .of(&alice, Method::POST, "/v1/posts")
        .header("content-type", "application/json")
        .body("{");
    problem(text.send().await.unwrap(), 400, "invalid-json").await;
    let untyped = app.of(&alice, Method::POST, "/v1/posts").body("{}");
    problem(untyped.send().await.unwrap(), 415, "unsupported-media-type").await;
    problem(
        app.of(&alice, Method::GET, "/v1/posts")
            .send()
            .await
            .unwrap(),
        405,
        "method-not-allowed",
    )
    .await;
    problem(
        app.of(&alice, Method::DELETE, "/v1/posts/x")
            .send()
            .await
            .unwrap(),
        404,
        "not-found",
    )
    .await;
    problem(
        app.bare(Method::GET, "/nothing").send().await.unwrap(),
        404,
        "not-found",
    )
    .await;

    assert_eq!(app.count("select count(*) from tideline.posts").await, 0);
    assert_eq!(app.count("select count(*) from tideline.outbox").await, 0);
    app.stop().await;
}

#[tokio::test]
async fn only_the_right_token_passes() {
    let app = App::start().await;
    let alice = app.user("alice").await;
    let body = json!({ "client_post_id": "k", "body": "b" });
    let without = app
        .bare(Method::POST, "/v1/posts")
        .json(&body)
        .send()
        .await
        .unwrap();
    assert_eq!(without.headers()["www-authenticate"], "Bearer");
    problem(without, 401, "unauthenticated").await;
    let mut changed = app.token(&alice, None);
    changed.replace_range(changed.len() - 4.., "AAAA");
    for token in [
        "nonsense",
        changed.as_str(),
        app.token("not-a-number", None).as_str(),
    ] {
        let request = app
            .bare(Method::POST, "/v1/posts")
            .bearer_auth(token)
            .json(&body);
        problem(request.send().await.unwrap(), 401, "unauthenticated").await;
    }
    let nobody = app.of("999999", Method::POST, "/v1/posts").json(&body);
    problem(nobody.send().await.unwrap(), 403, "no-account").await;
    let not_admin = app
        .of(&alice, Method::POST, "/v1/users")
        .json(&json!({ "handle": "eve" }));
    problem(not_admin.send().await.unwrap(), 403, "forbidden").await;
    app.stop().await;
}
