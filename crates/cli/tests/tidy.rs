//! The habits of the project that a machine can keep: order of folders, headers of files, names, paths, licences.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The crates whose modules are ordered: each knows only those before it. The docs of `lib.rs` state the order.
const ORDERED: [&str; 4] = ["crates/index", "crates/gpu", "crates/engine", "crates/bench"];

/// The files in which `unsafe` is allowed; ARCHITECTURE.md lists them with the reason.
const UNSAFE: [&str; 14] = [
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

const LONGEST_FILE_LINES: usize = 800;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the root of the project")
}

/// A file of the project: its path from the root, with `/`, and its text.
struct TextFile {
    path: String,
    text: String,
}

impl TextFile {
    fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// The lines that are not comments, up to the tests at the end, with their numbers.
    fn code(&self) -> impl Iterator<Item = (usize, &str)> {
        let lines = (1..).zip(self.text.lines());
        let is_code = |line: &str| !line.trim_start().starts_with("//");
        lines.take_while(|(_, line)| !line.starts_with("#[cfg(test)]")).filter(move |(_, line)| is_code(line))
    }
}

/// Every text file of the project that is not ignored.
fn text_files() -> Vec<TextFile> {
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
    assert!(files.iter().any(|file| file.path == "crates/cli/tests/tidy.rs"), "the walk misses its own file");
    files
}

/// Fails with every finding, one a line.
fn assert_none(findings: &[String]) {
    assert!(findings.is_empty(), "{} findings:\n{}", findings.len(), findings.join("\n"));
}

/// The modules that the docs of a `lib.rs` list after "Modules in order".
fn order_of(library: &str) -> Vec<&str> {
    let (_, stated) = library.split_once("Modules in order").expect("a paragraph on the order of modules");
    let docs = stated.lines().take_while(|line| !line.starts_with("pub mod") && !line.starts_with("mod"));
    let names = docs.flat_map(|line| line.split('`').skip(1).step_by(2));
    names.filter(|name| *name != "tidy").collect()
}

#[test]
fn a_module_knows_only_those_before_it() {
    let files = text_files();
    let mut findings = Vec::new();
    for folder in ORDERED {
        let sources = format!("{folder}/src/");
        let library = files.iter().find(|file| file.path == format!("{sources}lib.rs")).expect("lib.rs");
        let order = order_of(&library.text);
        for file in files.iter().filter(|file| file.is_rust() && !file.path.ends_with("tests.rs")) {
            let module = file.path.strip_prefix(&sources).and_then(|inside| inside.split(['/', '.']).next());
            let Some(place) = order.iter().position(|name| Some(*name) == module) else {
                continue;
            };
            for (number, line) in file.code() {
                for later in order[place + 1..].iter().filter(|later| names_module(line, later)) {
                    findings.push(format!("{}:{number}: {} must not know {later}", file.path, order[place]));
                }
            }
        }
    }
    assert_none(&findings);
}

/// Whether a line has `crate::MODULE`, not just a longer name that starts so.
fn names_module(line: &str, module: &str) -> bool {
    let wanted = format!("crate::{module}");
    line.match_indices(&wanted).any(|(at, _)| {
        let after = line[at + wanted.len()..].chars().next();
        !after.is_some_and(|character| character.is_alphanumeric() || character == '_')
    })
}

