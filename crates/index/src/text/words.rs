//! Splits text into the words of Unicode Standard Annex #29, at memory speed where the text is ASCII.
//!
//! For ASCII the rules of the annex reduce to one table: letters, digits and `_` stick together (WB5, WB8-10, WB13a-b),
//! and a single `.` `'` `:` between letters (WB6-7) or `.` `'` `,` `;` between digits (WB11-12) does not end a word.
//! Where a decision depends on a character beyond ASCII, the region around it goes to [`unicode`](super::unicode). A
//! region starts at a position that is a boundary whatever follows, and ends before an ASCII character that no rule
//! joins to the one before it. Splitting region by region therefore gives the words of the whole text.
//!
//! `unicode-segmentation` alone would do, and is what the tests compare with; the table is here for speed.

use super::unicode;

/// The most characters of a term; longer words are cut, as in Lucene.
pub const LONGEST_TERM_CHARS: usize = 255;

/// The most bytes of a term in UTF-8.
pub const LONGEST_TERM_BYTES: usize = 4 * LONGEST_TERM_CHARS;

const LETTER: u8 = 1;
const DIGIT: u8 = 2;
const CONNECTOR: u8 = 4;
const WORD: u8 = LETTER | DIGIT | CONNECTOR;
/// Joins its two neighbours if both have the same class: this one shifted right by `MIDDLE_SHIFT`.
const LETTER_MIDDLE: u8 = LETTER << MIDDLE_SHIFT;
const DIGIT_MIDDLE: u8 = DIGIT << MIDDLE_SHIFT;
const MIDDLE_SHIFT: u8 = 3;
/// The double quote joins Hebrew letters: it joins nothing in ASCII, but a region must not end before it.
const QUOTE: u8 = 32;
const BEYOND_ASCII: u8 = 64;

/// The class of each byte; 0 for a character that is never part of a word.
static CLASSES: [u8; 256] = {
    let mut classes = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        classes[byte] = match byte as u8 {
            b'a'..=b'z' | b'A'..=b'Z' => LETTER,
            b'0'..=b'9' => DIGIT,
            b'_' => CONNECTOR,
            b':' => LETTER_MIDDLE,
            b',' | b';' => DIGIT_MIDDLE,
            b'.' | b'\'' => LETTER_MIDDLE | DIGIT_MIDDLE,
            b'"' => QUOTE,
            0x80.. => BEYOND_ASCII,
            _ => 0,
        };
        byte += 1;
    }
    classes
};

/// A word, as a slice of the text.
pub struct Word<'text> {
    pub text: &'text str,
    pub is_ascii: bool,
}

/// Calls `sink` with each word of `text` in order; white space, punctuation and lone marks are not words.
pub fn split_words(text: &str, sink: &mut impl FnMut(Word)) {
    let bytes = text.as_bytes();
    let mut position = 0;
    while let Some(skipped) =
        bytes[position..].iter().position(|&byte| CLASSES[byte as usize] & (WORD | BEYOND_ASCII) != 0)
    {
        let start = position + skipped;
        position = match ascii_word_end(bytes, start) {
            Some(end) => {
                send_ascii_word(&text[start..end], sink);
                end
            }
            None => {
                // A region that starts beyond ASCII takes in the character before it: `#` and `*` begin keycap emoji.
                let start = start - usize::from(start > 0 && bytes[start] >= 0x80);
                let end = region_end(bytes, start + 1);
                unicode::split_words(&text[start..end], sink);
                end
            }
        };
    }
}

/// The end of the word that starts at `start`; `None` if it depends on a character beyond ASCII.
#[inline]
fn ascii_word_end(bytes: &[u8], start: usize) -> Option<usize> {
    let class_at = |position: usize| bytes.get(position).map_or(0, |&byte| CLASSES[byte as usize]);
    let mut end = start;
    loop {
        end = run_end(bytes, end);
        let class = class_at(end);
        if class == 0 {
            return Some(end);
        }
        if class == BEYOND_ASCII {
            return None;
        }
        let after = class_at(end + 1);
        if after == BEYOND_ASCII {
            return None;
        }
        if class_at(end - 1) & after & WORD & (class >> MIDDLE_SHIFT) & (LETTER | DIGIT) == 0 {
            return Some(end);
        }
        end += 1;
    }
}

