//! Splits text beyond ASCII into words: the segments of Unicode Standard Annex #29 that Lucene's `StandardTokenizer`
//! keeps.
//!
//! The `unicode-segmentation` crate finds the boundaries. A segment is a word if it holds a letter, a number, an
//! ideograph, kana, Hangul or an emoji. Two things go beyond the annex, as in Lucene: a run of a South East Asian
//! script that is written without spaces (Thai, Lao, Khmer, Myanmar) is one word, and a word has at most 255
//! characters.

use super::words::{Word, cut_by_chars, longest_prefix};
use unicode_segmentation::UnicodeSegmentation;

/// Calls `sink` with each word of `text` in order.
pub fn split_words(text: &str, sink: &mut impl FnMut(Word)) {
    // The start of the run of South East Asian segments that we are in.
    let mut run_start = None;
    for (start, segment) in text.split_word_bound_indices() {
        if segment.starts_with(is_south_east_asian) {
            run_start.get_or_insert(start);
            continue;
        }
        if let Some(run_start) = run_start.take() {
            cut_by_chars(&text[run_start..start], sink);
        }
        if let Some(word) = word_of(segment) {
            send(word, sink);
        }
    }
    if let Some(run_start) = run_start {
        cut_by_chars(&text[run_start..], sink);
    }
}

fn send(word: &str, sink: &mut impl FnMut(Word)) {
    if longest_prefix(word) == word.len() {
        sink(Word { text: word, is_ascii: word.is_ascii() });
    } else {
        cut_long_word(word, sink);
    }
}

/// Sends a word of more than 255 characters in pieces, each the longest word at the start of the next 255 characters.
#[cold]
pub fn cut_long_word(word: &str, sink: &mut impl FnMut(Word)) {
    let mut rest = word;
    while !rest.is_empty() {
        let within_limit = &rest[..longest_prefix(rest)];
        let segment = within_limit.split_word_bounds().next().unwrap_or(within_limit);
        if let Some(text) = word_of(segment) {
            sink(Word { text, is_ascii: text.is_ascii() });
        }
        rest = &rest[segment.len()..];
    }
}

/// The word in a segment: all of it, or its part from an emoji on that only a zero-width joiner ties to other
/// characters.
fn word_of(segment: &str) -> Option<&str> {
    let first = segment.chars().next()?;
    if begins_word(first) {
        return Some(segment);
    }
    if is_regional_indicator(first) {
        // Two of them make a flag; one alone is not a word.
        return (segment.chars().filter(|&character| is_regional_indicator(character)).count() == 2).then_some(segment);
    }
    if is_connector(first) || matches!(first, '#' | '*') && segment.contains(ENCLOSING_KEYCAP) {
        return segment
            .contains(|character| begins_word(character) || character == ENCLOSING_KEYCAP)
            .then_some(segment);
    }
    segment.find(begins_word).map(|start| &segment[start..])
}

const ENCLOSING_KEYCAP: char = '\u{20E3}';

/// Whether this character makes its segment a word.
fn begins_word(character: char) -> bool {
    match character {
        ..='\u{7F}' => character.is_ascii_alphanumeric(),
        // Latin letters, the common case.
        '\u{D7}' | '\u{F7}' => false,
        '\u{C0}'..='\u{24F}' => true,
        _ if is_south_east_asian(character) || is_ideographic_radical(character) => true,
        _ if character.is_alphabetic() => !is_mark(character),
        // Numbers count if they stick to letters: digits do, superscripts and fractions do not.
        _ if character.is_numeric() && are_joined(character, 'a') => true,
        _ => is_katakana_sign(character) || are_joined(ZERO_WIDTH_JOINER, character) && !is_mark(character),
    }
}

const ZERO_WIDTH_JOINER: char = '\u{200D}';

/// Extend, Format and joiner characters, which stick to any character before them.
pub fn is_mark(character: char) -> bool {
    are_joined('!', character)
}

/// Whether no boundary lies between two characters. The crate does not export its tables of properties; this is a way
/// to query them.
fn are_joined(left: char, right: char) -> bool {
    let mut buffer = [0; 8];
    let middle = left.encode_utf8(&mut buffer).len();
    let end = middle + right.encode_utf8(&mut buffer[middle..]).len();
    let pair = str::from_utf8(&buffer[..end]).unwrap_or_default();
    pair.split_word_bounds().next().is_some_and(|segment| segment.len() == end)
}

/// ExtendNumLet characters, which can be part of a word but do not make one.
fn is_connector(character: char) -> bool {
    matches!(
        character,
        '_' | '\u{202F}' | '\u{203F}' | '\u{2040}' | '\u{2054}' | '\u{FE33}' | '\u{FE34}' | '\u{FE4D}'
            ..='\u{FE4F}' | '\u{FF3F}'
    )
}

fn is_regional_indicator(character: char) -> bool {
    matches!(character, '\u{1F1E6}'..='\u{1F1FF}')
}

