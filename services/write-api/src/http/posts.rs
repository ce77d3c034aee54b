//! `POST /v1/posts`, `DELETE /v1/posts/{id}`
//!
//! Creating: 201 the first time, 200 for a repeat, both with the same resource and `Location`. A
//! repeat after a delete is 200 with `deleted: true` and no body. The same key with another
//! request is 422 and stores nothing (D-2).

use axum::{
    extract::State,
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
};
use database::posts::{self, Create, Delete, NewPost, Post};
use events::{Micros, PostId, UserId};
use http_api::{Json, PathId, Problem, Traceparent, User};
use serde::{Deserialize, Serialize};

use super::{App, error};
use crate::core::{idempotency, validate};

const IDEMPOTENCY_KEY: &str = "idempotency-key";

/// The body of a request.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a JSON object")]
pub(super) struct NewPostBody {
    client_post_id: Option<String>,
    body: String,
}

/// A post as its author sees it.
#[derive(Debug, Serialize)]
struct PostView {
    id: PostId,
    author_id: UserId,
    client_post_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<String>,
    created_us: Micros,
    deleted: bool,
}

pub(super) async fn create(
    State(app): State<App>,
    user: User,
    Traceparent(traceparent): Traceparent,
    headers: HeaderMap,
    Json(request): Json<NewPostBody>,
) -> Result<Response, Problem> {
    let sent: Vec<&[u8]> = headers
        .get_all(IDEMPOTENCY_KEY)
        .iter()
        .map(|value| value.as_bytes())
        .collect();
    let key = idempotency::key(request.client_post_id, &sent).map_err(error::no_key)?;
    error::check([
        validate::client_post_id(&key),
        validate::body(&request.body),
    ])?;
    let new = NewPost {
        author: user.id,
        client_post_id: &key,
        fingerprint: &idempotency::fingerprint(&request.body),
        body: &request.body,
        traceparent: traceparent.as_deref(),
    };
    let mut client = app.pool.get().await.map_err(error::failed)?;
    let outcome = posts::create(&mut client, &new)
        .await
        .map_err(error::failed)?;
    // Here the post is committed and the client does not know it yet.
    fail::fail_point!("write-api::committed");
    match outcome {
        Create::Created(post) => Ok(answer(StatusCode::CREATED, post)),
        Create::Replayed(post) => Ok(answer(StatusCode::OK, post)),
        Create::KeyReused => Err(error::key_reused()),
        Create::NoAuthor => Err(error::no_account()),
    }
}

/// 204 also for a post that is deleted already; 404 for one of somebody else, as for none.
pub(super) async fn remove(
    State(app): State<App>,
    user: User,
    Traceparent(traceparent): Traceparent,
    PathId(id): PathId<PostId>,
) -> Result<StatusCode, Problem> {
    let mut client = app.pool.get().await.map_err(error::failed)?;
    let outcome = posts::delete(&mut client, user.id, id, traceparent.as_deref())
        .await
        .map_err(error::failed)?;
    match outcome {
        Delete::Deleted(_) | Delete::AlreadyDeleted => Ok(StatusCode::NO_CONTENT),
        Delete::NotFound => Err(Problem::not_found("You have no post with this id.")),
    }
}

fn answer(status: StatusCode, post: Post) -> Response {
    let location = format!("/v1/posts/{}", post.id);
    let deleted = post.deleted_us.is_some();
    let view = PostView {
        id: post.id,
        author_id: post.author,
        client_post_id: post.client_post_id,
        body: (!deleted).then_some(post.body),
        created_us: post.created_us,
        deleted,
    };
    (status, [(header::LOCATION, location)], axum::Json(view)).into_response()
}
