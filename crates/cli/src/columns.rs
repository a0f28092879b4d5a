//! Text in the columns of a terminal: how wide it is, and how it is broken into lines.

use crate::terminal::{Style, printable};
use lanner::answer::Snippet;
use std::io::{self, IsTerminal};
use std::ops::Range;
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

/// The columns of output that does not go to a terminal.
const DEFAULT: usize = 102;
const FEWEST: usize = 20;
const MOST: usize = 300;

/// The columns of standard output, from 20 to 300: those of `COLUMNS` if it is set, else those of the terminal.
pub fn of_stdout() -> usize {
    let set =
        std::env::var("COLUMNS").ok().and_then(|columns| columns.trim().parse().ok()).filter(|&columns| columns > 0);
    let real = || {
        let size = io::stdout().is_terminal().then(|| console::Term::stdout().size_checked()).flatten();
        size.map(|(_, columns)| usize::from(columns)).filter(|&columns| columns > 0)
    };
    set.or_else(real).unwrap_or(DEFAULT).clamp(FEWEST, MOST)
}

/// The columns that text takes: none for a combining mark, two for an ideograph.
pub fn width(text: &str) -> usize {
    characters(text).map(UnicodeWidthStr::width).sum()
}

/// What a reader sees as characters. Terminals do not agree on sequences that would take more than two columns; these
/// come apart.
fn characters(text: &str) -> impl Iterator<Item = &str> {
    text.graphemes(true).flat_map(|grapheme| match grapheme.width() {
        0..=2 => vec![grapheme],
        _ => grapheme.split_inclusive(|_| true).collect(),
    })
}

/// Cuts text to a number of columns, with an ellipsis if anything was cut.
pub fn shortened(text: &str, columns: usize) -> String {
    match width(text) <= columns {
        true => text.to_owned(),
        false => format!("{}…", beginning(text, columns.saturating_sub(1))),
    }
}

/// The beginning of a text that fits in a number of columns.
fn beginning(text: &str, columns: usize) -> &str {
    let mut used = 0;
    let fits = |grapheme: &&str| {
        used += grapheme.width();
        used <= columns
    };
    let length = characters(text).take_while(fits).map(str::len).sum();
    text[..length].trim_end()
}

/// Cuts a passage so that it fits on one line with the ellipses that say where it is cut.
pub fn on_one_line(mut passage: Snippet, columns: usize) -> Snippet {
    let ellipsis = |is_cut| if is_cut { "… ".width() } else { 0 };
    let columns = columns.saturating_sub(ellipsis(passage.is_cut_before));
    if width(&passage.text) + ellipsis(passage.is_cut_after) > columns {
        passage.text.truncate(beginning(&passage.text, columns.saturating_sub(ellipsis(true))).len());
        passage.matches.retain(|found| found.end <= passage.text.len());
        passage.is_cut_after = true;
    }
    passage
}

/// How the words of a passage look that do not match.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Plain {
    /// As other text.
    Text,
    /// As a title.
    Bold,
}

/// Breaks a passage into lines of at most this many columns, at spaces where words are not longer than a line, and highlights its
/// matches.
pub fn lines(passage: &Snippet, columns: usize, style: Style, plain: Plain) -> Vec<String> {
    if passage.text.trim().is_empty() {
        return Vec::new();
    }
    let mut lines = Lines { lines: vec![String::new()], column: 0, columns, style, plain };
    if passage.is_cut_before {
        lines.push_word(&[("…", false)]);
    }
    let mut start = 0;
    for word in passage.text.split(' ') {
        lines.push_word(&pieces(word, start, &passage.matches));
        start += word.len() + 1;
    }
    if passage.is_cut_after {
        lines.push_word(&[("…", false)]);
    }
    lines.lines
}

/// Lines in progress.
struct Lines {
    lines: Vec<String>,
    /// The columns that the last line takes.
    column: usize,
    columns: usize,
    style: Style,
    plain: Plain,
}

impl Lines {
    /// Appends a word, given as pieces that match or do not.
    fn push_word(&mut self, pieces: &[(&str, bool)]) {
        let pieces: Vec<(String, bool)> = pieces.iter().map(|&(text, matches)| (printable(text), matches)).collect();
        let word: usize = pieces.iter().map(|(text, _)| width(text)).sum();
        if self.column > 0 && self.column + 1 + word > self.columns {
            self.break_line();
        } else if self.column > 0 {
            self.last().push(' ');
            self.column += 1;
        }
        for (text, matches) in pieces {
            self.push_piece(&text, matches);
        }
    }

