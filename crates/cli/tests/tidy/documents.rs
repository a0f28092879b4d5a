//! Documents speak of things that exist: paths, commands, flags, items and names in backticks, links, and files named
//! in prose or comments.

use crate::files::{TextFile, assert_none, text_files};
use crate::programs::Program;
use std::collections::HashSet;

/// What is in backticks and not in the tree, with the reason.
const EXCEPTIONS: [(&str, &str); 13] = [
    ("--fmad=false", "a flag of nvcc"),
    ("building/", "a folder of an index that is being written"),
    ("cargo-fuzz", "a tool that is not needed"),
    ("compute-sanitizer", "a tool of the CUDA toolkit"),
    ("cuCtxCreate", "a function of the driver that is not called"),
    ("cuCtxDestroy", "a function of the driver that is not called"),
    ("flock", "a system call, made by the standard library"),
    ("lanner.toml", "a file of the user"),
    ("manifest-GGGGGGGG", "a file of an index, by its generation"),
    ("racecheck", "a tool of compute-sanitizer"),
    ("segment-GGGGGGGG", "a file of an index, by its generation"),
    ("synccheck", "a tool of compute-sanitizer"),
    ("xxhash-rust", "a crate that was not chosen"),
];

/// Endings of names that are paths.
const ENDINGS: [&str; 13] =
    [".rs", ".cu", ".cuh", ".h", ".cpp", ".md", ".toml", ".json", ".txt", ".py", ".sh", ".ptx", ".lock"];

/// A piece of a document, with the line where it starts.
#[derive(Clone)]
struct Span {
    line: usize,
    text: String,
}

/// The text of a document outside its code blocks, and the commands inside them.
struct Prose {
    text: String,
    commands: Vec<Span>,
}

impl Prose {
    /// Lines of code blocks become empty, so that lines keep their numbers.
    fn new(document: &str) -> Prose {
        let (mut text, mut commands, mut is_code) = (String::new(), Vec::new(), false);
        for (line, content) in (1..).zip(document.lines()) {
            let content = content.trim_end();
            if content.trim_start().starts_with("```") {
                is_code = !is_code;
            } else if is_code {
                let command = content.trim_start().trim_start_matches("$ ");
                commands.push(Span { line, text: command.trim_end_matches('\\').to_owned() });
            } else {
                text.push_str(content);
            }
            text.push('\n');
        }
        commands.retain(|command| is_command(&command.text));
        Prose { text, commands }
    }

    /// What stands in backticks; a span ends with its paragraph.
    fn spans(&self) -> Vec<Span> {
        let mut spans = Vec::new();
        let mut line = 1;
        for paragraph in self.text.split("\n\n") {
            let mut at = line;
            for (number, piece) in paragraph.split('`').enumerate() {
                if number % 2 == 1 {
                    let text = piece.split_whitespace().collect::<Vec<_>>().join(" ");
                    spans.push(Span { line: at, text });
                }
                at += piece.matches('\n').count();
            }
            line += paragraph.matches('\n').count() + 2;
        }
        spans
    }

    /// Names of files outside backticks, and targets of links.
    fn files(&self) -> Vec<Span> {
        let mut files = Vec::new();
        for (line, text) in (1..).zip(self.text.lines()) {
            let plain: Vec<&str> = text.split('`').step_by(2).collect();
            files.extend(files_named(&plain.join(" ")).map(|file| Span { line, text: file.to_owned() }));
        }
        files
    }
}

fn is_command(text: &str) -> bool {
    let first = text.split_whitespace().find(|word| !is_assignment(word));
    first.is_some_and(|word| matches!(word, "lanner" | "lanner-bench" | "cargo" | "./check" | "fuzz/run"))
}

/// Whether a word sets a variable of the environment.
fn is_assignment(word: &str) -> bool {
    let name = word.split_once('=').map(|(name, _)| name);
    name.is_some_and(|name| name.chars().all(|character| character.is_ascii_uppercase() || character == '_'))
}

