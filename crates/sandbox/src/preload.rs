//! Libraries that are loaded into a process before all others, to change what the system tells it.

use std::fs;
use std::path::{Path, PathBuf};

/// An installed library by its path below the folder for libraries. Debian has one folder more in
/// between, for the processor.
pub(crate) fn find(library: &str) -> Option<PathBuf> {
    let root = Path::new("/usr/lib");
    let folders = fs::read_dir(root).into_iter().flatten().flatten();
    let mut folders: Vec<PathBuf> = folders.map(|entry| entry.path()).collect();
    folders.sort();
    folders.push(root.to_owned());
    let mut paths = folders.into_iter().map(|folder| folder.join(library));
    paths.find(|path| path.is_file())
}
