//! `PUT` and `DELETE /v1/users/{id}/follow`: both idempotent, both 204.

use axum::{extract::State, http::StatusCode};
use database::follows::{self, Follow, Unfollow};
use events::UserId;
use http_api::{PathId, Problem, Traceparent, User};

use super::{App, error};

pub(super) async fn follow(
    State(app): State<App>,
    user: User,
    Traceparent(traceparent): Traceparent,
    PathId(followee): PathId<UserId>,
) -> Result<StatusCode, Problem> {
    let mut client = app.pool.get().await.map_err(error::failed)?;
    let outcome = follows::follow(&mut client, user.id, followee, traceparent.as_deref())
        .await
        .map_err(error::failed)?;
    match outcome {
        Follow::Created { .. } | Follow::Already => Ok(StatusCode::NO_CONTENT),
        Follow::NoUser => Err(no_user()),
        Follow::SelfFollow => Err(Problem::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            "self-follow",
            "Nobody follows themselves",
        )
        .detail("Your own posts are in your timeline anyway.")),
    }
}

pub(super) async fn unfollow(
    State(app): State<App>,
    user: User,
    Traceparent(traceparent): Traceparent,
    PathId(followee): PathId<UserId>,
) -> Result<StatusCode, Problem> {
    let mut client = app.pool.get().await.map_err(error::failed)?;
    let outcome = follows::unfollow(&mut client, user.id, followee, traceparent.as_deref())
        .await
        .map_err(error::failed)?;
    match outcome {
        Unfollow::Ended { .. } | Unfollow::NotFollowing => Ok(StatusCode::NO_CONTENT),
        Unfollow::NoUser => Err(no_user()),
    }
}

fn no_user() -> Problem {
    Problem::not_found("One of the two users does not exist.")
}
