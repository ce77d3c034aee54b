//! Problem documents (RFC 9457): the one form of every refusal.
//!
//! Owns the members and the catalogue of problems that both APIs share; a service adds its own
//! with [`Problem::new`]. A [`Problem`] only says what is wrong; the frame renders it, since only
//! the frame knows the request id.
//!
//! Promise: `type` and `code` are stable; texts are written here or by the service and never come
//! from an error of a library or a server.

use axum::{
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use events::Class;
use serde::Serialize;

use crate::RequestId;

/// The media type of a problem document.
pub const CONTENT_TYPE: &str = "application/problem+json";

/// What precedes the code in `type`. A URN, since a type is a name and need not be fetched.
const TYPE_PREFIX: &str = "urn:tideline:problem:";

/// A refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    status: StatusCode,
    code: &'static str,
    title: &'static str,
    detail: Option<String>,
    errors: Vec<FieldError>,
    retry_after_seconds: Option<u32>,
}

/// What is wrong with one member of the request's body.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FieldError {
    /// JSON pointer (RFC 6901) to the member.
    pub pointer: String,
    /// A sentence for the client.
    pub detail: String,
}

impl Problem {
    /// A problem with its stable `code` (kebab case; the end of `type`) and title.
    #[must_use]
    pub const fn new(status: StatusCode, code: &'static str, title: &'static str) -> Self {
        Self {
            status,
            code,
            title,
            detail: None,
            errors: Vec::new(),
            retry_after_seconds: None,
        }
    }

    /// Adds what is particular to this occurrence.
    #[must_use]
    pub fn detail(mut self, text: impl Into<String>) -> Self {
        self.detail = Some(text.into());
        self
    }

    /// Adds a fault of one member of the body.
    #[must_use]
    pub fn field(mut self, pointer: impl Into<String>, detail: impl Into<String>) -> Self {
        self.errors.push(FieldError {
            pointer: pointer.into(),
            detail: detail.into(),
        });
        self
    }

    /// Adds `Retry-After`.
    #[must_use]
    pub const fn retry_after(mut self, seconds: u32) -> Self {
        self.retry_after_seconds = Some(seconds);
        self
    }

    /// 401: no token, or none that is valid.
    #[must_use]
    pub fn unauthenticated(detail: &'static str) -> Self {
        Self::new(
            StatusCode::UNAUTHORIZED,
            "unauthenticated",
            "Authentication is needed",
        )
        .detail(detail)
    }

    /// 403: the token is valid and not enough.
    #[must_use]
    pub fn forbidden(detail: &'static str) -> Self {
        Self::new(StatusCode::FORBIDDEN, "forbidden", "Not allowed").detail(detail)
    }

    /// 404: there is no such thing, or none that may be seen.
    #[must_use]
    pub fn not_found(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not-found", "Not found").detail(detail)
    }

    /// 422: the body is JSON, and one or more members are not as they should be.
    #[must_use]
    pub const fn invalid_body() -> Self {
        Self::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            "invalid-body",
            "The body is not as it should be",
        )
    }

    /// 503: this server has as many requests as it takes.
    #[must_use]
    pub const fn overloaded() -> Self {
        Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "overloaded",
            "Too many requests at once",
        )
        .retry_after(1)
    }

    /// 503: the request took longer than it may; its outcome is unknown.
    #[must_use]
    pub fn timed_out() -> Self {
        Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "timed-out",
            "The request took too long",
        )
        .detail("Its outcome is unknown. Repeating it is safe.")
        .retry_after(1)
    }

    /// The answer to a failure of a server behind this one. The reason goes to the log, not here.
    ///
    /// [`Class::Outage`] is 503 `unavailable`, [`Class::Unsure`] is 503 `outcome-unknown`, and
    /// everything else is 500 `internal`: a request that reached a store has been validated, so a
    /// refusal there is our fault.
    #[must_use]
    pub fn from_class(class: Class) -> Self {
        match class {
            Class::Outage => Self::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "unavailable",
                "A store is not reachable",
            )
            .retry_after(2),
            Class::Unsure => Self::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "outcome-unknown",
                "The outcome is unknown",
            )
            .detail("Repeating the request is safe.")
            .retry_after(1),
            Class::Record | Class::Config | Class::Bug => Self::internal(),
        }
    }

    /// 500: a fault of this server.
    #[must_use]
    pub const fn internal() -> Self {
        Self::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "internal",
            "Internal error",
        )
    }

    /// The problem for an answer that a library made by itself, by its status.
    #[must_use]
    pub fn from_status(status: StatusCode) -> Self {
        match status {
            StatusCode::NOT_FOUND => Self::not_found("There is nothing at this path."),
            StatusCode::METHOD_NOT_ALLOWED => Self::new(
                status,
                "method-not-allowed",
                "This path does not take this method",
            ),
            StatusCode::PAYLOAD_TOO_LARGE => {
                Self::new(status, "body-too-large", "The body is too large")
            }
            other if other.is_server_error() => Self {
                status: other,
                ..Self::internal()
            },
            other => Self::new(other, "bad-request", "The request cannot be understood"),
        }
    }

    /// The status it is answered with.
    #[must_use]
    pub const fn status(&self) -> StatusCode {
        self.status
    }

    /// Its stable code.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        self.code
    }

    /// The whole answer: document, `Content-Type`, `Retry-After`, `WWW-Authenticate`.
    pub(crate) fn render(&self, request_id: &RequestId) -> Response {
        let document = Document {
            kind: format!("{TYPE_PREFIX}{}", self.code),
            title: self.title,
            status: self.status.as_u16(),
            detail: self.detail.as_deref(),
            code: self.code,
            request_id: request_id.as_str(),
            errors: &self.errors,
        };
        let body =
            serde_json::to_vec(&document).expect("a problem document is strings and integers");
        let mut response = (self.status, body).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(CONTENT_TYPE));
        if let Some(seconds) = self.retry_after_seconds {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

/// Hands the problem to the frame in the response's extensions; the body stays empty until then.
impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = self.status.into_response();
        response.extensions_mut().insert(self);
        response
    }
}

#[derive(Serialize)]
struct Document<'a> {
    #[serde(rename = "type")]
    kind: String,
    title: &'a str,
    status: u16,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<&'a str>,
    code: &'a str,
    request_id: &'a str,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    errors: &'a [FieldError],
}
