//! An invariant that is called built has a test that names it.
//!
//! The page `docs/specs/delivery.md` has one row per invariant:
//! `| D-1 | built | text | where |`, or `planned` in the second column.

use super::{Finding, Source};

const PAGE: &str = "docs/specs/delivery.md";

pub(super) fn check(sources: &[Source]) -> Vec<Finding> {
    let Some(page) = sources.iter().find(|source| source.path == PAGE) else {
        return vec![Finding::fault(
            PAGE,
            "the page with the invariants is missing",
        )];
    };
    let tests: String = sources
        .iter()
        .filter(|s| s.is_rust())
        .map(Source::test_text)
        .collect();
    let mut findings = Vec::new();
    let mut built = 0;
    for (number, line) in page.text.lines().enumerate() {
        let place = format!("{PAGE}:{}", number + 1);
        match row(line) {
            None => {}
            Some((id, "built")) => {
                built += 1;
                if !names(&tests, id) {
                    findings.push(Finding::fault(
                        place,
                        format!("{id} is built, and no test names it"),
                    ));
                }
            }
            Some((_, "planned")) => {}
            Some((id, other)) => {
                findings.push(Finding::fault(
                    place,
                    format!("{id} is `{other}`: write `built` or `planned`"),
                ));
            }
        }
    }
    if built == 0 {
        findings.push(Finding::fault(
            PAGE,
            "no row `| D-n | built | …`: is the table still in that form?",
        ));
    }
    findings
}

/// Id and state of a row of the table.
fn row(line: &str) -> Option<(&str, &str)> {
    let mut cells = line.trim().strip_prefix('|')?.split('|').map(str::trim);
    let id = cells.next()?;
    let number = id.strip_prefix("D-")?;
    let is_id = !number.is_empty() && number.chars().all(|c| c.is_ascii_digit());
    is_id.then_some((id, cells.next()?))
}

/// Whether the text has the id, not only a longer one that starts with it.
fn names(text: &str, id: &str) -> bool {
    text.match_indices(id)
        .any(|(at, _)| !text[at + id.len()..].starts_with(|c: char| c.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(page: &str, test: &str) -> Vec<Finding> {
        check(&[
            Source::new(PAGE, page),
            Source::new("crates/a/tests/it/main.rs", test),
        ])
    }

    #[test]
    fn a_built_invariant_needs_a_test() {
        let page = "| id | state | text | where |\n|---|---|---|---|\n| D-1 | built | x | y |\n| D-2 | planned | x | y |\n";
        assert_eq!(with(page, "/// D-1: nothing is lost."), []);
        assert_eq!(with(page, "/// D-11, D-12").len(), 1);
        assert!(with(page, "")[0].text.starts_with("D-1 is built"));
    }

    #[test]
    fn tests_in_a_cfg_test_region_count_and_other_code_does_not() {
        let page = Source::new(PAGE, "| D-3 | built | x | y |\n");
        let inside = Source::new(
            "crates/a/src/b.rs",
            "#[cfg(test)]\nmod tests {\n // D-3\n}\n",
        );
        let outside = Source::new("crates/a/src/b.rs", "// D-3\n");
        assert_eq!(check(&[page.clone(), inside]), []);
        assert_eq!(check(&[page, outside]).len(), 1);
    }

    #[test]
    fn a_missing_or_changed_page_is_found() {
        assert_eq!(check(&[]).len(), 1);
        assert!(
            with("| D-1 | done | x | y |\n", "")[0]
                .text
                .contains("`done`")
        );
        assert!(with("nothing\n", "")[0].text.contains("no row"));
    }
}
