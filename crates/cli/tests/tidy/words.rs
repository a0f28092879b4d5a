//! One word for one thing: the phrases that the glossary replaces are in no document, and in no comment, name or
//! message of the sources.

use crate::files::{TextFile, assert_none, text_files};

/// What is not said, and what is said instead.
const BANNED: [(&str, &str); 14] = [
    ("so many", "a number, or a noun: at least 16 lists, n threads"),
    ("the processor", "the CPU"),
    ("a processor", "the CPU, or an SM"),
    ("graphics processor", "the GPU"),
    ("parcel", "upload plan"),
    ("parcels", "upload plans"),
    ("room", "capacity, memory, or scratch"),
    ("rooms", "scratch buffers"),
    ("ground", "context"),
    ("course", "step run"),
    ("likewise", "say it again, or use a list"),
    ("in vain", "without effect, or unnecessarily"),
    ("whoever", "the noun"),
    ("what is there", "the noun"),
];

/// Where one of the words means something else.
const EXCEPTIONS: [(&str, &str); 2] = [("ground", "close to the ground"), ("course", "of course")];

/// The comments of a file, or all of a document or a Rust file, as one line, and where in it each line of the file
/// starts. Names are read as words: `next_room` is "next room".
struct Text {
    joined: String,
    starts: Vec<(usize, usize)>,
}

impl Text {
    fn new(file: &TextFile) -> Text {
        let mut text = Text { joined: String::new(), starts: Vec::new() };
        if file.is_rust() {
            let lines = (1..).zip(file.text.lines());
            lines.for_each(|(number, line)| text.push(number, line.trim_start().trim_start_matches(['/', '!'])));
        } else {
            file.comments().for_each(|(number, comment)| text.push(number, comment));
        }
        text
    }

    fn push(&mut self, number: usize, line: &str) {
        self.starts.push((self.joined.len(), number));
        self.joined.push_str(&line.trim().to_lowercase().replace('_', " "));
        self.joined.push(' ');
    }

    /// The lines where the phrase stands as words of its own.
    fn lines_with(&self, phrase: &str) -> Vec<usize> {
        let is_whole = |at: &usize| {
            let (before, after) = (&self.joined[..*at], &self.joined[*at + phrase.len()..]);
            !before.ends_with(char::is_alphanumeric) && !after.starts_with(char::is_alphanumeric)
        };
        let is_exception = |at: &usize| {
            let here = |exception: &str| {
                self.joined.match_indices(exception).any(|(start, _)| (start..start + exception.len()).contains(at))
            };
            EXCEPTIONS.iter().any(|(word, exception)| *word == phrase && here(exception))
        };
        let found = self.joined.match_indices(phrase).map(|(at, _)| at);
        found.filter(is_whole).filter(|at| !is_exception(at)).map(|at| self.line_of(at)).collect()
    }

    fn line_of(&self, at: usize) -> usize {
        let next = self.starts.partition_point(|(start, _)| *start <= at);
        self.starts[next - 1].1
    }
}

#[test]
fn sources_and_documents_use_the_words_of_the_glossary() {
    let mut findings = Vec::new();
    // The report is made from results, and this file has the list.
    let is_read = |file: &&TextFile| file.path != "docs/benchmarks/report.md" && !file.path.ends_with("tidy/words.rs");
    for file in text_files().iter().filter(is_read) {
        let text = Text::new(file);
        for (phrase, instead) in BANNED {
            let lines = text.lines_with(phrase);
            findings.extend(lines.iter().map(|line| format!("{}:{line}: \"{phrase}\": {instead}", file.path)));
        }
    }
    assert_none(&findings);
}

#[test]
fn phrases_are_found_across_lines_and_as_whole_words() {
    let source = "//! With so\n//! many lists.\nlet roomy = 1; // mushrooms, room\n/// Of course close to the ground.\n\
                  fn a_room_is_freed() {\n    panic!(\"no room\");\n";
    let text = Text::new(&TextFile { path: "a.rs".to_owned(), text: source.to_owned() });
    assert_eq!(text.lines_with("so many"), [1]);
    assert_eq!(text.lines_with("room"), [3, 5, 6]);
    assert!(text.lines_with("course").is_empty() && text.lines_with("ground").is_empty());
}
