//! Each module says at its head what it owns.

use super::{Finding, Source};

pub(super) fn check(sources: &[Source]) -> Vec<Finding> {
    sources
        .iter()
        .filter(|source| source.is_rust() && source.in_src())
        .filter(|source| !source.text.lines().any(|line| line.starts_with("//! ")))
        .map(|source| Finding::fault(&source.path, "no module head (`//!`): what does it own?"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_head_is_found() {
        assert_eq!(
            check(&[Source::new("crates/a/src/b.rs", "use x;\n")]).len(),
            1
        );
        assert_eq!(
            check(&[Source::new("crates/a/src/b.rs", "//! Owns b.\nuse x;\n")]),
            []
        );
        assert_eq!(
            check(&[Source::new("crates/a/tests/it/b.rs", "use x;\n")]),
            []
        );
    }
}
