//! A write-api that does nothing but answer: what `./x bench generator` sends to.
//!
//! A process of its own, so that its processor time is not the generator's. It keeps no post and
//! checks no token. It ends when its standard input does, so with whoever started it.

use std::{
    io::{Read, Write},
    sync::atomic::{AtomicI64, Ordering},
    time::{SystemTime, UNIX_EPOCH},
};

use anyhow::Context;
use axum::{Json, Router, http::StatusCode, routing::post};
use serde_json::{Value, json};
use tokio::net::TcpListener;

/// Serves on a free port, which is told on standard output.
pub(crate) async fn serve() -> anyhow::Result<()> {
    let routes = Router::new().route("/v1/posts", post(created));
    let listener = TcpListener::bind("127.0.0.1:0").await.context("a port")?;
    println!("{}", listener.local_addr()?);
    std::io::stdout().flush()?;
    let end = tokio::task::spawn_blocking(|| std::io::stdin().read(&mut [0]));
    tokio::select! {
        served = axum::serve(listener, routes) => served.context("serving"),
        _ended = end => Ok(()),
    }
}

async fn created() -> (StatusCode, Json<Value>) {
    static NEXT: AtomicI64 = AtomicI64::new(1);
    let id = NEXT.fetch_add(1, Ordering::Relaxed);
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let created_us = now.map_or(0, |since| since.as_micros() as i64);
    let answer = json!({"id": id.to_string(), "created_us": created_us});
    (StatusCode::CREATED, Json(answer))
}
