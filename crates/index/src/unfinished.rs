//! Files and folders that are not finished, for a program that has to end early: it can remove them before it exits.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

/// What is unfinished in this process.
static UNFINISHED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// A folder may get new files while it is removed, from threads that do not know that the process ends.
const ATTEMPTS: usize = 100;

/// A file or folder that nobody wants unless it is finished. Dropping this only forgets the path.
#[derive(Debug)]
pub struct Unfinished {
    path: PathBuf,
}

impl Unfinished {
    /// Notes a path. The process must own it, as the holder of a lock does.
    pub fn new(path: &Path) -> Unfinished {
        // The thread that removes it later may be in another folder.
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        lock().push(path.clone());
        Unfinished { path }
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        let mut unfinished = lock();
        if let Some(position) = unfinished.iter().position(|path| *path == self.path) {
            unfinished.swap_remove(position);
        }
    }
}

/// Removes everything that is unfinished in this process, which must end afterwards without running destructors.
/// Returns whether there was something. What cannot be removed stays for the next run, as after a crash.
pub fn remove_unfinished() -> bool {
    // A thread that has run out of memory may hold the lock itself.
    let mut unfinished = match UNFINISHED.try_lock() {
        Ok(unfinished) => unfinished,
        Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
        Err(TryLockError::WouldBlock) => return false,
    };
    let paths = std::mem::take(&mut *unfinished);
    for path in &paths {
        for _ in 0..ATTEMPTS {
            let removed = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
            if removed.is_ok_and(|()| !path.exists()) {
                break;
            }
        }
    }
    !paths.is_empty()
}

fn lock() -> MutexGuard<'static, Vec<PathBuf>> {
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_unfinished_is_removed_and_what_is_finished_stays() {
        let folder = tempfile::tempdir().unwrap();
        let [building, partial, finished] = ["building", "partial", "finished"].map(|name| folder.path().join(name));
        fs::create_dir(&building).unwrap();
        fs::write(building.join("run-1"), "half").unwrap();
        fs::write(&partial, "half").unwrap();
        fs::write(&finished, "whole").unwrap();
        let kept = [Unfinished::new(&building), Unfinished::new(&partial)];
        drop(Unfinished::new(&finished));
        assert!(remove_unfinished());
        assert_eq!([building.exists(), partial.exists(), finished.exists()], [false, false, true]);
        drop(kept);
    }
}
