//! Room on the disk, asked before servers start: a full disk shows itself
//! in a Java server as anything but a full disk.

use std::path::Path;
use std::process::Command;

use crate::error::Error;

/// Fails when fewer than `needed` MiB are free below `path`.
///
/// Where the answer cannot be had (no `df`), there is no check.
pub(crate) fn check(path: &Path, needed: u64) -> Result<(), Error> {
    let Ok(output) = Command::new("df").arg("-Pm").arg(path).output() else {
        return Ok(());
    };
    match free(&String::from_utf8_lossy(&output.stdout)) {
        Some(free) if free < needed => Err(Error::DiskFull {
            path: path.to_owned(),
            free,
            needed,
        }),
        _ => Ok(()),
    }
}

/// The column "Available" of `df -Pm`.
fn free(text: &str) -> Option<u64> {
    text.lines().nth(1)?.split_whitespace().nth(3)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_df_says() {
        let text = "Filesystem 1048576-blocks Used Available Capacity Mounted on\n/dev/vda 100 60 40 60% /\n";
        assert_eq!(free(text), Some(40));
        assert_eq!(free("nonsense"), None);
    }

    #[test]
    fn too_little_is_an_error_that_says_so() {
        let error = check(&std::env::temp_dir(), u64::MAX).expect_err("no disk is that large");
        assert!(error.to_string().contains("nearly full"), "{error}");
    }
}
