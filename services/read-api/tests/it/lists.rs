//! Single posts and users, and the lists in Postgres.

use serde_json::json;

use crate::app::{App, ids};

#[tokio::test]
async fn posts_and_lists_are_paged() {
    let app = App::start().await;
    let ann = app.user("ann").await;
    let mut posts = Vec::new();
    let mut followers = Vec::new();
    for n in 0..5 {
        posts.push(app.post(ann, &format!("a{n}")).await);
        let follower = app.user(&format!("f{n}")).await;
        app.follow(follower, ann).await;
        followers.push(follower.0);
    }
    let gone = posts.remove(2);
    app.delete(&gone).await;
    let (seen, pages) = app
        .walk(ann, &format!("/v1/users/{ann}/posts"), "posts", 2)
        .await;
    assert_eq!((seen, pages), (ids(&posts), 2));
    let (seen, pages) = app
        .walk(ann, &format!("/v1/users/{ann}/followers"), "users", 2)
        .await;
    assert_eq!((seen, pages), (followers.clone(), 3));
    let first = followers[0];
    let (seen, _) = app
        .walk(ann, &format!("/v1/users/{first}/following"), "users", 2)
        .await;
    assert_eq!(seen, [ann.0]);

    let one = app.get(ann, &format!("/v1/posts/{}", posts[0].id)).await;
    assert_eq!(
        (one.status, &one.json["body"], &one.json["author_id"]),
        (200, &json!("a0"), &json!(ann.to_string()))
    );
    assert_eq!(
        app.get(ann, &format!("/v1/users/{ann}")).await.json["handle"],
        "ann"
    );
    let missing = [
        "/v1/users/999999",
        "/v1/users/999999/posts",
        "/v1/users/999999/followers",
        "/v1/posts/1",
        "/v1/posts/x",
    ];
    for path in missing
        .map(str::to_owned)
        .into_iter()
        .chain([format!("/v1/posts/{}", gone.id)])
    {
        let answer = app.get(ann, &path).await;
        assert_eq!(
            (answer.status, &answer.json["code"]),
            (404, &json!("not-found")),
            "{path}"
        );
    }
    app.stop().await;
}
