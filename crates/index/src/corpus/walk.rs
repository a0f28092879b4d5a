//! Finds every file below a folder.
//!
//! Links are followed after everything else, in the order of their paths, so that a folder is read under its own name.
//! What was read under one name is not read again under another: cycles of links end, and links that lead to each other
//! in many ways cost no more than the files.

use std::collections::{BTreeMap, HashSet};
use std::fs::{self, Metadata};
use std::path::{Path, PathBuf};

use super::CorpusOptions;
use super::error::CorpusError;
use super::files::cannot_open;
use super::left_out::{LeftOutCounts, Reason};
use crate::format::folder::is_index;

/// A file below the input.
#[derive(Debug)]
pub(super) struct FoundFile {
    pub(super) path: PathBuf,
    /// The path below the input, its components joined by `/` on every platform.
    pub(super) relative: Vec<u8>,
    pub(super) size: u64,
}

/// A folder that is to be listed.
struct Folder {
    path: PathBuf,
    /// The path below the input, with a `/` at its end.
    relative: Vec<u8>,
    /// The path without links, if links are followed.
    real: Option<PathBuf>,
}

struct Walk {
    hidden: bool,
    files: Vec<FoundFile>,
    left_out: LeftOutCounts,
    folders: Vec<Folder>,
    /// Links to follow, by their paths below the input.
    links: BTreeMap<Vec<u8>, PathBuf>,
    /// The real paths of what was found, if links are followed.
    seen: HashSet<PathBuf>,
}

/// Returns every file below `input`, sorted by the bytes of its path.
///
/// Special files and folders that hold an index are left out, and so are hidden files and folders and links, unless the
/// options include them.
pub(super) fn walk(input: &Path, options: &CorpusOptions) -> Result<(Vec<FoundFile>, LeftOutCounts), CorpusError> {
    let refused = |error| cannot_open(input, error);
    let real = options.follow_links.then(|| fs::canonicalize(input)).transpose().map_err(refused)?;
    // An input that cannot be read at all is an error, unlike what lies below it.
    fs::read_dir(input).map_err(refused)?;
    let mut walk = Walk {
        hidden: options.hidden,
        files: Vec::new(),
        left_out: LeftOutCounts::default(),
        folders: vec![Folder { path: input.to_path_buf(), relative: Vec::new(), real }],
        links: BTreeMap::new(),
        seen: HashSet::new(),
    };
    loop {
        while let Some(folder) = walk.folders.pop() {
            walk.list(folder)?;
        }
        let Some((relative, path)) = walk.links.pop_first() else { break };
        walk.follow(relative, path);
    }
    walk.files.sort_unstable_by(|left, right| left.relative.cmp(&right.relative));
    Ok((walk.files, walk.left_out))
}

impl Walk {
    fn list(&mut self, folder: Folder) -> Result<(), CorpusError> {
        if !self.is_new(folder.real.as_ref()) {
            self.left_out.add(Reason::RepeatedLink, &folder.path);
            return Ok(());
        }
        let mut entries: Vec<fs::DirEntry> = match fs::read_dir(&folder.path).and_then(Iterator::collect) {
            Ok(entries) => entries,
            Err(error) => {
                self.unreadable(Reason::UnreadableFolder, &folder.path, error);
                return Ok(());
            }
        };
        if folder.real.is_some() {
            // Of several ways to a file, the same must win every time.
            entries.sort_by_cached_key(fs::DirEntry::file_name);
        }
        let names: Vec<String> = entries.iter().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        if is_index(&names) {
            if folder.relative.is_empty() {
                return Err(CorpusError::IsIndex { path: folder.path.display().to_string() });
            }
            self.left_out.add(Reason::Index, &folder.path);
            return Ok(());
        }
        for entry in entries {
            self.sort_out(&folder, &entry);
        }
        Ok(())
    }

    /// Decides what becomes of an entry of a folder.
    fn sort_out(&mut self, folder: &Folder, entry: &fs::DirEntry) {
        let (path, name) = (entry.path(), entry.file_name());
        let relative = [&folder.relative, name.as_encoded_bytes()].concat();
        let is_hidden = name.as_encoded_bytes().starts_with(b".") && !self.hidden;
        match entry.metadata() {
            Err(error) => self.unreadable(Reason::UnreadableFile, &path, error),
            Ok(metadata) if is_hidden => {
                let reason = if metadata.is_dir() { Reason::HiddenFolder } else { Reason::HiddenFile };
                self.left_out.add(reason, &path);
            }
            Ok(metadata) if metadata.is_symlink() => match &folder.real {
                Some(_) => _ = self.links.insert(relative, path),
                None => self.left_out.add(Reason::Link, &path),
            },
            Ok(metadata) => {
                let real = folder.real.as_ref().map(|real| real.join(&name));
                self.add(&metadata, path, relative, real);
            }
        }
    }

    /// Finds what a link leads to.
    fn follow(&mut self, relative: Vec<u8>, path: PathBuf) {
        match fs::canonicalize(&path).and_then(|real| Ok((fs::metadata(&real)?, real))) {
            Ok((metadata, real)) => self.add(&metadata, path, relative, Some(real)),
            Err(error) => self.unreadable(Reason::UnreadableFile, &path, error),
        }
    }

    fn add(&mut self, metadata: &Metadata, path: PathBuf, mut relative: Vec<u8>, real: Option<PathBuf>) {
        if metadata.is_dir() {
            relative.push(b'/');
            self.folders.push(Folder { path, relative, real });
        } else if !metadata.is_file() {
            self.left_out.add(Reason::SpecialFile, &path);
        } else if self.is_new(real.as_ref()) {
            self.files.push(FoundFile { path, relative, size: metadata.len() });
        } else {
            self.left_out.add(Reason::RepeatedLink, &path);
        }
    }

    /// Whether a file or folder was not found before, under another name.
    fn is_new(&mut self, real: Option<&PathBuf>) -> bool {
        real.is_none_or(|real| self.seen.insert(real.clone()))
    }

    fn unreadable(&mut self, reason: Reason, path: &Path, error: std::io::Error) {
        self.left_out.add_unreadable(reason, &cannot_open(path, error));
    }
}
