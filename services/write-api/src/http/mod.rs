//! The routes of write-api. Handlers turn HTTP into calls of `core` and `database` and back.

mod error;
mod follows;
mod posts;
mod users;

use axum::{
    Router,
    extract::FromRef,
    routing::{delete, post, put},
};
use database::Pool;
use http_api::{HttpMetrics, Limits, Verifier, framed};

/// The largest body: 5 000 characters, each escaped as a surrogate pair (12 bytes), and the rest.
pub(crate) const BODY_BYTES: usize = 64 * 1024;

/// What every handler shares.
#[derive(Clone, Debug)]
pub(crate) struct App {
    pub(crate) pool: Pool,
    pub(crate) verifier: Verifier,
}

impl FromRef<App> for Verifier {
    fn from_ref(app: &App) -> Self {
        app.verifier.clone()
    }
}

pub(crate) fn router(app: App, limits: Limits, metrics: HttpMetrics) -> Router {
    let routes = Router::new()
        .route("/v1/posts", post(posts::create))
        .route("/v1/posts/{id}", delete(posts::remove))
        .route("/v1/users", post(users::create))
        .route(
            "/v1/users/{id}/follow",
            put(follows::follow).delete(follows::unfollow),
        )
        .with_state(app);
    framed(routes, limits, metrics)
}
