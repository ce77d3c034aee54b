//! `GET /v1/posts/{id}/delivery`: where a post is on its way, for anyone with a token.
//!
//! What support and load tests ask for. It answers for deleted posts too.

use axum::{Json, extract::State};
use database::{post_delivery, posts};
use events::{EventId, Micros, PostId};
use http_api::{PathId, Problem, User};
use serde::Serialize;

use super::{App, error};

/// How far the event of a post has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Progress {
    Committed,
    Published,
    Delivered,
    DeadLettered,
    /// The outbox day of the post is gone, and its account with it.
    Expired,
}

/// The delivery of a post. Members without a value are null.
#[derive(Debug, Serialize)]
pub(super) struct DeliveryView {
    post_id: PostId,
    state: Progress,
    event_id: Option<EventId>,
    published: Option<bool>,
    delivered: Option<bool>,
    dead_letter_reason: Option<String>,
    audience: Option<i64>,
    rows: Option<i64>,
    first_row_us: Option<Micros>,
    last_row_us: Option<Micros>,
}

pub(super) async fn of_post(
    State(app): State<App>,
    _: User,
    PathId(post): PathId<PostId>,
) -> Result<Json<DeliveryView>, Problem> {
    let client = app.pool.get().await.map_err(error::failed)?;
    let Some(status) = post_delivery::of_post(&client, post)
        .await
        .map_err(error::failed)?
    else {
        let known = posts::get(&client, post).await.map_err(error::failed)?;
        known.ok_or_else(|| Problem::not_found("There is no such post."))?;
        return Ok(Json(expired(post)));
    };
    let state = match (&status.dead_letter, status.delivered, status.published) {
        (_, true, _) => Progress::Delivered,
        (Some(_), false, _) => Progress::DeadLettered,
        (None, false, true) => Progress::Published,
        (None, false, false) => Progress::Committed,
    };
    Ok(Json(DeliveryView {
        post_id: post,
        state,
        event_id: Some(status.event),
        published: Some(status.published),
        delivered: Some(status.delivered),
        dead_letter_reason: status.dead_letter,
        audience: status.audience,
        rows: status.rows,
        first_row_us: status.first_row_us,
        last_row_us: status.last_row_us,
    }))
}

fn expired(post: PostId) -> DeliveryView {
    DeliveryView {
        post_id: post,
        state: Progress::Expired,
        event_id: None,
        published: None,
        delivered: None,
        dead_letter_reason: None,
        audience: None,
        rows: None,
        first_row_us: None,
        last_row_us: None,
    }
}
