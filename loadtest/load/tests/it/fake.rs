//! Both APIs on one address, with answers that wait when they are told to.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::{get, post, put};
use axum::{Json, Router};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::watch;

#[derive(Clone, Debug)]
pub(crate) struct Fake {
    pub(crate) address: String,
    state: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    /// Keys of posts, with their ids, in the moment they arrive.
    posts: Mutex<HashMap<String, i64>>,
    answered: Mutex<Vec<i64>>,
    users: Mutex<i64>,
    open: watch::Sender<bool>,
}

impl Fake {
    /// Starts, and answers posts at once when `open`.
    pub(crate) async fn start(open: bool) -> Self {
        let state = Arc::new(Inner {
            posts: Mutex::default(),
            answered: Mutex::default(),
            users: Mutex::default(),
            open: watch::Sender::new(open),
        });
        let routes = Router::new()
            .route("/v1/posts", post(create))
            .route("/v1/posts/{id}", axum::routing::delete(nothing))
            .route("/v1/posts/{id}/delivery", get(delivery))
            .route("/v1/users", post(user))
            .route("/v1/users/{id}/follow", put(nothing).delete(nothing))
            .route("/v1/timelines/home", get(page))
            .with_state(Arc::clone(&state));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        tokio::spawn(async move { axum::serve(listener, routes).await });
        Self { address, state }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Posts that have arrived, answered or not.
    pub(crate) fn arrived(&self) -> usize {
        self.state.posts.lock().unwrap().len()
    }

    pub(crate) fn keys(&self) -> Vec<String> {
        self.state.posts.lock().unwrap().keys().cloned().collect()
    }

    /// Ids that were told.
    pub(crate) fn answered(&self) -> Vec<i64> {
        self.state.answered.lock().unwrap().clone()
    }

    /// Answers posts from now on, those that wait included.
    pub(crate) fn open(&self) {
        self.state.open.send_replace(true);
    }
}

async fn create(
    State(state): State<Arc<Inner>>,
    Json(body): Json<Value>,
) -> (StatusCode, Json<Value>) {
    let key = body["client_post_id"].as_str().unwrap().to_owned();
    let id = {
        let mut posts = state.posts.lock().unwrap();
        let next = posts.len() as i64 + 1;
        *posts.entry(key).or_insert(next)
    };
    let mut open = state.open.subscribe();
    open.wait_for(|open| *open).await.unwrap();
    state.answered.lock().unwrap().push(id);
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let created_us = now.unwrap().as_micros() as i64;
    (
        StatusCode::CREATED,
        Json(json!({"id": id.to_string(), "created_us": created_us})),
    )
}

async fn user(State(state): State<Arc<Inner>>) -> (StatusCode, Json<Value>) {
    let mut users = state.users.lock().unwrap();
    *users += 1;
    (StatusCode::CREATED, Json(json!({"id": users.to_string()})))
}

async fn nothing() -> StatusCode {
    StatusCode::NO_CONTENT
}

async fn delivery(Path(_): Path<String>) -> Json<Value> {
    Json(json!({"delivered": false}))
}

async fn page() -> Json<Value> {
    Json(json!({"posts": []}))
}
