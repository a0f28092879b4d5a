//! Folders that take long to make, kept between runs. A stamp beside each folder says what it was made from.

use crate::error::{BenchError, Result};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

/// A folder of cached folders.
#[derive(Clone, Debug)]
pub struct Cache {
    folder: PathBuf,
}

impl Cache {
    /// A cache in a folder, which does not have to exist yet.
    pub fn new(folder: impl Into<PathBuf>) -> Cache {
        Cache { folder: folder.into() }
    }

    /// Returns the folder `name`. Unless it was made with the same stamp, it is deleted and made again by `make`, which
    /// gets a path whose parent exists.
    pub fn folder(&self, name: &str, stamp: &str, make: impl FnOnce(&Path) -> Result<()>) -> Result<PathBuf> {
        let (folder, stamp_path) = (self.folder.join(name), self.folder.join(format!("{name}.stamp")));
        if std::fs::read_to_string(&stamp_path).is_ok_and(|found| found == stamp) {
            return Ok(folder);
        }
        if folder.exists() {
            std::fs::remove_dir_all(&folder).map_err(BenchError::io(&folder))?;
        }
        std::fs::create_dir_all(&self.folder).map_err(BenchError::io(&self.folder))?;
        make(&folder)?;
        std::fs::write(&stamp_path, stamp).map_err(BenchError::io(&stamp_path))?;
        Ok(folder)
    }

    /// Returns a folder with an index, made again if `stamp` or the program, whose code writes the index, changes.
    pub fn index(
        &self,
        (name, stamp): (&str, &str),
        program: &Path,
        build: impl FnOnce(&Path) -> Result<u64>,
    ) -> Result<PathBuf> {
        let stamp = format!("{stamp}\n{}", fingerprint(program)?);
        self.folder(name, &stamp, |folder| build(folder).map(drop))
    }
}

/// Returns a hash of the bytes of a file.
fn fingerprint(file: &Path) -> Result<String> {
    let bytes = std::fs::read(file).map_err(BenchError::io(file))?;
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    Ok(format!("{:016x}", hasher.finish()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_made_again_only_for_another_stamp() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::new(folder.path().join("inner"));
        let make = |stamp: &str, text: &str| {
            let write = |path: &Path| {
                std::fs::create_dir(path).unwrap();
                std::fs::write(path.join("text"), text).map_err(BenchError::io(path))
            };
            let made = cache.folder("one", stamp, write).unwrap();
            std::fs::read_to_string(made.join("text")).unwrap()
        };
        assert_eq!([make("1", "first"), make("1", "second"), make("2", "third")], ["first", "first", "third"]);
    }

    #[test]
    fn a_folder_that_failed_is_made_again() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::new(folder.path());
        assert!(cache.folder("one", "1", |_| Err(BenchError::Usage("no".to_owned()))).is_err());
        assert!(cache.folder("one", "1", |path| std::fs::create_dir(path).map_err(BenchError::io(path))).is_ok());
    }
}