#[test]
fn every_module_of_an_ordered_crate_has_a_place_in_the_order() {
    for folder in ORDERED {
        let library = fs::read_to_string(root().join(folder).join("src/lib.rs")).expect("lib.rs");
        let declared: Vec<&str> = library
            .lines()
            .filter_map(|line| line.strip_prefix("pub mod ").or(line.strip_prefix("mod "))?.strip_suffix(';'))
            .collect();
        assert!(declared.len() > 1, "{folder}/src/lib.rs declares no modules");
        assert_eq!(order_of(&library), declared, "{folder}/src/lib.rs: order in the docs, and of the declarations");
    }
}

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
    for file in text_files().into_iter().filter(TextFile::is_rust) {
        let lines = file.text.lines().count();
        if lines > LONGEST_FILE_LINES {
            findings.push(format!("{}: {lines} lines", file.path));
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

#[test]
fn every_dependency_has_an_allowed_licence() {
    let allowed = allowed_licences();
    let metadata = metadata();
    let resolved = metadata["resolve"]["nodes"].as_array().expect("resolved packages");
    let packages = metadata["packages"].as_array().expect("packages");
    assert!(resolved.len() > 50, "only {} packages are resolved", resolved.len());
    let mut findings = Vec::new();
    for package in packages.iter().filter(|package| resolved.iter().any(|node| node["id"] == package["id"])) {
        let (name, licence) = (&package["name"], package["license"].as_str().unwrap_or("none"));
        if !is_allowed(licence, &allowed) {
            findings.push(format!("{name}: {licence}"));
        }
        let source = package["source"].as_str();
        if source.is_some_and(|source| !source.starts_with("registry+https://github.com/rust-lang/crates.io-index")) {
            findings.push(format!("{name}: not from crates.io"));
        }
    }
    assert_none(&findings);
}

#[test]
fn licence_expressions_are_read_as_spdx_means_them() {
    let allowed: Vec<String> = ["MIT", "Zlib"].map(str::to_owned).into();
    for good in ["MIT", "Unlicense OR MIT", "Unlicense/MIT", "(GPL-3.0 OR MIT) AND Zlib", "A AND B OR MIT"] {
        assert!(is_allowed(good, &allowed), "{good}");
    }
    for bad in ["GPL-3.0", "MIT AND GPL-3.0", "none", "MIT WITH some-exception", "A OR B AND MIT", "(MIT"] {
        assert!(!is_allowed(bad, &allowed), "{bad}");
    }
}

/// The list `allow` of deny.toml.
fn allowed_licences() -> Vec<String> {
    let text = fs::read_to_string(root().join("deny.toml")).expect("deny.toml");
    let list = text.split_once("allow = [").and_then(|(_, rest)| rest.split_once(']')).expect("a list of licences").0;
    let allowed: Vec<String> = list.split('"').skip(1).step_by(2).map(str::to_owned).collect();
    assert!(!allowed.is_empty(), "deny.toml allows no licence");
    allowed
}

/// What cargo knows of the packages that are built on this platform.
fn metadata() -> serde_json::Value {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let version = Command::new("rustc").arg("-vV").output().expect("rustc");
    let version = String::from_utf8_lossy(&version.stdout).into_owned();
    let host = version.lines().find_map(|line| line.strip_prefix("host: ")).expect("the platform");
    let arguments = ["metadata", "--format-version", "1", "--locked", "--filter-platform", host];
    let output = Command::new(cargo).args(arguments).current_dir(root()).output().expect("cargo metadata");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("the output of cargo metadata")
}

/// Whether a licence expression can be met with allowed licences alone. `/` is the old way to write OR.
fn is_allowed(expression: &str, allowed: &[String]) -> bool {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut rest = &words[..];
    either(&mut rest, allowed) == Some(true) && rest.is_empty()
}

fn either(words: &mut &[&str], allowed: &[String]) -> Option<bool> {
    let mut is_met = both(words, allowed)?;
    while let ["OR", after @ ..] = words {
        *words = after;
        is_met |= both(words, allowed)?;
    }
    Some(is_met)
}

fn both(words: &mut &[&str], allowed: &[String]) -> Option<bool> {
    let mut is_met = single(words, allowed)?;
    while let ["AND", after @ ..] = words {
        *words = after;
        is_met &= single(words, allowed)?;
    }
    Some(is_met)
}

fn single(words: &mut &[&str], allowed: &[String]) -> Option<bool> {
    match words {
        ["(", after @ ..] => {
            *words = after;
            let is_met = either(words, allowed)?;
            let [")", after @ ..] = words else {
                return None;
            };
            *words = after;
            Some(is_met)
        }
        [name, "WITH", exception, after @ ..] => {
            *words = after;
            let joined = format!("{name} WITH {exception}");
            Some(allowed.contains(&joined))
        }
        [name, after @ ..] => {
            *words = after;
            Some(allowed.iter().any(|known| known == name))
        }
        [] => None,
    }
}