/// The words of a text that name a file of the project.
fn files_named(text: &str) -> impl Iterator<Item = &str> {
    let is_part = |character: char| character.is_ascii_alphanumeric() || "_./*-:".contains(character);
    let words = text.split(move |character| !is_part(character)).map(|word| word.trim_end_matches(['.', ':', '-']));
    let is_file = |word: &str| [".rs", ".cu", ".md"].iter().any(|ending| word.len() > 3 && word.ends_with(ending));
    words.filter(move |word| is_file(word) && !word.contains("://") && !word.starts_with('.'))
}

/// What documents may speak of.
struct Project {
    paths: Vec<String>,
    /// The words of each source file, and of all paths.
    words: Vec<HashSet<String>>,
    sources: Vec<TextFile>,
    ignored: Vec<String>,
    lanner: Program,
    bench: Program,
}

impl Project {
    fn new(files: Vec<TextFile>) -> Project {
        let mut paths: Vec<String> = Vec::new();
        for file in &files {
            let ends = file.path.match_indices('/').map(|(end, _)| end).chain([file.path.len()]);
            paths.extend(ends.map(|end| file.path[..end].to_owned()));
        }
        paths.sort();
        paths.dedup();
        let ignored = files.iter().find(|file| file.path == ".gitignore").expect(".gitignore");
        let ignored = ignored.text.lines().map(|line| line.trim_matches('/').to_owned()).collect();
        // This test names what does not exist.
        let is_source =
            |file: &TextFile| !file.path.ends_with(".md") && !file.path.starts_with("crates/cli/tests/tidy");
        let sources: Vec<TextFile> = files.into_iter().filter(is_source).collect();
        let words = sources.iter().map(|file| words_of(&file.text)).chain([words_of(&paths.join(" "))]).collect();
        let (lanner, bench) = (Program::lanner(), Program::bench(&sources));
        Project { paths, words, sources, ignored, lanner, bench }
    }

    /// What is wrong with a piece in backticks or a command.
    fn problem(&self, text: &str) -> Option<String> {
        if EXCEPTIONS.iter().any(|(known, _)| *known == text) {
            return None;
        }
        let (set, words): (Vec<&str>, Vec<&str>) = text.split_whitespace().partition(|word| is_assignment(word));
        let unknown =
            set.into_iter().map(|word| word.split('=').next().unwrap_or(word)).find(|name| !self.has_item(name));
        if let Some(name) = unknown {
            return Some(format!("nothing reads the variable {name}"));
        }
        match words[..] {
            [] => None,
            ["lanner", ref arguments @ ..] => self.lanner.problem(arguments),
            ["lanner-bench", ref arguments @ ..] => self.bench.problem(arguments),
            ["cargo", ref arguments @ ..] => self.cargo_problem(arguments),
            [flag, ..] if flag.starts_with("--") => self.flag_problem(flag),
            [path, ref rest @ ..] if is_path(path) && rest.iter().all(|word| is_argument(word)) => {
                self.path_problem(path)
            }
            [word] => self.word_problem(word),
            // A formula, or a phrase.
            _ => None,
        }
    }

    fn flag_problem(&self, flag: &str) -> Option<String> {
        let is_known = self.lanner.has_flag(flag) || self.bench.has_flag(flag);
        (!is_known).then(|| "no program has this flag".to_owned())
    }

    /// Packages and test targets that a call of cargo names.
    fn cargo_problem(&self, arguments: &[&str]) -> Option<String> {
        let dashes = arguments.iter().position(|word| *word == "--");
        if let (Some("run"), Some(dashes)) = (arguments.first().copied(), dashes) {
            let is_bench = arguments[..dashes].contains(&"lanner-bench");
            let program = if is_bench { &self.bench } else { &self.lanner };
            return program.problem(&arguments[dashes + 1..]);
        }
        arguments.windows(2).find_map(|pair| match *pair {
            ["-p" | "--package", name] => self.package_problem(name),
            ["--test", name] => {
                let targets = [format!("tests/{name}.rs"), format!("tests/{name}/main.rs")];
                let is_known = targets.iter().any(|target| self.has_path(target));
                (!is_known).then(|| format!("there is no test {name}"))
            }
            _ => None,
        })
    }

