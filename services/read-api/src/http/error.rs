//! From failures to problem documents.

use axum::http::StatusCode;
use events::Class;
use http_api::Problem;
use runtime::report::chain;
use tracing::{debug, error, warn};

use crate::{core::cursor::CursorError, error::ReadError};

/// Logs a failure of a store, once, and answers it by its class.
pub(super) fn failed(error: impl Into<ReadError>) -> Problem {
    let error = error.into();
    let class = error.class();
    match class {
        // Every request meets it; the readiness probe tells it once.
        Class::Outage => debug!(error = %chain(&error), "a store is away"),
        Class::Unsure => warn!(error = %chain(&error), "a store did not answer in time"),
        Class::Record | Class::Config | Class::Bug => {
            error!(error = %chain(&error), class = class.as_str(), "a store refused a valid request");
        }
    }
    Problem::from_class(class)
}

/// 400: the cursor is none of this list.
pub(super) fn cursor(error: CursorError) -> Problem {
    debug!(%error, "refused a cursor");
    Problem::new(
        StatusCode::BAD_REQUEST,
        "invalid-cursor",
        "The cursor is not one of this list",
    )
    .detail("Begin again without a cursor.")
}
