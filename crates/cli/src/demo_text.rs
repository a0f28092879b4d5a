//! The text that the demo indexes: the crates in cargo's registry, or else the project's own documents.

use crate::failure::Failure;
use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};

/// Limits on the text, so that the demo takes seconds.
const MOST_FILES: usize = 20_000;
const MOST_BYTES: u64 = 60_000_000;
/// Larger files are mostly tables and generated code.
const LONGEST_FILE: u64 = 1 << 18;

/// Files to index.
pub struct DemoText {
    origin: String,
    files: Vec<TextFile>,
}

/// A file and its document id.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct TextFile {
    id: String,
    path: PathBuf,
    bytes: u64,
}

impl DemoText {
    /// Finds the crates in cargo's registry, or else the project's documents.
    pub fn find() -> Result<DemoText, Failure> {
        let crates = registry_crates();
        let files = choose(crates.iter().map(|(name, folder)| files_below(folder, name)).collect());
        if !files.is_empty() {
            let origin = format!("the sources and documents of {} crates in cargo's registry", crates.len());
            return Ok(DemoText { origin, files });
        }
        let folder = project_folder();
        let files = choose(vec![files_below(&folder, "")]);
        if files.is_empty() {
            let folder = folder.display();
            return Err(Failure::new(format!(
                "found no text: no crates in cargo's registry and no documents in {folder}; \
                 index text of your own with 'lanner index --input PATH --index DIR'"
            )));
        }
        Ok(DemoText { origin: "the project's own sources and documents".to_owned(), files })
    }

    /// Describes where the text comes from.
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// Returns the number of files.
    pub fn files(&self) -> usize {
        self.files.len()
    }

    /// Returns the size of all files in bytes.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }

    /// Reads the files one by one into id, title and text; files that cannot be read are skipped.
    pub fn into_documents(self) -> impl Iterator<Item = (String, String, String)> + Send + 'static {
        self.files.into_iter().filter_map(|file| {
            let bytes = fs::read(&file.path).ok()?;
            let text = String::from_utf8_lossy(&bytes);
            let title = title(&file.path, &text).unwrap_or_else(|| file.id.clone());
            let is_source = file.path.extension().is_some_and(|extension| extension == "rs");
            let text = if is_source { without_comment_marks(&text) } else { text.into_owned() };
            Some((file.id, title, text))
        })
    }
}

/// Returns the folders of the crates in cargo's registries by name and version; the first registry wins.
fn registry_crates() -> BTreeMap<String, PathBuf> {
    let home = env::var_os("CARGO_HOME").map(PathBuf::from).or_else(|| Some(env::home_dir()?.join(".cargo")));
    let mut crates = BTreeMap::new();
    for registry in home.iter().flat_map(|home| entries(&home.join("registry/src"))) {
        for folder in entries(&registry).into_iter().filter(|path| path.is_dir()) {
            if let Some(name) = folder.file_name().and_then(|name| name.to_str()) {
                crates.entry(name.to_owned()).or_insert(folder);
            }
        }
    }
    crates
}

/// Returns the workspace that this program was built from if it still exists, or else the current folder.
fn project_folder() -> PathBuf {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).map(Path::to_owned);
    workspace.filter(|folder| folder.is_dir()).unwrap_or_else(|| PathBuf::from("."))
}

/// Returns the paths in a folder sorted by name; none if the folder cannot be read.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let Ok(read) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut paths: Vec<PathBuf> = read.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort_unstable();
    paths
}

/// Returns the text files below a folder, sorted by priority. Links are not followed.
fn files_below(folder: &Path, prefix: &str) -> Vec<TextFile> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(current) = folders.pop() {
        for path in entries(&current) {
            let Ok(metadata) = path.symlink_metadata() else { continue };
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if name.starts_with('.') {
                continue;
            }
            if metadata.is_dir() && name != "target" {
                folders.push(path);
            } else if metadata.is_file() && is_text(&path) && (1..=LONGEST_FILE).contains(&metadata.len()) {
                let relative = path.strip_prefix(folder).unwrap_or(&path);
                let parts = relative.components().map(|part| part.as_os_str().to_string_lossy());
                let id = [prefix.into()].into_iter().chain(parts).filter(|part| !part.is_empty());
                let id = id.collect::<Vec<_>>().join("/");
                files.push(TextFile { id, bytes: metadata.len(), path });
            }
        }
    }
    files.sort_by_cached_key(|file| (priority(file), file.id.clone()));
    files
}

