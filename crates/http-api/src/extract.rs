//! Extractors whose refusals are problem documents: JSON body, path id, query.
//!
//! Promise: a body is read up to the frame's limit and no further; a body that is not JSON is 400,
//! one whose members are wrong is 422 with a JSON pointer to the first of them.

use std::{fmt::Write as _, str::FromStr};

use axum::{
    body::Bytes,
    extract::{FromRequest, FromRequestParts, Path, Request},
    http::{HeaderMap, StatusCode, header, request::Parts},
};
use serde::de::DeserializeOwned;

use crate::Problem;

/// A JSON object as the body. Give `T` the attributes `deny_unknown_fields` and `expecting`, since
/// its texts are shown to clients.
#[derive(Clone, Copy, Debug)]
pub struct Json<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Json<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Self::Rejection> {
        if !is_json(request.headers()) {
            return Err(Problem::new(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "unsupported-media-type",
                "The body has to be application/json",
            ));
        }
        let bytes = Bytes::from_request(request, state)
            .await
            .map_err(|rejection| {
                // Either over the limit, or the client stopped in the middle of the body.
                Problem::from_status(rejection.status())
            })?;
        read(&bytes).map(Self)
    }
}

/// The one id of the path. Text that is not the canonical form of an id names nothing: 404.
#[derive(Clone, Copy, Debug)]
pub struct PathId<T>(pub T);

impl<S: Send + Sync, T: FromStr + ToString> FromRequestParts<S> for PathId<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Self::Rejection> {
        let Path(text) = Path::<String>::from_request_parts(parts, state)
            .await
            .map_err(|rejection| Problem::from_status(rejection.status()))?;
        match text.parse::<T>() {
            // "+7" and "007" parse, and would give one thing several addresses.
            Ok(id) if id.to_string() == text => Ok(Self(id)),
            _ => Err(Problem::not_found("The path has no valid id.")),
        }
    }
}

/// The query string. Unknown parameters are ignored.
#[derive(Clone, Copy, Debug)]
pub struct Query<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Query<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Self::Rejection> {
        match axum::extract::Query::<T>::from_request_parts(parts, state).await {
            Ok(axum::extract::Query(query)) => Ok(Self(query)),
            Err(_) => Err(Problem::new(
                StatusCode::BAD_REQUEST,
                "invalid-query",
                "A query parameter is not of the form it should have",
            )),
        }
    }
}

fn is_json(headers: &HeaderMap) -> bool {
    let value = headers
        .get(header::CONTENT_TYPE)
        .and_then(|value| value.to_str().ok());
    let essence = value
        .and_then(|value| value.split(';').next())
        .map(str::trim);
    essence.is_some_and(|essence| essence.eq_ignore_ascii_case("application/json"))
}

fn read<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let value = serde_path_to_error::deserialize::<_, T>(&mut deserializer)
        .map_err(|error| refusal(&pointer(error.path()), error.inner()))?;
    deserializer.end().map_err(|error| refusal("", &error))?;
    // A struct would also be read from an array of its members' values.
    if !bytes.trim_ascii_start().starts_with(b"{") {
        return Err(Problem::invalid_body().field("", "Expected a JSON object."));
    }
    Ok(value)
}

fn refusal(pointer: &str, error: &serde_json::Error) -> Problem {
    if error.is_data() {
        let text = error.to_string();
        let sentence = text
            .rsplit_once(" at line ")
            .map_or(text.as_str(), |(before, _)| before);
        return Problem::invalid_body().field(pointer, format!("Not accepted: {sentence}."));
    }
    Problem::new(
        StatusCode::BAD_REQUEST,
        "invalid-json",
        "The body is not JSON",
    )
    .detail(format!(
        "The text is wrong or ends at line {}, column {}.",
        error.line(),
        error.column()
    ))
}

/// The JSON pointer (RFC 6901) of a serde path.
fn pointer(path: &serde_path_to_error::Path) -> String {
    use serde_path_to_error::Segment;
    let mut text = String::new();
    for segment in path.iter() {
        match segment {
            Segment::Seq { index } => {
                let _ = write!(text, "/{index}");
            }
            Segment::Map { key } | Segment::Enum { variant: key } => {
                text.push('/');
                text.push_str(&key.replace('~', "~0").replace('/', "~1"));
            }
            // The path of a member that is missing or unknown ends at its parent.
            Segment::Unknown => {}
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields, expecting = "a JSON object")]
    struct Body {
        name: String,
        tags: Option<Vec<String>>,
    }

    fn pointer_of(text: &str) -> String {
        let problem = read::<Body>(text.as_bytes()).unwrap_err();
        assert_eq!(problem.status(), StatusCode::UNPROCESSABLE_ENTITY, "{text}");
        let shown = format!("{problem:?}");
        shown
            .split("pointer: \"")
            .nth(1)
            .and_then(|rest| rest.split('"').next())
            .unwrap()
            .to_owned()
    }

    #[test]
    fn an_object_is_read() {
        let body: Body = read(br#" {"name": "a", "tags": ["b"]}"#).unwrap();
        assert_eq!((body.name.as_str(), body.tags.unwrap().len()), ("a", 1));
    }

    #[test]
    fn faults_of_members_are_422_with_a_pointer() {
        assert_eq!(pointer_of(r#"{"name": 5}"#), "/name");
        assert_eq!(pointer_of(r#"{"name": "a", "tags": ["b", 1]}"#), "/tags/1");
        assert_eq!(pointer_of(r#"{"name": "a", "due_at": 1}"#), "/due_at");
        assert_eq!(pointer_of("{}"), "");
        assert_eq!(pointer_of(r#"["a", null]"#), "");
        assert_eq!(pointer_of(r#"{"name": "a", "name": "b"}"#), "");
    }

    #[test]
    fn text_that_is_not_json_is_400() {
        for text in [
            "",
            "{",
            "nope",
            r#"{"name": "a"} x"#,
            "{\"name\": \"\u{1}\"}",
        ] {
            assert_eq!(
                read::<Body>(text.as_bytes()).unwrap_err().status(),
                StatusCode::BAD_REQUEST,
                "{text}"
            );
        }
        assert_eq!(
            read::<Body>(b"{\"name\": \"\xff\"}").unwrap_err().status(),
            StatusCode::BAD_REQUEST
        );
    }
}
