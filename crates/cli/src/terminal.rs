//! Output for a terminal: lines on standard error, colours, and text that cannot control it.

use std::io::{self, IsTerminal, Write};
use std::path::Path;

/// Writes a line to standard error, as [`printable`] makes it; if that is closed, the line is lost.
pub fn tell(line: &str) {
    let _ = writeln!(io::stderr(), "{}", printable(line));
}

/// Writes a note on a query to standard error.
pub fn note(line: &str) {
    tell(&format!("note: {line}"));
}

/// Prints what is wrong with a command line, or the help that was asked for.
pub fn print_usage(error: &clap::Error) -> io::Result<()> {
    let message = error.render().to_string();
    let harmless = printable_lines(&message);
    if harmless == message {
        return error.print();
    }
    // The message quotes an argument that would control the terminal: it loses its colours.
    write!(io::stderr(), "{harmless}")
}

/// How text is highlighted: with colours in a terminal, not at all elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    is_coloured: bool,
}

impl Style {
    /// Returns the style of standard output: plain also with `NO_COLOR` (<https://no-color.org>) or a dumb terminal.
    pub fn of_stdout() -> Style {
        let has = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let is_dumb = std::env::var_os("TERM").is_some_and(|terminal| terminal == "dumb");
        Style { is_coloured: io::stdout().is_terminal() && !has("NO_COLOR") && !is_dumb }
    }

    /// Returns a style without colours.
    #[cfg(test)]
    pub fn plain() -> Style {
        Style { is_coloured: false }
    }

    /// Returns a style with colours.
    #[cfg(test)]
    pub fn coloured() -> Style {
        Style { is_coloured: true }
    }

    /// Highlights a word of the query.
    pub fn matched(self, text: &str) -> String {
        self.marked("1;33", text)
    }

    /// Highlights a title or heading.
    pub fn bold(self, text: &str) -> String {
        self.marked("1", text)
    }

    /// Dims secondary text.
    pub fn faint(self, text: &str) -> String {
        self.marked("2", text)
    }

    /// Highlights an id.
    pub fn id(self, text: &str) -> String {
        self.marked("36", text)
    }

    fn marked(self, code: &str, text: &str) -> String {
        if self.is_coloured { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

/// Replaces characters that control a terminal by spaces, so that names and the text of documents stay on one line,
/// set no colours or titles, and do not change the direction in which the rest of the line is read.
pub fn printable(text: &str) -> String {
    text.chars().map(|character| if controls(character) { ' ' } else { character }).collect()
}

/// Does the same with a path.
pub fn printable_path(path: &Path) -> String {
    printable(&path.display().to_string())
}

/// Does the same with each line of a text whose line ends are its own.
pub fn printable_lines(text: &str) -> String {
    text.split_inclusive('\n')
        .map(|line| line.strip_suffix('\n').map_or_else(|| printable(line), |line| printable(line) + "\n"))
        .collect()
}

/// Whether a character is a control character of ASCII or Latin-1, ends a line, or belongs to the bidirectional algorithm of Unicode
/// (UAX #9): marks, embeddings, overrides and isolates.
fn controls(character: char) -> bool {
    let is_bidi =
        matches!(character, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{206f}');
    character.is_control() || is_bidi || matches!(character, '\u{2028}' | '\u{2029}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_stand_around_text_in_a_terminal_only() {
        assert_eq!(Style::plain().matched("word"), "word");
        assert_eq!(Style::coloured().matched("word"), "\x1b[1;33mword\x1b[0m");
    }

    #[test]
    fn a_document_cannot_steer_the_terminal() {
        assert_eq!(printable("a\x1b[2J\nb\u{9b}c"), "a [2J b c");
        assert_eq!(printable("a\u{202e}b\u{2066}c\u{2069}\u{200f}\u{61c}d\u{2028}e\u{7f}"), "a b c   d e ");
        assert_eq!(printable("e\u{301} \u{200d}é中"), "e\u{301} \u{200d}é中", "marks and joiners are text");
        assert_eq!(printable_lines("a\x1b\n\tb\n\nc"), "a \n b\n\nc");
    }
}
