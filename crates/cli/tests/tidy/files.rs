//! The text files of the project.

use std::fs;
use std::path::{Path, PathBuf};

pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the root of the project")
}

/// A file of the project: its path from the root, with `/`, and its text.
pub struct TextFile {
    pub path: String,
    pub text: String,
}

impl TextFile {
    pub fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// The text of the comments with its line numbers: every line of a document, nothing of data.
    pub fn comments(&self) -> impl Iterator<Item = (usize, &str)> {
        let ending = self.path.rsplit(['.', '/']).next().unwrap_or_default();
        let mark = match ending {
            "md" => Some(""),
            "rs" | "cu" | "cuh" | "h" | "cpp" => Some("//"),
            "toml" | "py" | "check" | "run" | "ptx" => Some("#"),
            _ => None,
        };
        (1..).zip(self.text.lines()).filter_map(move |(number, line)| {
            let comment = &line[line.find(mark?)?..];
            Some((number, comment.trim_start_matches(['/', '!', '#'])))
        })
    }

    /// The lines that are not comments, up to the tests at the end, with their numbers.
    pub fn code(&self) -> impl Iterator<Item = (usize, &str)> {
        let lines = (1..).zip(self.text.lines());
        let is_code = |line: &str| !line.trim_start().starts_with("//");
        lines.take_while(|(_, line)| !line.starts_with("#[cfg(test)]")).filter(move |(_, line)| is_code(line))
    }
}

/// Every text file of the project that is not ignored.
pub fn text_files() -> Vec<TextFile> {
    let root = root();
    let ignored = fs::read_to_string(root.join(".gitignore")).expect(".gitignore");
    let ignored: Vec<&str> = ignored.lines().filter_map(|line| line.strip_prefix('/')).collect();
    let mut files = Vec::new();
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder of the project") {
            let path = entry.expect("an entry of a folder").path();
            let relative =
                path.strip_prefix(&root).expect("a path below the root").to_string_lossy().replace('\\', "/");
            if relative == ".git" || ignored.contains(&relative.as_str()) {
                continue;
            }
            if path.is_dir() {
                folders.push(path);
            } else if let Ok(text) = fs::read_to_string(&path) {
                files.push(TextFile { path: relative, text });
            }
        }
    }
    assert!(files.iter().any(|file| file.path == "crates/cli/tests/tidy/files.rs"), "the walk misses its own file");
    files
}

/// Fails with every finding, one a line.
pub fn assert_none(findings: &[String]) {
    assert!(findings.is_empty(), "{} findings:\n{}", findings.len(), findings.join("\n"));
}
