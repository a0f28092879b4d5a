//! Snippets: a short passage of a text around the words of a query.
//!
//! The index stores no positions, so the text is analyzed again: a word matches if its term is one of the query's, whatever
//! its ending, case or accents.

use lanner_index::text::{Analyzer, Scratch};
use serde::Serialize;
use std::collections::{HashMap, HashSet};
use std::ops::Range;

/// The bytes of a text that are searched for matches.
const LONGEST_TEXT_BYTES: usize = 1 << 20;

/// A passage of a text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Snippet {
    /// The passage, with each run of white space as a single space.
    pub text: String,
    /// The byte ranges of the query's words in `text`.
    pub matches: Vec<Range<usize>>,
    /// Whether the text has more before the passage.
    pub is_cut_before: bool,
    /// Whether the text has more after it.
    pub is_cut_after: bool,
}

/// A word of the text that matches the query.
struct Match {
    bytes: Range<usize>,
    /// The number of its term.
    term: usize,
}

impl Snippet {
    /// Finds the passage of up to about `longest` characters with the most different terms, then the most matches; the
    /// beginning of the text if nothing matches.
    #[doc(hidden)]
    pub fn new(text: &str, terms: &HashSet<String>, analyzer: &Analyzer, longest: usize) -> Snippet {
        let text = &text[..text.floor_char_boundary(LONGEST_TEXT_BYTES)];
        let matches = find_matches(text, terms, analyzer);
        let start = best_start(text, &matches, longest);
        let passage = passage(text, start, longest);
        let mut snippet = Snippet {
            is_cut_before: !text[..passage.start].trim().is_empty(),
            is_cut_after: !text[passage.end..].trim().is_empty(),
            ..Snippet::default()
        };
        let is_inside = |found: &&Match| passage.start <= found.bytes.start && found.bytes.end <= passage.end;
        let mut rest = passage.start;
        for found in joined(matches.iter().filter(is_inside)) {
            snippet.push(&text[rest..found.start]);
            let start = snippet.text.len();
            snippet.push(&text[found.clone()]);
            snippet.matches.push(start..snippet.text.len());
            rest = found.end;
        }
        snippet.push(&text[rest..passage.end]);
        snippet.text.truncate(snippet.text.trim_end().len());
        snippet
    }

    /// Appends text, with each run of white space as one space, and none at the beginning.
    fn push(&mut self, text: &str) {
        for character in text.chars() {
            if !character.is_whitespace() {
                self.text.push(character);
            } else if !self.text.is_empty() && !self.text.ends_with(' ') {
                self.text.push(' ');
            }
        }
    }
}

/// Finds the words whose term is one of the query's, in order.
fn find_matches(text: &str, terms: &HashSet<String>, analyzer: &Analyzer) -> Vec<Match> {
    let mut matches = Vec::new();
    let mut numbers: HashMap<String, usize> = HashMap::new();
    analyzer.analyze_in_place(text, &mut Scratch::default(), &mut |term, bytes| {
        if terms.contains(term) {
            let next = numbers.len();
            let term = *numbers.entry(term.to_owned()).or_insert(next);
            matches.push(Match { bytes: trimmed(text, bytes), term });
        }
    });
    matches
}

/// Strips the punctuation around a word, unless it consists of nothing else.
fn trimmed(text: &str, bytes: Range<usize>) -> Range<usize> {
    let word = &text[bytes.clone()];
    let is_punctuation = |character: char| !character.is_alphanumeric();
    let start = word.len() - word.trim_start_matches(is_punctuation).len();
    let end = word.trim_end_matches(is_punctuation).len();
    if start < end { bytes.start + start..bytes.start + end } else { bytes }
}

/// The bytes of matches in order; those that overlap, as pairs of characters do, become one.
fn joined<'a>(matches: impl Iterator<Item = &'a Match>) -> Vec<Range<usize>> {
    let mut joined: Vec<Range<usize>> = Vec::new();
    for Match { bytes, .. } in matches {
        match joined.last_mut() {
            Some(last) if bytes.start < last.end => last.end = last.end.max(bytes.end),
            _ => joined.push(bytes.clone()),
        }
    }
    joined
}

/// Returns whether a character is an ideograph or kana, which stand for words or syllables by themselves.
fn is_unspaced(character: char) -> bool {
    matches!(character, '\u{3040}'..='\u{30FF}' | '\u{3400}'..='\u{9FFF}' | '\u{F900}'..='\u{FAFF}' | '\u{20000}'..='\u{3FFFF}')
}

/// Returns the start of the best passage, a little before its first match.
fn best_start(text: &str, matches: &[Match], longest: usize) -> usize {
    let mut best = (0, 0);
    let mut first_of_best = None;
    // counts[term]: matches of the term among matches[first..=last], whose span is at most `longest` bytes.
    let mut counts: HashMap<usize, usize> = HashMap::new();
    let mut first = 0;
    for (last, found) in matches.iter().enumerate() {
        *counts.entry(found.term).or_default() += 1;
        while first < last && found.bytes.end - matches[first].bytes.start > longest {
            let leaving = matches[first].term;
            counts.entry(leaving).and_modify(|count| *count -= 1);
            counts.retain(|_, count| *count > 0);
            first += 1;
        }
        let value = (counts.len(), last + 1 - first);
        if value > best {
            (best, first_of_best) = (value, Some(first..last + 1));
        }
    }
    let Some(chosen) = first_of_best else {
        return 0;
    };
    let span = matches[chosen.start].bytes.start..matches[chosen.end - 1].bytes.end;
    let context = longest.saturating_sub(span.len()) / 3;
    // Near the end of the text the passage can start earlier.
    let tail = text.len() - text.char_indices().rev().take(longest).last().map_or(text.len(), |(at, _)| at);
    word_start(text, span.start, context.max((span.start + tail).saturating_sub(text.len())))
}

