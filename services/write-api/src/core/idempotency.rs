//! The idempotency key of a post and the fingerprint of the request behind it (D-2).
//!
//! The key is the member `client_post_id`; the header `Idempotency-Key` is an alias for clients
//! that set it on every request. It is a structured-field string (RFC 9651, section 3.3.3), and
//! since many clients send it bare, that is read too.

use sha2::{Digest, Sha256};

/// Names the canonical form. A new form needs a new name and the old one for rows that are there.
const FORM: &[u8] = b"tideline.post.v1";

/// Why a request has no usable key. Each is answered with 400.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// Neither member nor header.
    #[error("no idempotency key was sent")]
    Missing,
    /// Both, and they differ.
    #[error("the header and the member name different keys")]
    Differ,
    /// The header was sent twice or is not a string.
    #[error("the header Idempotency-Key is malformed")]
    Header,
}

/// The key of a request from its member and the values of its header.
///
/// # Errors
/// [`KeyError`] when there is none, or no single one.
pub fn key(member: Option<String>, headers: &[&[u8]]) -> Result<String, KeyError> {
    let header = match headers {
        [] => None,
        [value] => Some(string(value).ok_or(KeyError::Header)?),
        _ => return Err(KeyError::Header),
    };
    match (member, header) {
        (None, None) => Err(KeyError::Missing),
        (Some(member), Some(header)) if member != header => Err(KeyError::Differ),
        (Some(key), _) | (None, Some(key)) => Ok(key),
    }
}

/// SHA-256 over the canonical form of a post request.
///
/// Author and key are not part of it, since they are what the fingerprint is looked up by. Every
/// member is written as its name and its length before its value, so no two requests have one
/// form, and a member that comes later changes no fingerprint of requests without it.
#[must_use]
pub fn fingerprint(body: &str) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(FORM);
    for (name, value) in [("body", body)] {
        for part in [name, value] {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part.as_bytes());
        }
    }
    hash.finalize().into()
}

/// Reads a structured-field string, or bare text without quotes.
fn string(value: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(value).ok()?.trim_matches([' ', '\t']);
    let Some(rest) = text.strip_prefix('"') else {
        return (!text.contains('"')).then(|| text.to_owned());
    };
    let inner = rest.strip_suffix('"')?;
    let mut unescaped = String::with_capacity(inner.len());
    let mut chars = inner.chars();
    while let Some(char) = chars.next() {
        match char {
            '"' => return None,
            '\\' => unescaped.push(chars.next().filter(|next| matches!(next, '"' | '\\'))?),
            other => unescaped.push(other),
        }
    }
    Some(unescaped)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Member, headers, and the key or the refusal that they make.
    type Row<'a> = (Option<String>, &'a [&'a [u8]], Result<&'a str, KeyError>);

    #[test]
    fn d_2_the_header_is_an_alias_of_the_member() {
        let member = |text: &str| Some(text.to_owned());
        let rows: [Row<'_>; 14] = [
            (member("a"), &[], Ok("a")),
            (None, &[b"a"], Ok("a")),
            (None, &[b"\"a\""], Ok("a")),
            (None, &[b" \"a b\" "], Ok("a b")),
            (None, &[br#""a\"b\\c""#], Ok(r#"a"b\c"#)),
            (member("a"), &[b"\"a\""], Ok("a")),
            (member("a"), &[b"b"], Err(KeyError::Differ)),
            (None, &[], Err(KeyError::Missing)),
            (None, &[b"a", b"a"], Err(KeyError::Header)),
            (None, &[b"\"a"], Err(KeyError::Header)),
            (None, &[b"\""], Err(KeyError::Header)),
            (None, &[b"a\"b"], Err(KeyError::Header)),
            (None, &[b"\"a\";p=1"], Err(KeyError::Header)),
            (None, &[b"\"a\\x\""], Err(KeyError::Header)),
        ];
        for (member, headers, expected) in rows {
            assert_eq!(
                key(member, headers),
                expected.map(str::to_owned),
                "{headers:?}"
            );
        }
    }

    /// The form is stored, so a change of it would turn replays of old posts into refusals.
    #[test]
    fn d_2_the_fingerprint_does_not_change() {
        let hex: String = fingerprint("hello")
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        assert_eq!(
            hex,
            "581dd95654516dd1a450c5b4f155b835e18facc4cbd53a9afc41e33bee12da22"
        );
    }

    proptest! {
        #[test]
        fn d_2_equal_bodies_and_only_they_have_one_fingerprint(a in ".{0,40}", b in ".{0,40}") {
            prop_assert_eq!(fingerprint(&a) == fingerprint(&b), a == b);
        }

        #[test]
        fn a_quoted_key_comes_back(text in "[ -~]{1,50}") {
            let quoted = format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""));
            prop_assert_eq!(key(None, &[quoted.as_bytes()]), Ok(text));
        }
    }
}
