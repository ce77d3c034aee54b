//! The request id: the client's `X-Request-Id` when it is sane, else a new one.
//!
//! It is echoed in the response and in each problem document, and stands in each log line of the
//! request, so a client's report leads to the log.

use std::{fmt, sync::Arc};

use axum::http::{HeaderMap, HeaderName, HeaderValue};

/// `X-Request-Id`
pub const HEADER: HeaderName = HeaderName::from_static("x-request-id");

/// Longer ids are replaced: they would bloat every log line.
const MAX_LEN: usize = 128;

/// The id of one request. Also found in the request's extensions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestId(Arc<str>);

impl RequestId {
    /// The client's id, when it is 1 to 128 letters, digits or `-_.:`; else a new random one.
    #[must_use]
    pub fn from_headers(headers: &HeaderMap) -> Self {
        let sent = headers.get(HEADER).and_then(|value| value.to_str().ok());
        match sent {
            Some(text) if is_sane(text) => Self(text.into()),
            _ => Self(format!("{:032x}", fastrand::u128(..)).into()),
        }
    }

    /// The id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The id as a header value.
    #[must_use]
    pub fn to_header(&self) -> HeaderValue {
        HeaderValue::from_str(&self.0).expect("a request id has only letters, digits and -_.:")
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn is_sane(text: &str) -> bool {
    (1..=MAX_LEN).contains(&text.len())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_.:".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(value: &str) -> RequestId {
        let mut headers = HeaderMap::new();
        headers.insert(HEADER, HeaderValue::from_str(value).unwrap());
        RequestId::from_headers(&headers)
    }

    #[test]
    fn a_sane_id_is_kept_and_another_is_replaced() {
        assert_eq!(of("a-B_3.x:1").as_str(), "a-B_3.x:1");
        for bad in ["", "a b", "<script>", &"x".repeat(129)] {
            assert_eq!(of(bad).as_str().len(), 32, "{bad}");
        }
    }

    #[test]
    fn new_ids_differ() {
        let none = HeaderMap::new();
        assert_ne!(
            RequestId::from_headers(&none),
            RequestId::from_headers(&none)
        );
    }
}