    fn package_problem(&self, name: &str) -> Option<String> {
        let line = format!("name = \"{name}\"");
        let mut manifests = self.sources.iter().filter(|file| file.path.ends_with("Cargo.toml"));
        let is_known = manifests.any(|manifest| manifest.text.lines().any(|found| found == line));
        (!is_known).then(|| format!("there is no package {name}"))
    }

    fn path_problem(&self, path: &str) -> Option<String> {
        (!self.has_path(path)).then(|| "there is no such file or folder".to_owned())
    }

    fn word_problem(&self, word: &str) -> Option<String> {
        let word = word.trim_end_matches("()").trim_end_matches('!');
        let is_item = |text: &str| text.chars().all(|character| character.is_ascii_alphanumeric() || character == '_');
        if word.len() > 2 && word.starts_with('_') && is_item(word) {
            return (!self.has_ending(word)).then(|| "no name outside tests ends so".to_owned());
        }
        if word.len() < 3 || word.starts_with(|character: char| !character.is_ascii_alphabetic()) {
            return None;
        }
        if word.split("::").all(is_item) {
            return (!self.has_item(word)).then(|| "no source has this name".to_owned());
        }
        if word.split('-').all(is_item) {
            let is_known = self.sources.iter().any(|file| file.text.contains(word));
            return (!is_known).then(|| "no source has this name".to_owned());
        }
        None
    }

    /// Whether the path is that of a file or folder, or the end of one; `*` and a word in capitals stand for any name.
    /// What git ignores is made by a command.
    fn has_path(&self, path: &str) -> bool {
        let path = path.trim_start_matches("./").trim_end_matches('/');
        let is_ignored = |ignored: &String| path == ignored || path.starts_with(&format!("{ignored}/"));
        if self.ignored.iter().any(is_ignored) {
            return true;
        }
        let wanted: Vec<&str> = path.split('/').collect();
        self.paths.iter().any(|path| {
            let found: Vec<&str> = path.split('/').collect();
            let end = found.len().checked_sub(wanted.len()).map(|start| &found[start..]);
            end.is_some_and(|end| end.iter().zip(&wanted).all(|(found, wanted)| is_match(found, wanted)))
        })
    }

    /// Whether a name in the code ends so. Names of tests do not count: they are sentences, and end with any word.
    fn has_ending(&self, ending: &str) -> bool {
        let is_code = |file: &TextFile| [".rs", ".cu", ".h"].iter().any(|ending| file.path.ends_with(ending));
        let is_test = |file: &TextFile| file.path.contains("/tests/") || file.path.ends_with("tests.rs");
        let is_read = |file: &&TextFile| is_code(file) && !is_test(file);
        let mut lines = self.sources.iter().filter(is_read).flat_map(TextFile::code);
        lines.any(|(_, line)| names_in(line).any(|name| name.ends_with(ending)))
    }

    /// Whether one source file has all parts of the name.
    fn has_item(&self, name: &str) -> bool {
        self.words.iter().any(|words| name.split("::").all(|part| words.contains(part)))
    }
}

fn words_of(text: &str) -> HashSet<String> {
    names_in(text).map(str::to_owned).collect()
}

fn names_in(text: &str) -> impl Iterator<Item = &str> {
    text.split(|character: char| !character.is_ascii_alphanumeric() && character != '_')
}

fn is_path(word: &str) -> bool {
    let is_name = word.starts_with(|character: char| character.is_ascii_alphanumeric() || character == '.');
    let has_ending = ENDINGS.iter().any(|ending| word.len() > ending.len() && word.ends_with(ending));
    is_name && (has_ending || word.contains('/'))
}

