//! The folder of an index during a build: one writer at a time, nothing visible before it is complete.
//!
//! Unfinished files lie in the subfolder `building`, which the next writer removes if this one dies. A commit renames
//! the segment, then the manifest; the rename of the manifest is the moment at which the index changes.

use super::BuildError;
use crate::format::IndexError;
use crate::format::folder::{BUILDING, LOCK, is_index, is_segment, segment_name};
use crate::format::manifest::Manifest;
use crate::unfinished::Unfinished;
use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

/// Exclusive write access to an index. Dropping it removes everything that was not committed.
pub struct IndexFolder {
    path: PathBuf,
    // Forgotten before the lock is released: then the subfolder may be another writer's.
    _unfinished: Unfinished,
    _lock: File,
    generation: u64,
}

impl IndexFolder {
    /// Creates the folder if it does not exist, takes the lock and removes the leftovers of dead writers.
    pub fn open(path: &Path) -> Result<IndexFolder, BuildError> {
        create_folder(path)?;
        refuse_foreign(path)?;
        let lock_path = path.join(LOCK);
        let lock = File::options().create(true).append(true).open(&lock_path).map_err(BuildError::io(&lock_path))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(IndexError::Locked { path: path.to_owned() }.into()),
            Err(TryLockError::Error(error)) => return Err(BuildError::io(&lock_path)(error)),
        }
        let current = Manifest::current(path)?;
        let before = current.as_deref().and_then(generation_of).unwrap_or(0);
        let generation = before.checked_add(1).ok_or_else(|| IndexError::Foreign { path: path.to_owned() })?;
        let unfinished = Unfinished::new(&path.join(BUILDING));
        let folder = IndexFolder { path: path.to_owned(), _unfinished: unfinished, _lock: lock, generation };
        folder.sweep(current.as_deref())?;
        let building = folder.building();
        fs::create_dir(&building).map_err(BuildError::io(&building))?;
        Ok(folder)
    }

    /// The generation being written.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// The subfolder for temporary files.
    pub fn building(&self) -> PathBuf {
        self.path.join(BUILDING)
    }

    /// The final name of the segment.
    pub fn segment_name(&self) -> String {
        segment_name(self.generation)
    }

    /// Makes a finished segment file and its manifest the current generation.
    pub fn commit(&self, segment: &Path, manifest: &Manifest) -> Result<(), BuildError> {
        // Everything that needs disk space comes before the first rename.
        let temporary = self.building().join("manifest");
        write_whole(&temporary, &manifest.encode()).map_err(BuildError::io(&temporary))?;
        let target = self.path.join(self.segment_name());
        fs::rename(segment, &target).map_err(BuildError::io(&target))?;
        // The name of the segment must be on disk before a manifest refers to it.
        sync_folder(&self.path)?;
        let target = self.path.join(Manifest::file_name(self.generation));
        fs::rename(&temporary, &target).map_err(BuildError::io(&target))?;
        sync_folder(&self.path)?;
        // The index has changed. Failing to remove old files is not an error: the next writer removes them.
        let _ = self.sweep(Some(&target));
        Ok(())
    }

    /// Removes manifests and segments that the current manifest does not need. Readers that have them open keep them.
    fn sweep(&self, current: Option<&Path>) -> Result<(), BuildError> {
        let building = self.building();
        if building.exists() {
            fs::remove_dir_all(&building).map_err(BuildError::io(&building))?;
        }
        let needed = match current {
            Some(path) => {
                let bytes = fs::read(path).map_err(BuildError::io(path))?;
                // A damaged manifest does not say which segments it needs: keep all files.
                let Ok(manifest) = Manifest::decode(path, &bytes) else {
                    return Ok(());
                };
                manifest.segments.into_iter().map(|segment| segment.file).collect()
            }
            None => Vec::new(),
        };
        for name in names(&self.path)? {
            let is_old_manifest =
                Manifest::generation_of(&name).is_some() && current.is_none_or(|path| !path.ends_with(&name));
            let is_old_segment = is_segment(&name) && !needed.contains(&name);
            if is_old_manifest || is_old_segment {
                let path = self.path.join(&name);
                fs::remove_file(&path).map_err(BuildError::io(&path))?;
            }
        }
        Ok(())
    }
}

impl Drop for IndexFolder {
    fn drop(&mut self) {
        // If this fails, the next writer removes the folder.
        let _ = fs::remove_dir_all(self.building());
    }
}

fn generation_of(manifest: &Path) -> Option<u64> {
    Manifest::generation_of(manifest.file_name()?.to_str()?)
}

/// Refuses a folder that holds other files and no index: the user may have given the wrong folder. The leftover of a
/// dead writer is accepted; it includes the lock, which a writer creates first.
fn refuse_foreign(path: &Path) -> Result<(), BuildError> {
    let names = names(path)?;
    if names.is_empty() || is_index(&names) {
        return Ok(());
    }
    Err(IndexError::Foreign { path: path.to_owned() }.into())
}

/// Creates the folder if it does not exist, and syncs its parent, so that its name survives a power loss.
fn create_folder(path: &Path) -> Result<(), BuildError> {
    if path.is_dir() {
        return Ok(());
    }
    if path.exists() {
        return Err(IndexError::NotFolder { path: path.to_owned() }.into());
    }
    fs::create_dir_all(path).map_err(BuildError::io(path))?;
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => sync_folder(parent),
        _ => sync_folder(Path::new(".")),
    }
}

fn names(path: &Path) -> Result<Vec<String>, BuildError> {
    let entries = fs::read_dir(path).map_err(BuildError::io(path))?;
    let names: Result<Vec<_>, _> = entries.map(|entry| entry.map(|entry| entry.file_name())).collect();
    let names = names.map_err(BuildError::io(path))?;
    Ok(names.into_iter().map(|name| name.to_string_lossy().into_owned()).collect())
}

fn write_whole(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    use std::io::Write;
    let mut file = File::create(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

fn sync_folder(path: &Path) -> Result<(), BuildError> {
    File::open(path).and_then(|folder| folder.sync_all()).map_err(BuildError::io(path))
}
