//! The key with which both APIs check tokens.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

use crate::error::Error;

/// Makes the key both APIs check tokens with, once, readable by its owner only.
pub(super) fn write(path: &Path) -> Result<(), Error> {
    if path.is_file() {
        return Ok(());
    }
    let mut bytes = [0; 32];
    let random = Path::new("/dev/urandom");
    fs::File::open(random)
        .and_then(|mut file| file.read_exact(&mut bytes))
        .map_err(|e| Error::file("reading", random, e))?;
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let write = || {
        let mut file = fs::OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(path)?;
        file.set_permissions(fs::Permissions::from_mode(0o600))?;
        file.write_all(hex.as_bytes())
    };
    write().map_err(|e| Error::file("writing", path, e))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_made_once_and_closed_to_others() {
        let root = std::env::temp_dir().join(format!("tideline-secret-{}", std::process::id()));
        fs::create_dir_all(&root).expect("made");
        let path = root.join("auth-secret");
        write(&path).expect("written");
        let first = fs::read_to_string(&path).expect("readable");
        assert_eq!(first.len(), 64);
        assert_eq!(
            fs::metadata(&path).expect("there").permissions().mode() & 0o777,
            0o600
        );
        write(&path).expect("left alone");
        assert_eq!(fs::read_to_string(&path).expect("readable"), first);
        fs::remove_dir_all(root).expect("removed");
    }
}