/// Han characters that are not alphabetic.
fn is_ideographic_radical(character: char) -> bool {
    matches!(character, '\u{2E80}'..='\u{2E99}' | '\u{2E9B}'..='\u{2EF3}' | '\u{2F00}'..='\u{2FD5}')
}

/// Katakana by the annex that are not alphabetic.
fn is_katakana_sign(character: char) -> bool {
    matches!(character, '\u{309B}' | '\u{309C}' | '\u{30A0}')
}

/// Line_Break=Complex_Context (UAX #14): scripts whose words need a dictionary.
fn is_south_east_asian(character: char) -> bool {
    match character {
        ..'\u{E01}' | '\u{11747}'.. => false,
        '\u{E01}'..='\u{E3A}' | '\u{E40}'..='\u{E4E}' => true,
        '\u{E81}'..='\u{EBD}' | '\u{EC0}'..='\u{EC4}' | '\u{EC6}' | '\u{EC8}'..='\u{ECE}' | '\u{EDC}'..='\u{EDF}' => {
            true
        }
        '\u{1000}'..='\u{103F}' | '\u{1050}'..='\u{108F}' | '\u{109A}'..='\u{109F}' => true,
        '\u{1780}'..='\u{17D3}' | '\u{17D7}' | '\u{17DC}' | '\u{17DD}' => true,
        '\u{1950}'..='\u{196D}' | '\u{1970}'..='\u{1974}' | '\u{1980}'..='\u{19AB}' | '\u{19B0}'..='\u{19C9}' => true,
        '\u{19DA}' | '\u{19DE}' | '\u{19DF}' => true,
        '\u{1A20}'..='\u{1A5E}' | '\u{1A60}'..='\u{1A7C}' | '\u{1AA0}'..='\u{1AAD}' => true,
        '\u{A9E0}'..='\u{A9EF}' | '\u{A9FA}'..='\u{A9FE}' | '\u{AA60}'..='\u{AAC2}' | '\u{AADB}'..='\u{AADF}' => true,
        '\u{11700}'..='\u{1171A}'
        | '\u{1171D}'..='\u{1172B}'
        | '\u{1173A}'
        | '\u{1173B}'
        | '\u{1173F}'..='\u{11746}' => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        let mut words = Vec::new();
        split_words(text, &mut |word| words.push(word.text.to_owned()));
        words
    }

    #[test]
    fn ideographs_and_hiragana_are_words_each_and_katakana_runs_are_one() {
        assert_eq!(words("我是中国人。"), ["我", "是", "中", "国", "人"]);
        assert_eq!(words("ひらがなとカタカナ・ﾊﾝｶｸ"), ["ひ", "ら", "が", "な", "と", "カタカナ", "ﾊﾝｶｸ"]);
        assert_eq!(words("𠀀⼀々〇"), ["𠀀", "⼀", "々", "〇"]);
    }

    #[test]
    fn hangul_words_stay_whole() {
        assert_eq!(words("안녕하세요 한글입니다"), ["안녕하세요", "한글입니다"]);
    }

    #[test]
    fn south_east_asian_runs_are_one_word() {
        assert_eq!(words("การที่ได้ต้องแสดงว่างานดี. แล้ว"), ["การที่ได้ต้องแสดงว่างานดี", "แล้ว"]);
        assert_eq!(words("ภาษาthai๑๒"), ["ภาษา", "thai๑๒"]);
        assert_eq!(words("ພາສາລາວ ខ្មែរ မြန်မာ"), ["ພາສາລາວ", "ខ្មែរ", "မြန်မာ"]);
    }

    #[test]
    fn emoji_sequences_are_one_word() {
        assert_eq!(words("👍🏽👩‍🚀 ❤️!"), ["👍🏽", "👩‍🚀", "❤️"]);
        assert_eq!(words("🇩🇪🇫🇷🇩"), ["🇩🇪", "🇫🇷"]);
        assert_eq!(words("#️⃣ 5️⃣ # *"), ["#️⃣", "5️⃣"]);
        assert_eq!(words("🏴\u{E0067}\u{E0062}\u{E007F} ©"), ["🏴\u{E0067}\u{E0062}\u{E007F}", "©"]);
    }

    #[test]
    fn letters_keep_their_marks_and_marks_alone_are_not_words() {
        assert_eq!(words("हिन्दी עברית عَرَبِيّ"), ["हिन्दी", "עברית", "عَرَبِيّ"]);
        assert_eq!(words("\u{301} \u{93E} \u{200D} \u{AD}"), [""; 0]);
        assert_eq!(words("!\u{200D}👍"), ["👍"]);
    }

    #[test]
    fn digits_are_words_and_other_numbers_are_not() {
        assert_eq!(words("x² ½ ٣٤ Ⅷ １２"), ["x", "٣٤", "Ⅷ", "１２"]);
    }

    #[test]
    fn punctuation_and_connectors_alone_are_not_words() {
        assert_eq!(words("\u{2013} \u{201C}\u{201D} \u{203F}\u{203F} \u{203F}a \u{D7} \u{3000}"), ["\u{203F}a"]);
    }
}
