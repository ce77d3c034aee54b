//! The routes of read-api. Handlers turn HTTP into calls of `core` and `source` and back.

mod delivery;
mod error;
mod page;
mod posts;
mod timeline;
mod users;

use std::time::Duration;

use axum::{Router, extract::FromRef, routing::get};
use database::Pool;
use http_api::{HttpMetrics, Limits, Verifier, framed};
use timeline_store::CqlTimelines;

use crate::core::cursor::Cursors;

/// No route takes a body.
pub(crate) const BODY_BYTES: usize = 1_024;

/// What every handler shares.
#[derive(Clone, Debug)]
pub(crate) struct App {
    pub(crate) pool: Pool,
    pub(crate) timelines: CqlTimelines,
    pub(crate) verifier: Verifier,
    pub(crate) cursors: Cursors,
    pub(crate) retention: Duration,
}

impl FromRef<App> for Verifier {
    fn from_ref(app: &App) -> Self {
        app.verifier.clone()
    }
}

pub(crate) fn router(app: App, limits: Limits, metrics: HttpMetrics) -> Router {
    let routes = Router::new()
        .route("/v1/timelines/home", get(timeline::home))
        .route("/v1/posts/{id}", get(posts::one))
        .route("/v1/posts/{id}/delivery", get(delivery::of_post))
        .route("/v1/users/{id}", get(users::one))
        .route("/v1/users/{id}/posts", get(posts::of_author))
        .route("/v1/users/{id}/followers", get(users::followers))
        .route("/v1/users/{id}/following", get(users::following))
        .with_state(app);
    framed(routes, limits, metrics)
}
