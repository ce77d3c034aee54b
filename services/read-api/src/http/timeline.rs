//! `GET /v1/timelines/home`: the reader's own timeline.

use std::collections::HashMap;

use axum::{extract::State, response::Response};
use events::PostId;
use http_api::{Problem, Query, User};

use super::{
    App, error,
    page::{self, PageQuery},
    posts::{PostView, Posts},
};
use crate::{
    core::{cursor::List, fill::Fill, merge::merge, retention},
    source::{bodies, own, pushed},
};

pub(super) async fn home(
    State(app): State<App>,
    user: User,
    Query(query): Query<PageQuery>,
) -> Result<Response, Problem> {
    let (list, limit) = (List::Home(user.id), query.limit());
    let position = query.position(&app.cursors, list)?.map(PostId);
    let cut = {
        // Given back before the timeline store is asked: a slow one must not hold connections.
        let client = app.pool.get().await.map_err(error::failed)?;
        retention::cut(
            database::clock::now(&client).await.map_err(error::failed)?,
            app.retention,
        )
    };
    let floor = retention::floor(cut);

    let mut fill = Fill::new(position, usize::try_from(limit).unwrap_or(usize::MAX));
    let mut shown = HashMap::new();
    while let Some(load) = fill.next_load() {
        let (pushed, own) = tokio::try_join!(
            async {
                pushed::window(&app.timelines, user.id, load, floor)
                    .await
                    .map_err(error::failed)
            },
            async {
                own::window(&app.pool, user.id, load, cut)
                    .await
                    .map_err(error::failed)
            },
        )?;
        let merged = merge(&[pushed, own]);
        let mut visible = bodies::visible(&app.pool, user.id, &merged.entries, cut)
            .await
            .map_err(error::failed)?;
        let before = fill.shown().len();
        fill.consume(&merged, |entry| visible.contains_key(&entry.post));
        // Bodies beyond the page are dropped here, so a request holds one round of them at most.
        shown.extend(
            fill.shown()
                .iter()
                .skip(before)
                .filter_map(|id| visible.remove_entry(id)),
        );
    }
    let filled = fill.finish();
    let posts = filled
        .posts
        .iter()
        .filter_map(|id| shown.remove(id))
        .map(PostView::from)
        .collect();
    let next = filled
        .next
        .map(|position| app.cursors.seal(list, position.0));
    Ok(page::answer(
        "/v1/timelines/home",
        Posts { posts },
        next,
        limit,
    ))
}