/// Returns the first start of a word at most `context` bytes before `at`, itself the start of a word.
fn word_start(text: &str, at: usize, context: usize) -> usize {
    let from = text.floor_char_boundary(at.saturating_sub(context));
    if from == 0 {
        return 0;
    }
    let spaces = text[from..at].char_indices().filter(|(_, character)| character.is_whitespace());
    spaces.map(|(i, space)| from + i + space.len_utf8()).next().unwrap_or(at)
}

/// Returns about `longest` characters from `start`, not ending inside a word unless the word is longer than that.
fn passage(text: &str, start: usize, longest: usize) -> Range<usize> {
    let rest = &text[start..];
    let Some((end, next)) = rest.char_indices().nth(longest) else {
        return start..text.len();
    };
    let is_word_end = next.is_whitespace() || is_unspaced(next);
    let end = if is_word_end { end } else { rest[..end].rfind(char::is_whitespace).unwrap_or(end) };
    start..start + end
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn snippet(text: &str, query: &str, analyzer: &str, longest: usize) -> Snippet {
        let analyzer = Analyzer::parse(analyzer).unwrap();
        let terms = analyzer.terms(query).into_iter().collect();
        Snippet::new(text, &terms, &analyzer, longest)
    }

    fn marked(snippet: &Snippet) -> Vec<&str> {
        snippet.matches.iter().map(|range| &snippet.text[range.clone()]).collect()
    }

    #[test]
    fn words_match_by_their_stems_and_without_punctuation() {
        let found = snippet("The falcon (hunting)  hunts;\nFalcons' hunted-down prey.", "hunt falcons", "english", 200);
        assert_eq!(found.text, "The falcon (hunting) hunts; Falcons' hunted-down prey.");
        assert_eq!(marked(&found), ["falcon", "hunting", "hunts", "Falcons", "hunted"]);
        assert!(!found.is_cut_before && !found.is_cut_after);
    }

    #[test]
    fn the_passage_with_the_most_different_terms_is_shown() {
        let filler = "word ".repeat(50);
        let text = format!("{filler}apple apple apple {filler}apple and pear {filler}");
        let found = snippet(&text, "apple pear", "simple", 60);
        assert_eq!(marked(&found), ["apple", "pear"]);
        assert!(found.text.len() <= 60 && found.is_cut_before && found.is_cut_after, "{found:?}");
    }

    #[test]
    fn a_text_that_fits_is_shown_whole() {
        let text = "one two three four five six";
        assert_eq!(snippet(text, "six", "simple", text.len()).text, text);
        assert_eq!(snippet(text, "six", "simple", text.len() - 2).text, "two three four five six");
    }

    #[test]
    fn without_a_match_the_beginning_is_shown() {
        let found = snippet("  one two three", "four", "simple", 9);
        assert_eq!((found.text.as_str(), found.is_cut_before, found.is_cut_after), ("one two", false, true));
        assert_eq!(snippet("", "four", "simple", 9), Snippet::default());
    }

    #[test]
    fn text_without_spaces_is_cut_between_characters() {
        let text = "中国猎隼是一种鸟".repeat(20);
        let found = snippet(&text, "隼", "simple", 10);
        assert!(marked(&found).iter().all(|&word| word == "隼") && !found.matches.is_empty(), "{found:?}");
        assert!(found.text.chars().count() <= 10);
    }

    #[test]
    fn accents_and_endings_of_other_languages_match() {
        let analyzer = "words+lowercase+fold+snowball:german";
        let found = snippet("Die Häuser, die großen \u{2013} und das Haus.", "hauser GROSS", analyzer, 200);
        assert_eq!(marked(&found), ["Häuser", "großen", "Haus"]);
    }

    #[test]
    fn pairs_of_characters_are_marked_as_one_piece() {
        let analyzer = "words+cjk-bigram+lowercase";
        assert_eq!(marked(&snippet("我是中国人。", "中国人", analyzer, 50)), ["中国人"]);
        assert_eq!(marked(&snippet("中国 abc 国人是中国", "中国", analyzer, 50)), ["中国", "中国"]);
    }

    proptest! {
        #[test]
        fn any_text_gives_a_passage_with_matches_inside_it(
            text in "[ab\\s'^-é中カ한\u{1F600}]{0,80}", query in "[ab中カ한 é]{1,6}", longest in 0usize..40,
        ) {
            for analyzer in ["english", "simple", "whitespace", "words+cjk-bigram+lowercase+fold+snowball:french"] {
                let found = snippet(&text, &query, analyzer, longest);
                prop_assert!(found.text.chars().count() <= longest + 1);
                let mut end = 0;
                for range in &found.matches {
                    prop_assert!(range.start >= end && range.start < range.end);
                    prop_assert!(found.text.get(range.clone()).is_some());
                    end = range.end;
                }
            }
        }
    }
}
