//! `GET /v1/posts/{id}` and `GET /v1/users/{id}/posts`: for anyone with a token.

use axum::{Json, extract::State, response::Response};
use database::{
    posts::{self, Post},
    users,
};
use events::{Micros, PostId, UserId};
use http_api::{PathId, Problem, Query, User};
use serde::Serialize;

use super::{
    App, error,
    page::{self, PageQuery},
};
use crate::core::cursor::List;

/// A post as readers see it.
#[derive(Debug, Serialize)]
pub(super) struct PostView {
    id: PostId,
    author_id: UserId,
    body: String,
    created_us: Micros,
}

impl From<Post> for PostView {
    fn from(post: Post) -> Self {
        Self {
            id: post.id,
            author_id: post.author,
            body: post.body,
            created_us: post.created_us,
        }
    }
}

/// The items of a page of posts.
#[derive(Debug, Serialize)]
pub(super) struct Posts {
    pub(super) posts: Vec<PostView>,
}

/// A deleted post is not found.
pub(super) async fn one(
    State(app): State<App>,
    _: User,
    PathId(id): PathId<PostId>,
) -> Result<Json<PostView>, Problem> {
    let client = app.pool.get().await.map_err(error::failed)?;
    let post = posts::get(&client, id).await.map_err(error::failed)?;
    let post = post.filter(|post| post.deleted_us.is_none());
    post.map(|post| Json(PostView::from(post)))
        .ok_or_else(|| Problem::not_found("There is no such post."))
}

/// All undeleted posts of an author, whatever their age.
pub(super) async fn of_author(
    State(app): State<App>,
    _: User,
    PathId(author): PathId<UserId>,
    Query(query): Query<PageQuery>,
) -> Result<Response, Problem> {
    let (list, limit) = (List::Posts(author), query.limit());
    let before = query.position(&app.cursors, list)?.map(PostId);
    let client = app.pool.get().await.map_err(error::failed)?;
    let mut posts = posts::by_author(&client, author, before, Micros(0), limit + 1)
        .await
        .map_err(error::failed)?;
    if posts.is_empty()
        && !users::exists(&client, author)
            .await
            .map_err(error::failed)?
    {
        return Err(Problem::not_found("There is no such user."));
    }
    let more = page::cut_extra(&mut posts, limit);
    let next = posts
        .last()
        .filter(|_| more)
        .map(|post| app.cursors.seal(list, post.id.0));
    let posts = posts.into_iter().map(PostView::from).collect();
    Ok(page::answer(
        &format!("/v1/users/{author}/posts"),
        Posts { posts },
        next,
        limit,
    ))
}