/// Whether a word after a path makes it a command rather than a formula.
fn is_argument(word: &str) -> bool {
    word.starts_with('-')
        || word.chars().all(|character| character.is_ascii_alphanumeric() || "_-.".contains(character))
}

/// Whether a part of a path matches one with a placeholder.
fn is_match(found: &str, wanted: &str) -> bool {
    let wanted = wanted.replace("NAME", "*");
    match wanted.split_once('*') {
        Some((start, end)) => {
            found.len() >= start.len() + end.len() && found.starts_with(start) && found.ends_with(end)
        }
        None => found == wanted,
    }
}

fn is_document(file: &TextFile) -> bool {
    let is_page = file.path.ends_with(".md") && (file.path.starts_with("docs/") || !file.path.contains('/'));
    // Generated from results, or about versions that are gone.
    is_page && !file.path.starts_with("docs/benchmarks/") && file.path != "CHANGELOG.md"
}

#[test]
fn what_documents_name_exists() {
    let project = Project::new(text_files());
    let mut findings = Vec::new();
    for file in text_files().iter().filter(|file| is_document(file)) {
        let prose = Prose::new(&file.text);
        let named = prose.spans().into_iter().chain(prose.commands.iter().cloned());
        let problems = named.filter_map(|span| Some((project.problem(&span.text)?, span)));
        let missing = prose.files().into_iter().filter_map(|span| Some((project.path_problem(&span.text)?, span)));
        for (problem, span) in problems.chain(missing) {
            findings.push(format!("{}:{}: `{}`: {problem}", file.path, span.line, span.text));
        }
    }
    assert_none(&findings);
}

#[test]
fn files_that_comments_name_exist() {
    let project = Project::new(text_files());
    let mut findings = Vec::new();
    for file in &project.sources {
        for (line, comment) in file.comments() {
            for name in files_named(comment).filter(|name| !project.has_path(name)) {
                findings.push(format!("{}:{line}: {name}: there is no such file", file.path));
            }
        }
    }
    assert_none(&findings);
}

#[test]
fn what_does_not_exist_is_found() {
    let project = Project::new(text_files());
    for good in [
        "crates/engine/src/lib.rs",
        "lib.rs",
        "tests/golden/",
        "crates/cli/src/commands/NAME.rs",
        "target/release/anything",
        "lanner search --mode and",
        "lanner-bench run gpu",
        "cargo test -p lanner --test agreement",
        "LANNER_STRICT=1 ./check",
        "--executor",
        "CodecName::ALL",
        "assert_eq!",
        "_single",
        "__syncwarp",
        "tf / (tf + norm)",
    ] {
        assert_eq!(project.problem(good), None, "{good}");
    }
    for bad in [
        "crates/engine/src/nothing.rs",
        "nothing.rs",
        "golden/nothing/",
        "lanner serve",
        "lanner search --nothing",
        "lanner-bench nothing",
        "cargo test -p lanner --test nothing_at_all",
        "LANNER_NOTHING=1 ./check",
        "--nothing",
        "CodecName::NothingAtAll",
        "a_test_that_is_not_there",
        "no-such-suite-anywhere",
        "_nowhere",
    ] {
        assert!(project.problem(bad).is_some(), "{bad}");
    }
    let prose = Prose::new("See a.md and `b\nc`.\n\n```text\nlanner verify\n$ cargo test\nother\n```\nSee `d`.");
    let found = |spans: Vec<Span>| spans.into_iter().map(|span| (span.line, span.text)).collect::<Vec<_>>();
    assert_eq!(found(prose.spans()), [(1, "b c".to_owned()), (9, "d".to_owned())]);
    assert_eq!(found(prose.files()), [(1, "a.md".to_owned())]);
    assert_eq!(found(prose.commands), [(5, "lanner verify".to_owned()), (6, "cargo test".to_owned())]);
}
