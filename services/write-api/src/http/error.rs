//! From failures and faults to problem documents.

use axum::http::StatusCode;
use events::Class;
use http_api::Problem;
use runtime::report::chain;
use tracing::{debug, error, warn};

use crate::core::{idempotency::KeyError, validate::Fault};

/// Logs a failure of Postgres, once, and answers it by its class.
pub(super) fn failed(error: database::Error) -> Problem {
    let class = error.class();
    match class {
        // Every request meets it; the readiness probe tells it once.
        Class::Outage => debug!(error = %chain(&error), "postgres is away"),
        Class::Unsure => warn!(error = %chain(&error), "the outcome of a request is unknown"),
        Class::Record | Class::Config | Class::Bug => {
            error!(error = %chain(&error), class = class.as_str(), "postgres refused a valid request");
        }
    }
    Problem::from_class(class)
}

/// One 422 with all faults, or nothing.
pub(super) fn check(faults: impl IntoIterator<Item = Option<Fault>>) -> Result<(), Problem> {
    let problem = Problem::invalid_body();
    let told = faults
        .into_iter()
        .flatten()
        .fold(None, |told: Option<Problem>, fault| {
            Some(
                told.unwrap_or_else(|| problem.clone())
                    .field(fault.pointer, fault.detail),
            )
        });
    told.map_or(Ok(()), Err)
}

/// 400: no single idempotency key.
pub(super) fn no_key(error: KeyError) -> Problem {
    let (code, title) = match error {
        KeyError::Missing => ("idempotency-key-missing", "An idempotency key is needed"),
        KeyError::Differ => (
            "idempotency-key-differs",
            "Header and body name different idempotency keys",
        ),
        KeyError::Header => (
            "idempotency-key-malformed",
            "The header Idempotency-Key is malformed",
        ),
    };
    let problem = Problem::new(StatusCode::BAD_REQUEST, code, title);
    match error {
        KeyError::Missing => {
            problem.detail("Send client_post_id in the body, or the header Idempotency-Key.")
        }
        KeyError::Differ => problem.detail("Send one of them, or the same value in both."),
        KeyError::Header => {
            problem.detail("It is one string, such as \"8e03978e-40d5-43dd-bc93-6894a57f9324\".")
        }
    }
}

/// 422: the key was used for another request (D-2).
pub(super) fn key_reused() -> Problem {
    Problem::new(
        StatusCode::UNPROCESSABLE_ENTITY,
        "idempotency-key-reused",
        "The idempotency key was used for another request",
    )
    .detail("Nothing was stored. Use a new key for a new post.")
}

/// 403: the token is valid, and its user is nobody.
pub(super) fn no_account() -> Problem {
    Problem::new(
        StatusCode::FORBIDDEN,
        "no-account",
        "The user of the token has no account",
    )
}
