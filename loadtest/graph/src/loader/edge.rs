//! One line of an edge list: two fields, and what may be written in them.

use super::Accounts;

/// The longest handle, and its characters, as the API takes them.
const LONGEST_HANDLE: usize = 30;

/// A line as it is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Content<'a> {
    /// Empty, or a comment as SNAP (`#`) and KONECT (`%`) write them.
    Nothing,
    /// The names of the columns.
    Header {
        /// They stand in the order `followee follower`.
        followee_first: bool,
    },
    /// Two fields in the order of the line.
    Pair(&'a str, &'a str),
}

/// Takes a line apart. Only the first line that says anything can be a header.
///
/// # Errors
/// What is wrong with it.
pub(super) fn content(line: &[u8], may_be_header: bool) -> Result<Content<'_>, String> {
    let line = line.trim_ascii();
    if line.is_empty() || line.starts_with(b"#") || line.starts_with(b"%") {
        return Ok(Content::Nothing);
    }
    let line = std::str::from_utf8(line).map_err(|_| "is not UTF-8".to_owned())?;
    let (first, second) = if line.contains(',') {
        pair(line.split(',').map(str::trim_ascii))?
    } else {
        pair(line.split_ascii_whitespace())?
    };
    if may_be_header {
        let named = |one: &str, other: &str| {
            first.eq_ignore_ascii_case(one) && second.eq_ignore_ascii_case(other)
        };
        if named("follower", "followee") || named("followee", "follower") {
            return Ok(Content::Header {
                followee_first: named("followee", "follower"),
            });
        }
    }
    Ok(Content::Pair(first, second))
}

/// Exactly two fields.
fn pair<'a>(mut fields: impl Iterator<Item = &'a str>) -> Result<(&'a str, &'a str), String> {
    let found = (fields.next(), fields.next());
    let more = fields.count();
    match found {
        (Some(first), Some(second)) if more == 0 && !first.is_empty() && !second.is_empty() => {
            Ok((first, second))
        }
        (Some(_), Some(_)) if more == 0 => {
            Err("expected `follower followee`, found an empty field".to_owned())
        }
        (Some(_), Some(_)) => Err(format!(
            "expected `follower followee`, found {} fields",
            more + 2
        )),
        _ => Err("expected `follower followee`, found 1 field".to_owned()),
    }
}

/// A field as the database gets it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Account<'a> {
    Handle(&'a str),
    Id(u64),
}

/// Reads one field.
///
/// # Errors
/// What is wrong with it.
pub(super) fn account<'a>(field: &'a str, accounts: &Accounts) -> Result<Account<'a>, String> {
    match accounts {
        Accounts::Handles => handle(field).map(Account::Handle),
        Accounts::Ids { add, .. } => id(field, *add).map(Account::Id),
    }
}

fn handle(field: &str) -> Result<&str, String> {
    if field.len() > LONGEST_HANDLE {
        let start: String = field.chars().take(LONGEST_HANDLE).collect();
        return Err(format!(
            "the handle {start:?}… has more than {LONGEST_HANDLE} characters"
        ));
    }
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    if field.bytes().all(plain) {
        Ok(field)
    } else {
        Err(format!(
            "the handle {field:?} has others than a-z, 0-9 and _"
        ))
    }
}

fn id(field: &str, add: u64) -> Result<u64, String> {
    let number: u64 = field.parse().map_err(|_| {
        format!(
            "{:?} is no account id",
            field.chars().take(40).collect::<String>()
        )
    })?;
    match number.checked_add(add) {
        Some(0) => Err("account ids start at 1; --add 1 moves a list that starts at 0".to_owned()),
        Some(id) if i64::try_from(id).is_ok() => Ok(id),
        _ => Err(format!("{number} is above the largest account id")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn separators_comments_and_blanks() {
        let pair = Ok(Content::Pair("12", "7"));
        for line in ["12 7", "12\t7", "12,7", " 12 , 7 ", "12    7\t"] {
            assert_eq!(content(line.as_bytes(), false), pair, "{line:?}");
        }
        for line in [
            "",
            "   ",
            "# FromNodeId\tToNodeId",
            "% asym unweighted",
            "  # x",
        ] {
            assert_eq!(
                content(line.as_bytes(), true),
                Ok(Content::Nothing),
                "{line:?}"
            );
        }
    }

    #[test]
    fn a_header_is_known_by_its_names_and_only_at_the_top() {
        let header = |followee_first| Ok(Content::Header { followee_first });
        assert_eq!(content(b"follower,followee", true), header(false));
        assert_eq!(content(b"Followee Follower", true), header(true));
        let later = content(b"follower followee", false);
        assert_eq!(later, Ok(Content::Pair("follower", "followee")));
    }

    #[test]
    fn what_is_no_edge_is_said() {
        let rows: [(&[u8], &str); 5] = [
            (b"12", "expected `follower followee`, found 1 field"),
            (b"1 2 3", "expected `follower followee`, found 3 fields"),
            (b"1,2,3,4", "expected `follower followee`, found 4 fields"),
            (b"1,", "expected `follower followee`, found an empty field"),
            (b"\xff 1", "is not UTF-8"),
        ];
        for (line, fault) in rows {
            assert_eq!(content(line, true), Err(fault.to_owned()));
        }
    }

    #[test]
    fn fields_are_ids_or_handles() {
        let ids = |add| Accounts::Ids {
            add,
            prefix: "user".into(),
        };
        assert_eq!(account("17", &ids(3)), Ok(Account::Id(20)));
        assert_eq!(account("0", &ids(1)), Ok(Account::Id(1)));
        assert_eq!(account("17", &Accounts::Handles), Ok(Account::Handle("17")));
        let bad = [
            ("0", ids(0), "start at 1"),
            ("ann", ids(0), "\"ann\" is no account id"),
            ("9223372036854775808", ids(0), "above the largest"),
            ("18446744073709551615", ids(1), "above the largest"),
            ("Ann", Accounts::Handles, "others than a-z"),
            (
                "abcdefghijklmnopqrstuvwxyz_0123",
                Accounts::Handles,
                "more than 30",
            ),
        ];
        for (field, accounts, words) in bad {
            let fault = account(field, &accounts).unwrap_err();
            assert!(fault.contains(words), "{fault}");
        }
    }
}
