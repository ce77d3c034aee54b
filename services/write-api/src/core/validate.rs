//! Which posts and handles are taken.
//!
//! Promise: what passes here is stored as it is, and Postgres has no reason to refuse it. All
//! faults of a request are found together.

/// The longest body in characters (Unicode scalar values).
pub const MAX_BODY_CHARS: usize = 5_000;
/// The longest `client_post_id`.
pub const MAX_KEY_CHARS: usize = 200;
/// The longest handle.
pub const MAX_HANDLE_CHARS: usize = 30;

/// One member of a request that is not as it should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// JSON pointer to the member.
    pub pointer: &'static str,
    /// A sentence for the client.
    pub detail: &'static str,
}

/// Checks the text of a post: 1 to 5 000 characters, none of them U+0000, which Postgres cannot
/// store in a text.
#[must_use]
pub fn body(text: &str) -> Option<Fault> {
    let detail = if text.is_empty() {
        "The body is empty."
    } else if text.contains('\0') {
        "The body has the character U+0000."
    } else if text.chars().nth(MAX_BODY_CHARS).is_some() {
        "The body has more than 5000 characters."
    } else {
        return None;
    };
    Some(Fault {
        pointer: "/body",
        detail,
    })
}

/// Checks an idempotency key: 1 to 200 printable ASCII characters, so that it means the same in
/// the field and in the header.
#[must_use]
pub fn client_post_id(text: &str) -> Option<Fault> {
    let printable = text.bytes().all(|byte| (b' '..=b'~').contains(&byte));
    let sane = printable && (1..=MAX_KEY_CHARS).contains(&text.len());
    (!sane).then_some(Fault {
        pointer: "/client_post_id",
        detail: "The client_post_id is not 1 to 200 printable ASCII characters.",
    })
}

/// Checks a handle: 1 to 30 of `a-z`, `0-9` and `_`.
#[must_use]
pub fn handle(text: &str) -> Option<Fault> {
    let plain = text
        .bytes()
        .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
    let sane = plain && (1..=MAX_HANDLE_CHARS).contains(&text.len());
    (!sane).then_some(Fault {
        pointer: "/handle",
        detail: "The handle is not 1 to 30 characters out of a-z, 0-9 and _.",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies() {
        let (longest, too_long) = ("ü".repeat(MAX_BODY_CHARS), "ü".repeat(MAX_BODY_CHARS + 1));
        let rows = [
            ("a", true),
            (" ", true),
            ("line\nline\t🙂\u{7f}", true),
            (longest.as_str(), true),
            ("", false),
            ("a\0b", false),
            (too_long.as_str(), false),
        ];
        for (text, taken) in rows {
            assert_eq!(
                body(text).is_none(),
                taken,
                "{:?}",
                text.chars().take(10).collect::<String>()
            );
        }
    }

    #[test]
    fn client_post_ids() {
        let (longest, too_long) = ("k".repeat(MAX_KEY_CHARS), "k".repeat(MAX_KEY_CHARS + 1));
        let rows = [
            ("0b9c8f1e-6a3c-4a53-9b38-0f6f6b2f6f00", true),
            ("a b~!", true),
            (longest.as_str(), true),
            ("", false),
            ("tab\t", false),
            ("nul\0", false),
            ("ü", false),
            (too_long.as_str(), false),
        ];
        for (text, taken) in rows {
            assert_eq!(client_post_id(text).is_none(), taken, "{text}");
        }
    }

    #[test]
    fn handles() {
        let too_long = "a".repeat(MAX_HANDLE_CHARS + 1);
        let rows = [
            ("alice_1", true),
            ("", false),
            ("Alice", false),
            ("a-b", false),
            ("é", false),
            (&too_long, false),
        ];
        for (text, taken) in rows {
            assert_eq!(handle(text).is_none(), taken, "{text}");
        }
    }
}
