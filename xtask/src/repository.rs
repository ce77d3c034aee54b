//! Where things are in the checkout.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use sandbox::Instance;

/// The root of the checkout: the folder above this package.
pub(crate) fn root() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.parent().unwrap_or(package).to_owned()
}

/// The commit that is checked out, with a mark when files differ from it. None without git.
pub(crate) fn commit() -> Option<String> {
    let described = Command::new("git")
        .args(["describe", "--always", "--dirty", "--abbrev=12"])
        .current_dir(root())
        .output()
        .ok()
        .filter(|output| output.status.success())?;
    Some(String::from_utf8_lossy(&described.stdout).trim().to_owned())
}

/// The sandbox that people use.
pub(crate) fn sandbox() -> Instance {
    Instance::open(&root(), "sandbox")
}

/// The sandbox of the tests, with data of its own. The variable names another one, for a second
/// run beside the first; the test kit reads it too.
pub(crate) fn test_sandbox() -> Instance {
    let name = env::var("TESTKIT_INSTANCE").unwrap_or_else(|_| "sandbox-test".to_owned());
    Instance::open(&root(), &name)
}

/// A program that `cargo build --release` made.
pub(crate) fn release_binary(name: &str) -> PathBuf {
    binary("release", name)
}

/// A program that `cargo build` made.
pub(crate) fn debug_binary(name: &str) -> PathBuf {
    binary("debug", name)
}

fn binary(profile: &str, name: &str) -> PathBuf {
    let target = env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    // A relative path means relative to where cargo runs, which is the root.
    root()
        .join(target.unwrap_or_else(|| PathBuf::from("target")))
        .join(profile)
        .join(name)
}
