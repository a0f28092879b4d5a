//! Output for a terminal: lines on standard error, and colours.

use std::io::{self, IsTerminal, Write};

/// Writes a line to standard error; if that is closed, the line is lost.
pub fn tell(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
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

/// Replaces control characters by spaces, so that the text of a document stays on one line and cannot control the
/// terminal.
pub fn printable(text: &str) -> String {
    text.chars().map(|character| if character.is_control() { ' ' } else { character }).collect()
}

/// Cuts text to `longest` characters, with an ellipsis if anything was cut.
pub fn shortened(text: &str, longest: usize) -> String {
    match text.char_indices().nth(longest) {
        Some((end, _)) => format!("{}…", text[..end].trim_end()),
        None => text.to_owned(),
    }
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
    }

    #[test]
    fn text_is_shortened_at_characters() {
        assert_eq!(shortened("äöü", 3), "äöü");
        assert_eq!(shortened("äö ü", 3), "äö…");
    }
}