/// The end of the run of letters, digits and `_` that starts at `position`.
#[inline]
fn run_end(bytes: &[u8], position: usize) -> usize {
    let mut end = position;
    while let Some(lanes) = bytes.get(end..).and_then(|rest| rest.first_chunk()) {
        let run = run_length(u64::from_le_bytes(*lanes));
        end += run;
        if run < 8 {
            return end;
        }
    }
    while bytes.get(end).is_some_and(|&byte| CLASSES[byte as usize] & WORD != 0) {
        end += 1;
    }
    end
}

/// Counts the bytes, from the lowest on, that are letters, digits or `_` without interruption. All eight are tested at
/// once: a branch for each byte would be mispredicted at the end of every word.
#[inline]
fn run_length(bytes: u64) -> usize {
    const HIGH_BITS: u64 = in_every_lane(0x80);
    const fn in_every_lane(byte: u8) -> u64 {
        u64::from_ne_bytes([byte; 8])
    }
    // Sets the high bit of each lane whose byte is in `first..=last`; other bits are undefined. No lane carries into
    // the next, since all bytes are below 0x80.
    const fn within(lanes: u64, first: u8, last: u8) -> u64 {
        (lanes + in_every_lane(0x80 - first)) & !(lanes + in_every_lane(0x7F - last))
    }
    let ascii = bytes & !HIGH_BITS;
    let in_run =
        within(ascii | in_every_lane(0x20), b'a', b'z') | within(ascii, b'0', b'9') | within(ascii, b'_', b'_');
    let outside = (!in_run | bytes) & HIGH_BITS;
    outside.trailing_zeros() as usize / 8
}

fn region_end(bytes: &[u8], from: usize) -> usize {
    bytes[from..].iter().position(|&byte| CLASSES[byte as usize] == 0).map_or(bytes.len(), |distance| from + distance)
}

#[inline]
fn send_ascii_word(word: &str, sink: &mut impl FnMut(Word)) {
    if word.len() > LONGEST_TERM_CHARS {
        unicode::cut_long_word(word, sink);
    } else if !word.starts_with('_') || word.bytes().any(|byte| byte != b'_') {
        sink(Word { text: word, is_ascii: true });
    }
}

/// Calls `sink` with each token between Unicode white space, cut after every 255 characters.
pub fn split_white_space(text: &str, sink: &mut impl FnMut(Word)) {
    for token in text.split_whitespace() {
        cut_by_chars(token, sink);
    }
}

/// Sends `token` in pieces of at most 255 characters.
pub fn cut_by_chars(token: &str, sink: &mut impl FnMut(Word)) {
    let mut rest = token;
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(longest_prefix(rest));
        sink(Word { text: piece, is_ascii: piece.is_ascii() });
        rest = after;
    }
}

