//! Locks between processes, on files: two callers never start the same thing.
//!
//! A lock ends with the process that holds it, so a crash leaves none behind.

use std::fs::{self, File, OpenOptions};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use crate::error::Error;

/// Held for as long as it lives.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: File,
}

impl Lock {
    /// Waits for the lock on `path`, creating the file and its folder.
    /// `waiting` is called once when somebody else holds it.
    pub(crate) fn take(path: &Path, waiting: &mut dyn FnMut()) -> Result<Self, Error> {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(|e| Error::file("creating", folder, e))?;
        }
        let file = open(path).map_err(|e| Error::file("opening", path, e))?;
        if file.try_lock().is_err() {
            waiting();
            file.lock().map_err(|e| Error::file("locking", path, e))?;
        }
        Ok(Self { _file: file })
    }

    /// As [`Lock::take`], for so long at most; nothing when somebody else still holds it then.
    pub(crate) fn take_within(
        path: &Path,
        limit: Duration,
        waiting: &mut dyn FnMut(),
    ) -> Result<Option<Self>, Error> {
        let file = open(path).map_err(|e| Error::file("opening", path, e))?;
        let begun = Instant::now();
        let mut told = false;
        while file.try_lock().is_err() {
            if begun.elapsed() >= limit {
                return Ok(None);
            }
            if !told {
                waiting();
                told = true;
            }
            thread::sleep(Duration::from_millis(100));
        }
        Ok(Some(Self { _file: file }))
    }
}

/// Opens without creating first: in a sticky folder the kernel refuses to
/// "create" a file that another user owns, and locking needs no write access.
fn open(path: &Path) -> std::io::Result<File> {
    File::open(path).or_else(|_| {
        OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(path)
    })
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn a_wait_for_it_has_an_end() {
        let path = std::env::temp_dir().join(format!("tideline-limit-{}", std::process::id()));
        let held = Lock::take(&path, &mut || panic!("nobody holds it")).expect("the lock");
        let mut told = 0;
        let limit = Duration::from_millis(1);
        let lock = Lock::take_within(&path, limit, &mut || told += 1).expect("no fault");
        assert!(lock.is_none() && told == 1);
        drop(held);
        let lock = Lock::take_within(&path, limit, &mut || told += 1).expect("no fault");
        assert!(lock.is_some() && told == 1);
        fs::remove_file(path).expect("the lock file");
    }

    #[test]
    fn the_second_caller_waits() {
        let path = std::env::temp_dir().join(format!("tideline-lock-{}", std::process::id()));
        let held = Lock::take(&path, &mut || panic!("nobody holds it")).expect("the lock");
        let (sender, receiver) = mpsc::channel();
        let other = path.clone();
        let thread = thread::spawn(move || {
            let told = sender.clone();
            let lock = Lock::take(&other, &mut || told.send("waiting").expect("a listener"));
            sender.send("got it").expect("a listener");
            drop(lock);
        });
        assert_eq!(receiver.recv(), Ok("waiting"));
        assert!(receiver.try_recv().is_err());
        drop(held);
        assert_eq!(receiver.recv(), Ok("got it"));
        thread.join().expect("no panic");
        fs::remove_file(path).expect("the lock file");
    }
}
