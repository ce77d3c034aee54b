//! Module names that say nothing attract everything, so there are none.

use super::{Finding, Source};

const FORBIDDEN: [&str; 10] = [
    "utils", "util", "common", "helpers", "helper", "types", "manager", "misc", "shared", "stuff",
];

pub(super) fn check(sources: &[Source]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in sources.iter().filter(|source| source.is_rust()) {
        let words = source.path.trim_end_matches(".rs").split('/');
        for word in words.filter(|word| FORBIDDEN.contains(word)) {
            findings.push(Finding::fault(
                &source.path,
                format!("a module named `{word}`: name what it owns"),
            ));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_names_are_found_as_file_and_as_folder() {
        for path in [
            "crates/a/src/utils.rs",
            "crates/a/src/common/mod.rs",
            "crates/a/tests/it/helpers.rs",
        ] {
            assert_eq!(check(&[Source::new(path, "")]).len(), 1, "{path}");
        }
        assert_eq!(check(&[Source::new("crates/a/src/page.rs", "")]), []);
    }
}
