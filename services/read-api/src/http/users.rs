//! `GET /v1/users/{id}`, `/followers`, `/following`: for anyone with a token.
//!
//! Lists go by rising user id, which is stable while edges come and go.

use axum::{Json, extract::State, response::Response};
use database::{
    follows::{self, Direction},
    users,
};
use events::{Micros, UserId};
use http_api::{PathId, Problem, Query, User};
use serde::Serialize;

use super::{
    App, error,
    page::{self, PageQuery},
};
use crate::core::cursor::List;

/// An account.
#[derive(Debug, Serialize)]
pub(super) struct UserView {
    id: UserId,
    handle: String,
    created_us: Micros,
}

/// One line of a list.
#[derive(Debug, Serialize)]
struct NeighbourView {
    id: UserId,
    followed_us: Micros,
}

#[derive(Debug, Serialize)]
struct Neighbours {
    users: Vec<NeighbourView>,
}

pub(super) async fn one(
    State(app): State<App>,
    _: User,
    PathId(id): PathId<UserId>,
) -> Result<Json<UserView>, Problem> {
    let client = app.pool.get().await.map_err(error::failed)?;
    let found = users::get(&client, id).await.map_err(error::failed)?;
    let account = found.ok_or_else(no_user)?;
    Ok(Json(UserView {
        id: account.id,
        handle: account.handle,
        created_us: account.created_us,
    }))
}

pub(super) async fn followers(
    State(app): State<App>,
    _: User,
    PathId(id): PathId<UserId>,
    Query(query): Query<PageQuery>,
) -> Result<Response, Problem> {
    list(&app, id, &query, Direction::Followers).await
}

pub(super) async fn following(
    State(app): State<App>,
    _: User,
    PathId(id): PathId<UserId>,
    Query(query): Query<PageQuery>,
) -> Result<Response, Problem> {
    list(&app, id, &query, Direction::Following).await
}

async fn list(
    app: &App,
    id: UserId,
    query: &PageQuery,
    direction: Direction,
) -> Result<Response, Problem> {
    let (list, name) = match direction {
        Direction::Followers => (List::Followers(id), "followers"),
        Direction::Following => (List::Following(id), "following"),
    };
    let limit = query.limit();
    let after = query.position(&app.cursors, list)?.map(UserId);
    let client = app.pool.get().await.map_err(error::failed)?;
    let mut rows = follows::list(&client, id, direction, after, limit + 1)
        .await
        .map_err(error::failed)?;
    if rows.is_empty() && !users::exists(&client, id).await.map_err(error::failed)? {
        return Err(no_user());
    }
    let more = page::cut_extra(&mut rows, limit);
    let next = rows
        .last()
        .filter(|_| more)
        .map(|row| app.cursors.seal(list, row.user.0));
    let users = rows
        .into_iter()
        .map(|row| NeighbourView {
            id: row.user,
            followed_us: row.edge_us,
        })
        .collect();
    Ok(page::answer(
        &format!("/v1/users/{id}/{name}"),
        Neighbours { users },
        next,
        limit,
    ))
}

fn no_user() -> Problem {
    Problem::not_found("There is no such user.")
}
