//! People's own data: posts and follows from files.
//!
//! Promise: a file is read to its end before anything is started; every malformed line is told
//! with its number, the first [`TOLD`] of them.

mod instant;

use std::collections::BTreeSet;
use std::fmt;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::args::Args;

/// How many malformed lines are told.
const TOLD: usize = 20;

/// Accounts of the demo itself begin with this.
pub(crate) const OWN_PREFIX: &str = "demo_";

/// The longest text that write-api takes.
const MAX_TEXT_CHARS: usize = 5_000;

/// The longest handle, in bytes.
const MAX_HANDLE_BYTES: usize = 100;

/// One post of a file.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct OwnPost {
    pub(crate) author: String,
    pub(crate) text: String,
    /// Unix seconds.
    pub(crate) time: Option<f64>,
}

/// One edge of a file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct OwnFollow {
    pub(crate) followee: String,
    pub(crate) follower: String,
}

/// What the files hold. `None`: no such file was named.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Input {
    pub(crate) posts: Option<Vec<OwnPost>>,
    pub(crate) follows: Option<BTreeSet<OwnFollow>>,
}

/// All that is wrong with the files.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Malformed {
    faults: Vec<String>,
    more: usize,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "nothing was started, because of")?;
        for fault in &self.faults {
            write!(f, "\n  {fault}")?;
        }
        if self.more > 0 {
            write!(f, "\n  and {} more", self.more)?;
        }
        Ok(())
    }
}

impl std::error::Error for Malformed {}

/// Reads the files that were named.
pub(crate) fn read(args: &Args) -> Result<Input, Malformed> {
    let mut faults = Faults::default();
    let posts = args.posts.as_deref().map(|path| faults.read(path, post));
    let follows = args
        .follows
        .as_deref()
        .map(|path| faults.read(path, follow));
    let input = Input {
        posts,
        follows: follows.map(|edges| edges.into_iter().collect()),
    };
    faults.into_result().map(|()| input)
}

#[derive(Default)]
struct Faults {
    told: Vec<String>,
    more: usize,
}

impl Faults {
    /// Reads every line of a file that is not blank.
    fn read<T>(&mut self, path: &Path, parse: fn(&str) -> Result<T, String>) -> Vec<T> {
        match File::open(path) {
            Ok(file) => self.read_lines(path, BufReader::new(file), parse),
            Err(error) => {
                self.add(format!("{}: {error}", path.display()));
                Vec::new()
            }
        }
    }

    fn read_lines<T>(
        &mut self,
        path: &Path,
        lines: impl BufRead,
        parse: fn(&str) -> Result<T, String>,
    ) -> Vec<T> {
        let mut items = Vec::new();
        for (index, line) in lines.lines().enumerate() {
            let item = match line {
                Ok(line) if line.trim().is_empty() => continue,
                Ok(line) => parse(line.trim()),
                Err(error) => Err(error.to_string()),
            };
            match item {
                Ok(item) => items.push(item),
                Err(fault) => self.add(format!("{}, line {}: {fault}", path.display(), index + 1)),
            }
        }
        if items.is_empty() && self.told.is_empty() {
            self.add(format!("{}: there is nothing in it", path.display()));
        }
        items
    }

    fn add(&mut self, fault: String) {
        if self.told.len() < TOLD {
            self.told.push(fault);
        } else {
            self.more += 1;
        }
    }

    fn into_result(self) -> Result<(), Malformed> {
        if self.told.is_empty() {
            Ok(())
        } else {
            Err(Malformed {
                faults: self.told,
                more: self.more,
            })
        }
    }
}

#[derive(Deserialize)]
struct PostLine {
    author: String,
    text: String,
    time: Option<serde_json::Value>,
}

fn post(line: &str) -> Result<OwnPost, String> {
    let line: PostLine = serde_json::from_str(line).map_err(|error| error.to_string())?;
    check_handle(&line.author)?;
    if line.text.is_empty() {
        return Err("the text is empty".to_owned());
    }
    if line.text.contains('\0') {
        return Err("the text has the character U+0000".to_owned());
    }
    if line.text.chars().nth(MAX_TEXT_CHARS).is_some() {
        return Err(format!(
            "the text has more than {MAX_TEXT_CHARS} characters"
        ));
    }
    let time = match line.time {
        None | Some(serde_json::Value::Null) => None,
        Some(serde_json::Value::Number(number)) => number.as_f64(),
        Some(serde_json::Value::String(text)) => Some(instant::parse(&text)?),
        Some(other) => {
            return Err(format!(
                "the time {other} is neither RFC 3339 nor Unix seconds"
            ));
        }
    };
    Ok(OwnPost {
        author: line.author,
        text: line.text,
        time,
    })
}