/// Whether a file is documentation or source. Licenses are left out, since they are the same in every crate.
fn is_text(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    let is_license = ["license", "licence", "copying", "unlicense"].iter().any(|word| name.starts_with(word));
    let extension = path.extension().unwrap_or_default();
    let has_extension = ["rs", "md", "toml", "txt"].iter().any(|known| extension == *known);
    !is_license && (has_extension || name == "readme")
}

/// Returns the rank of a file by its kind: prose, then sources, then the rest.
fn priority(file: &TextFile) -> usize {
    let name = file.path.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    if name.starts_with("readme") {
        0
    } else if name.ends_with(".md") {
        1
    } else if name == "lib.rs" {
        2
    } else if name.ends_with(".rs") {
        3
    } else {
        4
    }
}

/// Chooses one file of each folder in turn until the limits are reached, and sorts them by id.
fn choose(mut folders: Vec<Vec<TextFile>>) -> Vec<TextFile> {
    let mut chosen = Vec::new();
    let mut bytes = 0;
    let rounds = folders.iter().map(Vec::len).max().unwrap_or(0);
    'full: for round in 0..rounds {
        for file in folders.iter_mut().filter_map(|files| files.get(round)) {
            if chosen.len() == MOST_FILES || bytes + file.bytes > MOST_BYTES {
                break 'full;
            }
            bytes += file.bytes;
            chosen.push(file.clone());
        }
    }
    chosen.sort_unstable();
    chosen
}

/// Returns the first heading of a Markdown file, or the first line of the module comment of a source file.
fn title(path: &Path, text: &str) -> Option<String> {
    let mark = match path.extension()?.to_str()? {
        "md" => "#",
        "rs" => "//!",
        _ => return None,
    };
    let lines = text.lines().take(60).filter_map(|line| line.trim_start().strip_prefix(mark));
    let words = lines.map(|line| line.trim_matches(|c: char| c == '#' || c.is_whitespace()));
    // Badges, links and HTML are not titles.
    let mut titles = words.filter(|line| line.starts_with(|c: char| c.is_alphanumeric() || c == '`'));
    let title = titles.next()?;
    let end = title.find(['[', '<', '&']).unwrap_or(title.len());
    Some(title[..end].trim_end().replace('`', ""))
}

/// Removes the slashes at the beginning of comment lines, so that comments read as text.
fn without_comment_marks(source: &str) -> String {
    let lines = source.lines().map(|line| {
        let start = line.trim_start();
        let mark = ["//!", "///", "//"].into_iter().find(|mark| start.starts_with(mark));
        mark.map_or(line, |mark| &start[mark.len()..])
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(id: &str, bytes: u64) -> TextFile {
        TextFile { id: id.to_owned(), path: PathBuf::from(id), bytes }
    }

    #[test]
    fn every_folder_has_its_turn_before_the_limit_is_reached() {
        let half = MOST_BYTES / 2;
        let folders = vec![vec![file("a/1", half), file("a/2", 1)], vec![file("b/1", half - 1)], vec![file("c/1", 5)]];
        let ids: Vec<String> = choose(folders).into_iter().map(|file| file.id).collect();
        assert_eq!(ids, ["a/1", "b/1"], "what does not fit ends the choice");
        let folders = vec![vec![file("a/1", 1), file("a/2", 1)], vec![file("b/1", 1)]];
        assert_eq!(choose(folders).len(), 3);
    }

    #[test]
    fn a_title_is_a_heading_or_a_description() {
        let title = |name: &str, text: &str| title(Path::new(name), text);
        assert_eq!(title("a.md", "[![badge]](x)\n\n## The `mmap` crate ##\ntext"), Some("The mmap crate".to_owned()));
        assert_eq!(title("a.md", "# Serde &emsp; [![Build]][x]"), Some("Serde".to_owned()));
        assert_eq!(title("a.rs", "// Copyright\n//!\n//! Maps files.\n"), Some("Maps files.".to_owned()));
        assert_eq!(title("a.rs", "#![no_std]\nfn main() {}"), None);
        assert_eq!(title("Cargo.toml", "# generated"), None);
    }

    #[test]
    fn comments_read_as_text() {
        let source = "//! Maps files.\n  /// One.\nlet a = 1; // two";
        assert_eq!(without_comment_marks(source), " Maps files.\n One.\nlet a = 1; // two");
    }

    #[test]
    fn licenses_and_data_are_left_out() {
        let is_text = |name: &str| is_text(Path::new(name));
        assert!(is_text("x/README") && is_text("x/a.rs") && is_text("notes.txt") && is_text("Cargo.toml"));
        assert!(!is_text("LICENSE-MIT.txt") && !is_text("data.bin") && !is_text("COPYING.md"));
    }
}
