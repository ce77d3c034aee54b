//! Files stay short enough to be read in one go.

use super::{Finding, Source};

const WARN: usize = 400;
const FAIL: usize = 500;

pub(super) fn check(sources: &[Source]) -> Vec<Finding> {
    sources
        .iter()
        .filter(|source| counted(source))
        .filter_map(judge)
        .collect()
}

fn counted(source: &Source) -> bool {
    let code = [".rs", ".sh", ".sql"]
        .iter()
        .any(|ending| source.path.ends_with(ending));
    let generated = source
        .text
        .lines()
        .take(5)
        .any(|line| line.contains("@generated"));
    code && !generated && !source.path.contains("/tests/data/")
}

fn judge(source: &Source) -> Option<Finding> {
    let lines = source.text.lines().count();
    let text = format!("{lines} lines; split it (warning from {WARN}, fault above {FAIL})");
    match lines {
        _ if lines > FAIL => Some(Finding::fault(&source.path, text)),
        _ if lines > WARN => Some(Finding::warning(&source.path, text)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(path: &str, lines: usize) -> Vec<Finding> {
        check(&[Source::new(path, &"x\n".repeat(lines))])
    }

    #[test]
    fn long_files_are_found() {
        assert_eq!(of("a/src/b.rs", 400), []);
        assert!(of("a/src/b.rs", 401)[0].warning);
        assert!(!of("a/src/b.rs", 501)[0].warning);
        assert!(!of("schemas/postgres/0001_x.sql", 501)[0].warning);
    }

    #[test]
    fn data_and_generated_files_may_be_long() {
        assert_eq!(of("a/tests/data/b.rs", 9999), []);
        assert_eq!(of("README.md", 9999), []);
        let text = format!("// @generated\n{}", "x\n".repeat(600));
        assert_eq!(check(&[Source::new("a/src/b.rs", &text)]), []);
    }
}