fn follow(line: &str) -> Result<OwnFollow, String> {
    let mut words = line.split_whitespace();
    let (Some(follower), Some(followee), None) = (words.next(), words.next(), words.next()) else {
        return Err("is not \"follower followee\"".to_owned());
    };
    check_handle(follower)?;
    check_handle(followee)?;
    if follower == followee {
        return Err(format!("{follower} follows itself"));
    }
    Ok(OwnFollow {
        followee: followee.to_owned(),
        follower: follower.to_owned(),
    })
}

fn check_handle(handle: &str) -> Result<(), String> {
    if handle.is_empty() || handle.len() > MAX_HANDLE_BYTES {
        return Err(format!(
            "the handle {handle:?} is not 1 to {MAX_HANDLE_BYTES} bytes long"
        ));
    }
    if handle
        .chars()
        .any(|char| char.is_whitespace() || char.is_control())
    {
        return Err(format!(
            "the handle {handle:?} has blanks or control characters"
        ));
    }
    if handle.starts_with(OWN_PREFIX) {
        return Err(format!(
            "the handle {handle:?} begins with {OWN_PREFIX:?}, as the demo's own accounts do"
        ));
    }
    Ok(())
}

/// For messages.
pub(crate) fn named(path: Option<&PathBuf>) -> String {
    path.map(|path| path.display().to_string())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_text<T>(
        text: &str,
        parse: fn(&str) -> Result<T, String>,
    ) -> (Vec<T>, Result<(), Malformed>) {
        let mut faults = Faults::default();
        let items = faults.read_lines(Path::new("f"), text.as_bytes(), parse);
        (items, faults.into_result())
    }

    #[test]
    fn posts_are_json_lines_with_an_optional_time() {
        let text = "{\"author\":\"ann\",\"text\":\"hi\"}\n\n\
            {\"author\":\"Bob-1\",\"text\":\"ü\",\"time\":12.5,\"likes\":3}\n\
            {\"author\":\"c\",\"text\":\"x\",\"time\":\"1970-01-01T00:01:00Z\"}\n";
        let (posts, outcome) = read_text(text, post);
        assert_eq!(outcome, Ok(()));
        let seen: Vec<_> = posts
            .iter()
            .map(|post| (post.author.as_str(), post.time))
            .collect();
        assert_eq!(
            seen,
            [("ann", None), ("Bob-1", Some(12.5)), ("c", Some(60.0))]
        );
    }

    #[test]
    fn malformed_lines_are_told_with_their_number() {
        let text = "ann bob\nann\nann bob carl\n\nann ann\nann demo_x\n";
        let (follows, outcome) = read_text(text, follow);
        assert_eq!(follows.len(), 1);
        let text = outcome.unwrap_err().to_string();
        for line in [
            "f, line 2: is not",
            "f, line 3: is not",
            "f, line 5: ann follows",
            "f, line 6: the handle",
        ] {
            assert!(text.contains(line), "{text}");
        }
    }

    #[test]
    fn bad_posts_are_refused_each_with_the_reason() {
        let long = format!(
            "{{\"author\":\"a\",\"text\":\"{}\"}}",
            "x".repeat(MAX_TEXT_CHARS + 1)
        );
        let rows = [
            ("{", "EOF"),
            ("{\"author\":\"a\"}", "missing field `text`"),
            ("{\"author\":\"\",\"text\":\"x\"}", "handle"),
            ("{\"author\":\"a b\",\"text\":\"x\"}", "blanks"),
            ("{\"author\":\"a\",\"text\":\"\"}", "empty"),
            ("{\"author\":\"a\",\"text\":\"\\u0000\"}", "U+0000"),
            (
                "{\"author\":\"a\",\"text\":\"x\",\"time\":\"noon\"}",
                "RFC 3339",
            ),
            ("{\"author\":\"a\",\"text\":\"x\",\"time\":[]}", "RFC 3339"),
            (long.as_str(), "5000"),
        ];
        for (line, reason) in rows {
            let fault = post(line).unwrap_err();
            assert!(fault.contains(reason), "{fault}");
        }
    }

    #[test]
    fn the_first_faults_are_told_and_the_others_counted() {
        let (_, outcome) = read_text(&"x\n".repeat(TOLD + 5), follow);
        let malformed = outcome.unwrap_err();
        assert_eq!((malformed.faults.len(), malformed.more), (TOLD, 5));
    }

    #[test]
    fn an_empty_file_is_a_fault() {
        assert!(
            read_text("\n\n", follow)
                .1
                .unwrap_err()
                .to_string()
                .contains("nothing in it")
        );
    }
}
