//! Log files of processes: one per run, the run before kept, the end readable.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use crate::error::Error;

/// Reading more than this to show a few lines would be waste.
const TAIL_BYTES: u64 = 64 * 1024;

/// The last `lines` lines of a file; a note in brackets when there are none.
pub fn tail(path: &Path, lines: usize) -> String {
    let Ok(bytes) = last_bytes(path) else {
        return "(no log file)".to_owned();
    };
    let text = String::from_utf8_lossy(&bytes);
    let all: Vec<&str> = text.lines().collect();
    if all.is_empty() {
        return "(the log is empty)".to_owned();
    }
    all[all.len().saturating_sub(lines)..].join("\n")
}

/// Opens a fresh log file and keeps the one before as `.old`, because the run
/// that crashed is the one somebody wants to read about.
pub(crate) fn fresh(path: &Path) -> Result<File, Error> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(|e| Error::file("creating", folder, e))?;
    }
    if fs::metadata(path).is_ok_and(|m| m.len() > 0) {
        let mut old = path.as_os_str().to_owned();
        old.push(".old");
        fs::rename(path, &old).map_err(|e| Error::file("renaming", path, e))?;
    }
    File::create(path).map_err(|e| Error::file("creating", path, e))
}

fn last_bytes(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES)))?;
    let mut bytes = Vec::new();
    file.take(TAIL_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tail_shows_the_end_and_fresh_keeps_the_old_run() {
        let folder = std::env::temp_dir().join(format!("tideline-logs-{}", std::process::id()));
        let path = folder.join("x.log");
        assert_eq!(tail(&path, 3), "(no log file)");
        fresh(&path).expect("a file");
        assert_eq!(tail(&path, 3), "(the log is empty)");
        fs::write(&path, "1\n2\n3\n4\n").expect("written");
        assert_eq!(tail(&path, 2), "3\n4");
        fresh(&path).expect("a file");
        assert_eq!(tail(&folder.join("x.log.old"), 1), "4");
        fs::remove_dir_all(folder).expect("removed");
    }
}
