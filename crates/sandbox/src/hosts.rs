//! Host names of a process's own, that move while the process runs.
//!
//! Owns: the file that says which address a name has, and the variables that make a program read it
//! (nss_wrapper, preloaded; nss_wrapper(1)). All other names are the system's. The program sees a
//! new file at its next question when the file is from another second than the one before.

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::preload;

const LIBRARY: &str = "libnss_wrapper.so";

/// Names. Every process that was started with [`Hosts::env`] knows them.
#[derive(Debug)]
pub struct Hosts {
    library: PathBuf,
    file: PathBuf,
}

impl Hosts {
    /// Names without addresses yet, kept in `file`.
    ///
    /// # Errors
    /// [`Error::NoNssWrapper`], or when the file cannot be written.
    pub fn new(file: &Path) -> Result<Self, Error> {
        let library = preload::find(LIBRARY).ok_or(Error::NoNssWrapper)?;
        if let Some(folder) = file.parent() {
            fs::create_dir_all(folder).map_err(|e| Error::file("creating", folder, e))?;
        }
        let hosts = Self {
            library,
            file: file.to_owned(),
        };
        hosts.set(&[])?;
        Ok(hosts)
    }

    /// Gives these names these addresses, and no other name any.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn set(&self, names: &[(&str, &str)]) -> Result<(), Error> {
        let lines = names
            .iter()
            .map(|(name, address)| format!("{address} {name}\n"));
        // In one step: it is being read all the time.
        let fresh = self.file.with_extension("new");
        fs::write(&fresh, lines.collect::<String>())
            .map_err(|e| Error::file("writing", &fresh, e))?;
        fs::rename(&fresh, &self.file).map_err(|e| Error::file("renaming", &self.file, e))
    }

    /// The variables that make a program know these names.
    pub fn env(&self) -> Vec<(String, String)> {
        [
            ("LD_PRELOAD", self.library.display().to_string()),
            ("NSS_WRAPPER_HOSTS", self.file.display().to_string()),
        ]
        .map(|(key, value)| (key.to_owned(), value))
        .to_vec()
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        let _outcome = fs::remove_file(&self.file);
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::thread::sleep;
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_name_moves() {
        let file = std::env::temp_dir().join(format!("tideline-hosts-{}", std::process::id()));
        let hosts = Hosts::new(&file).expect("libnss-wrapper is installed");
        let ask = || {
            let output = Command::new("getent")
                .args(["ahostsv4", "broker.tideline.test"])
                .envs(hosts.env())
                .output()
                .expect("getent runs");
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            text.split_whitespace().next().map(str::to_owned)
        };
        assert_eq!(ask(), None);
        for address in ["127.0.0.2", "127.0.0.3"] {
            sleep(Duration::from_millis(1_100));
            hosts
                .set(&[("broker.tideline.test", address)])
                .expect("the file can be written");
            assert_eq!(ask().as_deref(), Some(address));
        }
    }
}