/// The length in bytes of the first 255 characters of `text`.
pub fn longest_prefix(text: &str) -> usize {
    if text.len() <= LONGEST_TERM_CHARS {
        return text.len();
    }
    text.char_indices().nth(LONGEST_TERM_CHARS).map_or(text.len(), |(position, _)| position)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn words(text: &str) -> Vec<String> {
        let mut words = Vec::new();
        split_words(text, &mut |word| {
            assert_eq!(word.is_ascii, word.text.is_ascii());
            words.push(word.text.to_owned());
        });
        words
    }

    fn words_by_unicode_single(text: &str) -> Vec<String> {
        let mut words = Vec::new();
        unicode::split_words(text, &mut |word| words.push(word.text.to_owned()));
        words
    }

    #[test]
    fn letters_digits_and_underscores_hold_together() {
        assert_eq!(words("Hello, World_2 x86 _a_ __ 3D!"), ["Hello", "World_2", "x86", "_a_", "3D"]);
    }

    #[test]
    fn single_middle_characters_join_letters_or_digits_only() {
        assert_eq!(
            words("can't U.S.A. 3.14 1,000;5 a:b a,b 1:2 a.1 a''b _'a"),
            ["can't", "U.S.A", "3.14", "1,000;5", "a:b", "a", "b", "1", "2", "a", "1", "a", "b", "_", "a"]
                .into_iter()
                .filter(|word| *word != "_")
                .collect::<Vec<_>>()
        );
    }

    #[test]
    fn words_next_to_characters_beyond_ascii_are_whole() {
        assert_eq!(
            words("a caf\u{e9}-bar 1990\u{2013}95 o\u{2019}clock na\u{ef}ve."),
            ["a", "caf\u{e9}", "bar", "1990", "95", "o\u{2019}clock", "na\u{ef}ve"]
        );
        assert_eq!(words("e\u{301}te\u{301} a'\u{301}b 1.\u{661}"), ["e\u{301}te\u{301}", "a'\u{301}b", "1.\u{661}"]);
        assert_eq!(words("\u{5D0}\"\u{5D1} \u{5D0}'"), ["\u{5D0}\"\u{5D1}", "\u{5D0}'"]);
    }

    #[test]
    fn long_words_are_cut_at_255_characters() {
        let lengths = |text: &str| words(text).iter().map(|word| word.chars().count()).collect::<Vec<_>>();
        assert_eq!(lengths(&"a".repeat(255)), [255]);
        assert_eq!(lengths(&"a".repeat(600)), [255, 255, 90]);
        assert_eq!(lengths(&"\u{e9}".repeat(600)), [255, 255, 90]);
        assert_eq!(lengths(&format!("{}'s", "a".repeat(254))), [254, 1]);
        assert_eq!(lengths(&"_".repeat(600)), [0; 0]);
        assert_eq!(lengths(&format!("e{}", "\u{301}".repeat(600))), [255]);
        assert_eq!(lengths(&"\u{e01}".repeat(300)), [255, 45]);
    }

    #[test]
    fn white_space_alone_parts_tokens_in_the_whitespace_split() {
        let mut tokens = Vec::new();
        split_white_space("a-b\u{3000}c,\u{a0}d\r\n\u{e9}! ", &mut |word| tokens.push(word.text.to_owned()));
        assert_eq!(tokens, ["a-b", "c,", "d", "\u{e9}!"]);
    }

    /// Characters that the rules of the annex, or the choice of regions, treat differently.
    const PIECES: &[&str] = &[
        "a",
        "Zb",
        "0",
        "12",
        "_",
        "'",
        ".",
        ":",
        ",",
        ";",
        "\"",
        "-",
        "#",
        "*",
        " ",
        "\t",
        "\r\n",
        "\r",
        "\n",
        "\u{b}",
        "\u{c}",
        "\u{85}",
        "\u{a0}",
        "\u{2028}",
        "\u{2003}",
        "\u{e9}",
        "\u{301}",
        "\u{308}",
        "\u{93e}",
        "\u{915}",
        "\u{ad}",
        "\u{200d}",
        "\u{200c}",
        "\u{feff}",
        "\u{2019}",
        "\u{ff07}",
        "\u{b7}",
        "\u{2013}",
        "\u{201c}",
        "\u{202f}",
        "\u{203f}",
        "\u{b2}",
        "\u{661}",
        "\u{66c}",
        "\u{5d0}",
        "\u{5d1}",
        "\u{4e2d}",
        "\u{3042}",
        "\u{30ab}",
        "\u{30fc}",
        "\u{ac00}",
        "\u{e01}",
        "\u{e31}",
        "\u{e50}",
        "\u{1f600}",
        "\u{1f44d}",
        "\u{1f3fd}",
        "\u{fe0f}",
        "\u{20e3}",
        "\u{1f1e9}",
        "\u{1f1ea}",
        "\u{a9}",
        "\u{2764}",
        "\u{1f170}",
        "\u{10400}",
        "\u{20000}",
        "\u{e0067}",
        "\u{e007f}",
        "\u{17000}",
        "\u{2f00}",
    ];

    fn nasty_text() -> impl Strategy<Value = String> {
        let pieces =
            proptest::collection::vec(proptest::sample::select(PIECES), 0..40).prop_map(|pieces| pieces.concat());
        prop_oneof![pieces, "[a-zA-Z0-9 '.:,;_\"\\-#é’\u{301}]{0,60}", "[ -~\t\r\n]{0,80}", any::<String>(),]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4096))]
        #[test]
        fn regions_give_the_words_of_the_whole(text in nasty_text()) {
            prop_assert_eq!(words(&text), words_by_unicode_single(&text));
        }

        #[test]
        fn words_stand_in_the_text_in_order(text in nasty_text()) {
            let mut rest = text.as_str();
            for word in words(&text) {
                let found = rest.find(&word);
                prop_assert!(found.is_some(), "{:?} is not in {:?}", word, rest);
                rest = &rest[found.unwrap_or(0) + word.len()..];
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn long_words_are_cut_the_same_way_on_both_paths(
            pieces in proptest::collection::vec((nasty_text(), 1..400_usize), 1..4)
        ) {
            let text: String = pieces.iter().map(|(piece, times)| piece.repeat(*times)).collect();
            let words = words(&text);
            prop_assert!(words.iter().all(|word| (1..=LONGEST_TERM_CHARS).contains(&word.chars().count())));
            prop_assert_eq!(words, words_by_unicode_single(&text));
        }
    }
}
