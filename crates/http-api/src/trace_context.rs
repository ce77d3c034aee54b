//! The W3C trace context of a request, as an extractor.
//!
//! Only the form is checked (Trace Context Level 1, section 3.2). A header of another form is
//! dropped and never an error: tracing must not refuse a post.

use std::convert::Infallible;

use axum::{extract::FromRequestParts, http::request::Parts};

/// The header's name.
pub const HEADER: &str = "traceparent";

/// A well-formed `traceparent`, or none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Traceparent(pub Option<String>);

impl<S: Send + Sync> FromRequestParts<S> for Traceparent {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let mut sent = parts.headers.get_all(HEADER).iter();
        // Two of them name two parents: neither can be trusted.
        let only = sent.next().filter(|_| sent.next().is_none());
        let text = only
            .and_then(|value| value.to_str().ok())
            .filter(|text| is_well_formed(text));
        Ok(Self(text.map(str::to_owned)))
    }
}

/// Whether `text` is a version-00 `traceparent`: lower-case hex fields of 2, 32, 16 and 2 digits,
/// where neither the trace id nor the parent id is zero.
#[must_use]
pub fn is_well_formed(text: &str) -> bool {
    let fields: Vec<&str> = text.split('-').collect();
    let [version, trace, parent, flags] = fields.as_slice() else {
        return false;
    };
    let hex = |field: &str, len: usize| {
        field.len() == len
            && field
                .bytes()
                .all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
    };
    let zero = |field: &str| field.bytes().all(|byte| byte == b'0');
    *version == "00"
        && hex(trace, 32)
        && hex(parent, 16)
        && hex(flags, 2)
        && !zero(trace)
        && !zero(parent)
}

#[cfg(test)]
mod tests {
    use super::is_well_formed;

    #[test]
    fn only_the_form_of_the_standard_passes() {
        let good = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        assert!(is_well_formed(good));
        let bad = [
            "",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-x",
            "00-4bf92f3577b34da6a3ce929d0e0e473-00f067aa0ba902b7-01",
        ];
        for text in bad {
            assert!(!is_well_formed(text), "{text}");
        }
    }
}
