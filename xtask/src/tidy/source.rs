//! The files that are checked, and simple views of them.

use std::fs;
use std::io;
use std::path::Path;

/// One text file of the repository.
#[derive(Debug, Clone)]
pub(crate) struct Source {
    /// Path below the root, with `/`.
    pub(crate) path: String,
    pub(crate) text: String,
}

/// File types that some check looks at.
const EXTENSIONS: [&str; 6] = ["rs", "sh", "sql", "toml", "md", "cql"];

/// Folders that hold nothing written by hand.
const SKIPPED: [&str; 2] = ["target", "node_modules"];

impl Source {
    #[cfg(test)]
    pub(crate) fn new(path: &str, text: &str) -> Self {
        Self {
            path: path.to_owned(),
            text: text.to_owned(),
        }
    }

    pub(crate) fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// Below the `src` folder of a package.
    pub(crate) fn in_src(&self) -> bool {
        self.path.contains("/src/")
    }

    /// A file of tests only: below a `tests` folder, or a `tests.rs`.
    pub(crate) fn is_test_file(&self) -> bool {
        self.path.contains("/tests/") || self.path.ends_with("/tests.rs")
    }

    /// Lines that are compiled into the product, with their numbers from 1 on:
    /// no comments, and nothing from the first `#[cfg(test)]` module on, which
    /// stands last in a file by convention.
    pub(crate) fn product_lines(&self) -> impl Iterator<Item = (usize, &str)> {
        let end = self.test_region_start();
        self.text
            .lines()
            .enumerate()
            .take_while(move |(number, _)| *number < end)
            .map(|(number, line)| (number + 1, without_comment(line)))
            .filter(|(_, line)| !line.trim().is_empty())
    }

    /// What belongs to tests: all of a test file, else from `#[cfg(test)]` on.
    pub(crate) fn test_text(&self) -> String {
        let start = if self.is_test_file() {
            0
        } else {
            self.test_region_start()
        };
        self.text.lines().skip(start).collect::<Vec<_>>().join("\n")
    }

    fn test_region_start(&self) -> usize {
        let lines: Vec<&str> = self.text.lines().collect();
        let is_module = |line: &str| {
            let line = line.trim_start().trim_start_matches("pub(crate) ");
            line.starts_with("mod ") || line.starts_with("#[")
        };
        (0..lines.len())
            .find(|&n| {
                lines[n].trim() == "#[cfg(test)]"
                    && lines.get(n + 1).is_some_and(|next| is_module(next))
            })
            .unwrap_or(lines.len())
    }
}

/// Reads every file that some check looks at, sorted by path.
pub(crate) fn read_all(root: &Path) -> io::Result<Vec<Source>> {
    let mut sources = Vec::new();
    read_folder(root, root, &mut sources)?;
    sources.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(sources)
}

fn read_folder(root: &Path, folder: &Path, sources: &mut Vec<Source>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = entry.path();
        if entry.file_type()?.is_dir() {
            if !name.starts_with('.') && !SKIPPED.contains(&name.as_str()) {
                read_folder(root, &path, sources)?;
            }
        } else if path
            .extension()
            .is_some_and(|ext| EXTENSIONS.iter().any(|known| ext == *known))
        {
            let relative = path
                .strip_prefix(root)
                .unwrap_or(&path)
                .to_string_lossy()
                .into_owned();
            // Captured data may carry a text file's extension and not be text.
            let text = String::from_utf8_lossy(&fs::read(&path)?).into_owned();
            sources.push(Source {
                path: relative,
                text,
            });
        }
    }
    Ok(())
}

/// Cuts a line comment. `//` inside a string is taken for one only when it
/// follows a blank or starts the line, which URLs do not.
fn without_comment(line: &str) -> &str {
    if line.trim_start().starts_with("//") {
        return "";
    }
    line.find(" //").map_or(line, |at| &line[..at])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn product_lines_leave_out_comments_and_tests() {
        let source = Source::new(
            "crates/a/src/lib.rs",
            "//! Head.\nuse x;\nlet u = \"http://a\"; // why\n\n#[cfg(test)]\nmod tests {\n  use y;\n}\n",
        );
        let lines: Vec<_> = source.product_lines().collect();
        assert_eq!(lines, [(2, "use x;"), (3, "let u = \"http://a\";")]);
        assert!(source.test_text().contains("use y;"));
        assert!(!source.test_text().contains("use x;"));
    }

    #[test]
    fn a_test_only_item_in_the_middle_does_not_end_the_product() {
        let source = Source::new(
            "crates/a/src/lib.rs",
            "#[cfg(test)]\npub(crate) fn f() {}\nuse late;\n",
        );
        assert!(source.product_lines().any(|(_, line)| line == "use late;"));
    }

    #[test]
    fn a_test_file_is_test_text_as_a_whole() {
        assert!(
            Source::new("crates/a/tests/it/main.rs", "D-1")
                .test_text()
                .contains("D-1")
        );
        assert!(
            Source::new("crates/a/src/core/tests.rs", "D-1")
                .test_text()
                .contains("D-1")
        );
    }
}
