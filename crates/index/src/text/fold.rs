//! The step `fold`: letters without their accents, and other characters as ASCII writes them, as Lucene's
//! `ASCIIFoldingFilter` does it.
//!
//! `é` becomes `e`, `ß` becomes `ss`, `Æ` becomes `AE`. Characters are folded one by one, so an accent that is a character
//! of its own (U+0301 after `e`) stays: such text has to be normalized to NFC before it is indexed.

use super::fold_table::FOLDED;
use std::sync::LazyLock;

/// The characters that are folded, sorted, with their replacements.
static SORTED: LazyLock<Vec<(char, &'static str)>> = LazyLock::new(|| {
    let rows =
        FOLDED.iter().flat_map(|(replacement, folded)| folded.chars().map(|character| (character, *replacement)));
    let mut sorted: Vec<(char, &'static str)> = rows.collect();
    sorted.sort_unstable();
    sorted
});

/// Folds all characters of `term`.
pub fn fold(term: &mut String) {
    if term.is_ascii() {
        return;
    }
    // Append the folded term, then remove the original: no second buffer.
    let length = term.len();
    let mut position = 0;
    while let Some(character) = term[position..length].chars().next() {
        position += character.len_utf8();
        match replacement(character) {
            Some(replacement) => term.push_str(replacement),
            None => term.push(character),
        }
    }
    term.drain(..length);
}

fn replacement(character: char) -> Option<&'static str> {
    if character.is_ascii() {
        return None;
    }
    let sorted = &*SORTED;
    let found = sorted.binary_search_by_key(&character, |(character, _)| *character).ok()?;
    Some(sorted[found].1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folded(term: &str) -> String {
        let mut term = term.to_owned();
        fold(&mut term);
        term
    }

    #[test]
    fn accents_go_and_letters_of_two_become_two() {
        assert_eq!(folded("\u{C9}lan"), "Elan");
        assert_eq!(folded("stra\u{DF}e"), "strasse");
        assert_eq!(folded("\u{153}uvre na\u{EF}ve \u{141}\u{F3}d\u{17A}"), "oeuvre naive Lodz");
        assert_eq!(folded("l\u{2019}\u{E9}t\u{E9}"), "l'ete");
    }

    #[test]
    fn other_scripts_and_lone_marks_stay() {
        for term in ["", "cat", "\u{43F}\u{440}\u{438}", "\u{4E2D}\u{56FD}", "e\u{301}", "\u{3B5}\u{3AC}", "\u{1F600}"]
        {
            assert_eq!(folded(term), term);
        }
    }

    #[test]
    fn no_character_is_in_the_table_twice_and_replacements_are_ascii() {
        assert!(SORTED.windows(2).all(|pair| pair[0].0 < pair[1].0));
        assert!(SORTED.iter().all(|(character, replacement)| !character.is_ascii() && replacement.is_ascii()));
    }
}