    /// Appends a piece, broken between characters where the line is full.
    fn push_piece(&mut self, mut text: &str, matches: bool) {
        while !text.is_empty() {
            let mut used = self.column;
            let fits = |grapheme: &&str| {
                used += grapheme.width();
                used <= self.columns
            };
            let length: usize = characters(text).take_while(fits).map(str::len).sum();
            // A character that is wider than a line stands alone.
            let first = characters(text).next().map_or(text.len(), str::len);
            let length = if length == 0 && self.column == 0 { first } else { length };
            let (now, later) = text.split_at(length);
            if !now.is_empty() {
                let styled = match (matches, self.plain) {
                    (true, _) => self.style.matched(now),
                    (false, Plain::Bold) => self.style.bold(now),
                    (false, Plain::Text) => now.to_owned(),
                };
                self.last().push_str(&styled);
                self.column += width(now);
            }
            if !later.is_empty() {
                self.break_line();
            }
            text = later;
        }
    }

    fn break_line(&mut self) {
        self.lines.push(String::new());
        self.column = 0;
    }

    fn last(&mut self) -> &mut String {
        self.lines.last_mut().expect("there is a line")
    }
}

/// Cuts the word that begins at byte `start` of a passage into pieces that match and pieces that do not.
fn pieces<'a>(word: &'a str, start: usize, matches: &[Range<usize>]) -> Vec<(&'a str, bool)> {
    let mut pieces = Vec::new();
    let mut rest = 0;
    for found in matches {
        let from = found.start.saturating_sub(start).clamp(rest, word.len());
        let to = found.end.saturating_sub(start).clamp(from, word.len());
        if from < to {
            pieces.push((&word[rest..from], false));
            pieces.push((&word[from..to], true));
            rest = to;
        }
    }
    pieces.push((&word[rest..], false));
    pieces.retain(|(text, _)| !text.is_empty());
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_passage_is_broken_at_spaces_with_its_matches_marked() {
        let text = format!("the falcon {} hunts (falcons) there", "x".repeat(80));
        let at = |word: &str| text.find(word).unwrap()..text.find(word).unwrap() + word.len();
        let matches = vec![at("falcon"), at("falcons")];
        let passage = Snippet { matches, text, is_cut_before: true, is_cut_after: true };
        let expected = [
            format!("… the \x1b[1;33mfalcon\x1b[0m {}", "x".repeat(80)),
            "hunts (\x1b[1;33mfalcons\x1b[0m) there …".to_owned(),
        ];
        assert_eq!(lines(&passage, 96, Style::coloured(), Plain::Text), expected);
        assert!(lines(&Snippet::default(), 96, Style::plain(), Plain::Text).is_empty());
        let bold = lines(&Snippet { is_cut_before: false, ..passage }, 10, Style::coloured(), Plain::Bold);
        assert_eq!(bold[0], "\x1b[1mthe\x1b[0m \x1b[1;33mfalcon\x1b[0m");
    }

    #[test]
    fn wide_and_combining_characters_take_the_columns_that_a_terminal_gives_them() {
        assert_eq!([width("abc"), width("中国"), width("e\u{301}"), width("👩\u{200d}🔬"), width("")], [3, 4, 1, 2, 0]);
        assert_eq!(shortened("中国猎隼", 8), "中国猎隼");
        assert_eq!(shortened("中国猎隼", 7), "中国猎…");
        assert_eq!(shortened("中国猎隼", 6), "中国…");
        assert_eq!(shortened("a e\u{301}e\u{301}", 3), "a…");
        let passage = Snippet { text: "中国猎隼 ab".to_owned(), ..Snippet::default() };
        assert_eq!(lines(&passage, 5, Style::plain(), Plain::Text), ["中国", "猎隼", "ab"]);
        assert_eq!(lines(&passage, 1, Style::plain(), Plain::Text), ["中", "国", "猎", "隼", "a", "b"]);
    }

    #[test]
    fn a_passage_is_cut_to_one_line_with_its_ellipses() {
        let cut = |text: &str, columns, is_cut_before| {
            let passage = Snippet { text: text.to_owned(), is_cut_before, ..Snippet::default() };
            lines(&on_one_line(passage, columns), columns, Style::plain(), Plain::Text)
        };
        assert_eq!(cut("barn owl falcon", 15, false), ["barn owl falcon"]);
        assert_eq!(cut("barn owl falcon", 14, false), ["barn owl fal …"]);
        assert_eq!(cut("barn owl falcon", 15, true), ["… barn owl fa …"]);
        assert_eq!(cut("中国f", 4, false), ["中 …"]);
    }

    proptest! {
        #[test]
        fn no_line_is_wider_than_asked_for_and_no_character_is_lost(
            text in "[a中\u{301}\u{200d}👩 ]{0,60}", columns in 2usize..40,
        ) {
            let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
            let passage = Snippet { text: text.clone(), ..Snippet::default() };
            let lines = lines(&passage, columns, Style::plain(), Plain::Text);
            for line in &lines {
                prop_assert!(width(line) <= columns, "{line:?}");
            }
            prop_assert_eq!(lines.concat().replace(' ', ""), text.replace(' ', ""));
            prop_assert!(width(&shortened(&text, columns)) <= columns);
        }
    }
}
