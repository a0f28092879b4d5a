//! Headers of files, names, lengths, paths, unsafe code.

use crate::files::{TextFile, assert_none, root, text_files};
use std::fs;

/// The files in which `unsafe` is allowed; ARCHITECTURE.md lists them with the reason.
const UNSAFE: [&str; 17] = [
    "crates/cli/src/ending.rs",
    "crates/cli/src/memory.rs",
    "crates/cli/src/signals.rs",
    "crates/cli/src/truncation.rs",
    "crates/engine/src/algorithms/lanes.rs",
    "crates/engine/src/algorithms/sweep.rs",
    "crates/engine/tests/allocation.rs",
    "crates/gpu/src/cuda.rs",
    "crates/gpu/src/cuda/graph.rs",
    "crates/gpu/src/cuda/module.rs",
    "crates/gpu/src/device.rs",
    "crates/gpu/src/kernel.rs",
    "crates/gpu/src/memory.rs",
    "crates/gpu/src/simulator.rs",
    "crates/index/src/codec/qmx_simd.rs",
    "crates/index/src/codec/simd.rs",
    "crates/index/src/open/map.rs",
];

/// Files that build scripts include: docs cannot stand there, a plain comment says what they are for.
const INCLUDED: [&str; 1] = ["crates/gpu/cuda/compile.rs"];

/// Names that say nothing of what is inside.
const EMPTY_NAMES: [&str; 5] = ["utils", "common", "helpers", "types", "base"];

/// Lines of a file before its tests.
const MOST_LINES: usize = 500;
/// Lines of a file with its tests, or of a file of tests.
const MOST_LINES_WITH_TESTS: usize = 800;

#[test]
fn every_file_says_what_it_is_for() {
    let header = |file: &TextFile| if INCLUDED.contains(&file.path.as_str()) { "// " } else { "//! " };
    let headless = |file: &TextFile| file.is_rust() && !file.text.starts_with(header(file));
    let findings: Vec<String> = text_files().into_iter().filter(headless).map(|file| file.path).collect();
    assert_none(&findings);
}

#[test]
fn no_file_names_a_path_of_one_machine() {
    // Put together here, so that this file does not name them either.
    let tops = ["work", "farm", "root", "home"].map(|top| format!("/{top}/"));
    let mut findings = Vec::new();
    for file in text_files().into_iter().filter(|file| !file.path.ends_with(".lock")) {
        for (number, line) in (1..).zip(file.text.lines()) {
            if tops.iter().any(|top| line.contains(top.as_str())) {
                findings.push(format!("{}:{number}: {}", file.path, line.trim()));
            }
        }
    }
    assert_none(&findings);
}

#[test]
fn unsafe_code_stands_only_in_the_listed_files() {
    let lift = ["allow(", "expect("].map(|attribute| format!("{attribute}unsafe_code"));
    let mut lifted: Vec<String> = text_files()
        .into_iter()
        .filter(|file| file.is_rust() && lift.iter().any(|attribute| file.text.contains(attribute.as_str())))
        .map(|file| file.path)
        .collect();
    lifted.sort();
    assert_eq!(lifted, UNSAFE);
    let architecture = fs::read_to_string(root().join("ARCHITECTURE.md")).expect("ARCHITECTURE.md");
    for path in UNSAFE {
        assert!(architecture.contains(path), "ARCHITECTURE.md does not list {path}");
    }
}

#[test]
fn nothing_is_left_undone() {
    let stubs = ["todo", "unimplemented"].map(|name| format!("{name}!("));
    let mut findings = Vec::new();
    for file in text_files().into_iter().filter(TextFile::is_rust) {
        for (number, line) in (1..).zip(file.text.lines()) {
            if stubs.iter().any(|stub| line.contains(stub.as_str())) {
                findings.push(format!("{}:{number}: {}", file.path, line.trim()));
            }
        }
    }
    assert_none(&findings);
}

#[test]
fn files_are_short_and_names_say_something() {
    let mut findings = Vec::new();
    for file in text_files().into_iter().filter(|file| file.is_rust() || file.path.ends_with(".cu")) {
        let lines = file.text.lines().count();
        let before_tests = file.text.lines().take_while(|line| !line.starts_with("#[cfg(test)]")).count();
        let is_test = file.path.contains("/tests/") || file.path.ends_with("tests.rs");
        if lines > MOST_LINES_WITH_TESTS || !is_test && before_tests > MOST_LINES {
            findings.push(format!("{}: {before_tests} lines before its tests, {lines} with them", file.path));
        }
        if file.path.split(['/', '.']).any(|name| EMPTY_NAMES.contains(&name)) {
            findings.push(format!("{}: a name that says nothing", file.path));
        }
    }
    assert_none(&findings);
}

#[test]
fn the_changelog_has_a_place_for_the_next_change() {
    let changelog = fs::read_to_string(root().join("CHANGELOG.md")).expect("CHANGELOG.md");
    assert!(changelog.lines().any(|line| line == "## Unreleased"), "CHANGELOG.md has no section Unreleased");
}
