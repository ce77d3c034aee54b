//! D-12: while Postgres is away every request is answered, with 503 and `Retry-After`, and the
//! service goes on by itself when it is back.

use std::{sync::Arc, time::Duration};

use reqwest::Method;
use serde_json::json;
use testkit::{Deployment, eventually};
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    task::JoinSet,
};

use crate::app::{App, problem};

#[tokio::test]
async fn d_12_postgres_away_is_a_503_and_back_is_a_201() {
    let deployment = Deployment::without_timelines().await;
    let url = deployment.database_url();
    let server = url
        .split('@')
        .nth(1)
        .unwrap()
        .split('/')
        .next()
        .unwrap()
        .to_owned();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let door = listener.local_addr().unwrap().to_string();
    let through = url.replace(&server, &door);
    let (target, listener) = (Arc::new(server), Arc::new(listener));
    let open = tokio::spawn(forward(Arc::clone(&listener), Arc::clone(&target)));
    let app = App::start_with(deployment, &[("TIDELINE_POSTGRES__URL", through)]).await;
    let alice = app.user("alice").await;
    let send = |key: &'static str| {
        let body = json!({ "client_post_id": key, "body": "b" });
        app.of(&alice, Method::POST, "/v1/posts").json(&body).send()
    };
    assert_eq!(send("before").await.unwrap().status(), 201);

    // Aborting drops the connections; the listener is shared and closes with its last holder.
    open.abort();
    let _aborted = open.await;
    let closed = Arc::try_unwrap(listener).unwrap();
    drop(closed);
    let away = eventually("503 unavailable", || async {
        let response = send("during").await.unwrap();
        (response.status() == 503 && response.headers()["retry-after"] == "2").then_some(response)
    });
    let document = problem(away.await, 503, "unavailable").await;
    assert!(!document.to_string().contains("onnect"), "{document}");

    let listener = eventually("the same address", || async {
        TcpListener::bind(&door).await.ok()
    })
    .await;
    let _open = tokio::spawn(forward(Arc::new(listener), target));
    eventually("201 again", || async {
        (send("during").await.unwrap().status() == 201).then_some(())
    })
    .await;
    app.stop().await;
}

/// Carries connections to `target` until it is dropped, and all of them with it.
async fn forward(listener: Arc<TcpListener>, target: Arc<String>) {
    let mut connections = JoinSet::new();
    loop {
        let Ok((mut near, _)) = listener.accept().await else {
            tokio::time::sleep(Duration::from_millis(10)).await;
            continue;
        };
        let target = Arc::clone(&target);
        connections.spawn(async move {
            let mut far = TcpStream::connect(target.as_str()).await?;
            copy_bidirectional(&mut near, &mut far).await
        });
    }
}
