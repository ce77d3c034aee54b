//! Accounts and follows.

use reqwest::Method;

use crate::app::{App, problem};

#[tokio::test]
async fn follows_and_accounts_are_idempotent() {
    let app = App::start().await;
    let alice = app.user("alice").await;
    let bob = app.user("bob").await;
    let (status, again) = app.create_user("alice").await;
    assert_eq!((status, again["id"].as_str()), (200, Some(alice.as_str())));

    let path = format!("/v1/users/{bob}/follow");
    for method in [
        Method::PUT,
        Method::PUT,
        Method::DELETE,
        Method::DELETE,
        Method::PUT,
    ] {
        assert_eq!(
            app.of(&alice, method, &path).send().await.unwrap().status(),
            204
        );
    }
    assert_eq!(app.count("select count(*) from tideline.follows").await, 1);
    assert_eq!(
        app.count("select count(*) from tideline.outbox where aggregatetype = 'follow'")
            .await,
        3
    );

    problem(
        app.of(&bob, Method::PUT, &path).send().await.unwrap(),
        422,
        "self-follow",
    )
    .await;
    for method in [Method::PUT, Method::DELETE] {
        let nobody = app.of(&alice, method, "/v1/users/999999/follow");
        problem(nobody.send().await.unwrap(), 404, "not-found").await;
    }
    app.stop().await;
}
