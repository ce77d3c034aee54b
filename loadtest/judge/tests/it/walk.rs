//! Walks against a small HTTP server with a good and with broken cursors.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::routing::get;
use axum::{Json, Router};
use events::{PostId, UserId};
use judge::{Fault, Journal, Verdict, Walker, compare_walk};
use serde::Deserialize;
use serde_json::{Value, json};

const READER: UserId = UserId(2);

/// What the server does wrong.
#[derive(Clone, Copy)]
enum Cursor {
    /// Nothing.
    Good,
    /// It goes on at the last post of the page instead of after it.
    Repeats,
    /// It stays where it is.
    Stuck,
}

#[derive(Deserialize)]
struct Asked {
    cursor: Option<i64>,
    limit: i64,
}

/// Posts 10 down to 1, all of author 1.
async fn page(State(cursor): State<Cursor>, Query(asked): Query<Asked>) -> Json<Value> {
    let from = asked.cursor.unwrap_or(10);
    let ids: Vec<i64> = (1..=from)
        .rev()
        .take(usize::try_from(asked.limit).unwrap())
        .collect();
    let next = from - asked.limit;
    let next = match cursor {
        Cursor::Good => next,
        Cursor::Repeats => next + 1,
        Cursor::Stuck => from,
    };
    let end = next < 1 || ids.len() < 2;
    let items: Vec<Value> = ids
        .iter()
        .map(|id| json!({"id": id.to_string(), "author_id": "1"}))
        .collect();
    Json(json!({"posts": items, "next_cursor": (!end).then(|| next.to_string())}))
}

async fn serve(cursor: Cursor) -> SocketAddr {
    let router = Router::new()
        .route("/v1/timelines/home", get(page))
        .with_state(cursor);
    bound(router).await
}

async fn bound(router: Router) -> SocketAddr {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await });
    address
}

/// Answers every other request with a 503.
async fn serve_half() -> SocketAddr {
    let refuses = Arc::new(AtomicBool::new(true));
    let half = async move |asked: Query<Asked>| {
        if refuses.fetch_not(Ordering::Relaxed) {
            return Err(StatusCode::SERVICE_UNAVAILABLE);
        }
        Ok(page(State(Cursor::Good), asked).await)
    };
    bound(Router::new().route("/v1/timelines/home", get(half))).await
}

async fn verdict_of(server: SocketAddr) -> Verdict {
    let mut journal = Journal::new();
    journal.know_users([UserId(1), READER]);
    journal.bulk_follows(UserId(1), [READER]);
    for id in 1..=10 {
        let post = journal.post_sent(UserId(1), format!("key {id}"));
        journal.post_acked(post, PostId(id));
    }
    let walker = Walker::new(format!("http://{server}"), 3).unwrap();
    let walk = walker.walk(READER, "token").await.unwrap();
    let mut verdict = Verdict::default();
    compare_walk(&journal, &walk, &mut verdict);
    verdict
}

#[tokio::test]
async fn a_good_cursor_shows_every_post_once() {
    let verdict = verdict_of(serve(Cursor::Good).await).await;
    assert!(verdict.holds(), "{verdict}");
    assert_eq!((verdict.walks, verdict.walked_posts), (1, 10));
}

#[tokio::test]
async fn a_page_that_is_late_is_asked_for_again() {
    let verdict = verdict_of(serve_half().await).await;
    assert!(verdict.holds(), "{verdict}");
    assert_eq!((verdict.walks, verdict.walked_posts), (1, 10));
}

#[tokio::test]
async fn a_post_repeated_by_a_broken_cursor_is_named() {
    let verdict = verdict_of(serve(Cursor::Repeats).await).await;
    assert!(verdict.duplicated.count > 0, "{verdict}");
    let example = &verdict.duplicated.examples[0];
    assert_eq!(
        (example.owner, example.post),
        (Some(READER), Some(PostId(8)))
    );
    assert_eq!(verdict.tally(Fault::Lost).count, 0, "{verdict}");
}

#[tokio::test]
async fn a_cursor_that_stays_ends_the_walk() {
    let verdict = verdict_of(serve(Cursor::Stuck).await).await;
    assert_eq!(verdict.duplicated.count, 3, "{verdict}");
    assert!(
        verdict
            .disorder
            .examples
            .iter()
            .any(|example| example.reason.contains("no end")),
        "{verdict}"
    );
}
