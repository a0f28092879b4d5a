//! The step `cjk-bigram`: Chinese, Japanese and Korean text in overlapping pairs of characters, as Lucene's
//! `CJKBigramFilter` forms them.
//!
//! These scripts do not separate words by spaces. A run of words of these scripts, with nothing between them, becomes its
//! pairs of neighbouring characters; a character that stands alone stays. All other words stay as they are.

use super::unicode::is_mark;
use super::words::{self, Word};
use std::ops::Range;

/// Calls `sink` with the pairs and the other words of `text` in order.
pub fn split_words(text: &str, sink: &mut impl FnMut(Word)) {
    // The run that we are in, as a range of the text.
    let mut run = 0..0;
    words::split_words(text, &mut |word| {
        let at = range_in(text, word.text);
        let is_cjk = !word.is_ascii && is_cjk(word.text);
        if is_cjk && at.start == run.end {
            run.end = at.end;
            return;
        }
        send_pairs(&text[run.clone()], sink);
        if is_cjk {
            run = at;
        } else {
            // Nothing can continue an empty run at the end of this word but a run that starts there.
            run = at.end..at.end;
            sink(word);
        }
    });
    send_pairs(&text[run], sink);
}

/// The bytes of `text` that `part`, a slice of it, takes.
fn range_in(text: &str, part: &str) -> Range<usize> {
    let start = part.as_ptr().addr() - text.as_ptr().addr();
    start..start + part.len()
}

/// Sends each character of a run with its neighbour, or the only one alone.
fn send_pairs(run: &str, sink: &mut impl FnMut(Word)) {
    let mut start = 0;
    let mut ends = run.char_indices().map(|(at, character)| at + character.len_utf8());
    let Some(mut middle) = ends.next() else {
        return;
    };
    if middle == run.len() {
        return sink(Word { text: run, is_ascii: false });
    }
    for end in ends {
        sink(Word { text: &run[start..end], is_ascii: false });
        (start, middle) = (middle, end);
    }
}

/// Whether a word is of one of these scripts: an ideograph or a hiragana (each is a word), or katakana or Hangul only, with
/// the marks on them.
fn is_cjk(word: &str) -> bool {
    let Some(first) = word.chars().next() else {
        return false;
    };
    match script(first) {
        None => false,
        Some(Script::Single) => true,
        Some(of_run) => word.chars().all(|character| match script(character) {
            Some(script) => script == of_run,
            None => is_mark(character),
        }),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Script {
    /// Ideographs and hiragana, of which each is a word.
    Single,
    Katakana,
    Hangul,
}

/// The letters of these scripts, as ranges in order, with the characters that Unicode 12.1 has, as in Lucene.
const SCRIPTS: [(char, char, Script); 42] = {
    use Script::{Hangul, Katakana, Single};
    [
        ('\u{1100}', '\u{11FF}', Hangul),
        ('\u{2E80}', '\u{2E99}', Single),
        ('\u{2E9B}', '\u{2EF3}', Single),
        ('\u{2F00}', '\u{2FD5}', Single),
        ('\u{3007}', '\u{3007}', Single),
        ('\u{3021}', '\u{3029}', Single),
        ('\u{3031}', '\u{3035}', Katakana),
        ('\u{3038}', '\u{303A}', Single),
        ('\u{3041}', '\u{3096}', Single),
        ('\u{309B}', '\u{309C}', Katakana),
        ('\u{309D}', '\u{309F}', Single),
        ('\u{30A0}', '\u{30FA}', Katakana),
        ('\u{30FC}', '\u{30FF}', Katakana),
        ('\u{3131}', '\u{318E}', Hangul),
        ('\u{31F0}', '\u{31FF}', Katakana),
        ('\u{32D0}', '\u{32FE}', Katakana),
        ('\u{3300}', '\u{3357}', Katakana),
        ('\u{3400}', '\u{4DB5}', Single),
        ('\u{4E00}', '\u{9FEF}', Single),
        ('\u{A960}', '\u{A97C}', Hangul),
        ('\u{AC00}', '\u{D7A3}', Hangul),
        ('\u{D7B0}', '\u{D7C6}', Hangul),
        ('\u{D7CB}', '\u{D7FB}', Hangul),
        ('\u{F900}', '\u{FA6D}', Single),
        ('\u{FA70}', '\u{FAD9}', Single),
        ('\u{FF66}', '\u{FF9D}', Katakana),
        ('\u{FFA0}', '\u{FFBE}', Hangul),
        ('\u{FFC2}', '\u{FFC7}', Hangul),
        ('\u{FFCA}', '\u{FFCF}', Hangul),
        ('\u{FFD2}', '\u{FFD7}', Hangul),
        ('\u{FFDA}', '\u{FFDC}', Hangul),
        ('\u{1B000}', '\u{1B000}', Katakana),
        ('\u{1B001}', '\u{1B11E}', Single),
        ('\u{1B150}', '\u{1B152}', Single),
        ('\u{1B164}', '\u{1B167}', Katakana),
        ('\u{1F200}', '\u{1F200}', Single),
        ('\u{20000}', '\u{2A6D6}', Single),
        ('\u{2A700}', '\u{2B734}', Single),
        ('\u{2B740}', '\u{2B81D}', Single),
        ('\u{2B820}', '\u{2CEA1}', Single),
        ('\u{2CEB0}', '\u{2EBE0}', Single),
        ('\u{2F800}', '\u{2FA1D}', Single),
    ]
};

fn script(character: char) -> Option<Script> {
    let after = SCRIPTS.partition_point(|(first, ..)| *first <= character);
    let (_, last, script) = SCRIPTS[..after].last()?;
    (character <= *last).then_some(*script)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(text: &str) -> Vec<String> {
        let mut words = Vec::new();
        split_words(text, &mut |word| words.push(word.text.to_owned()));
        words
    }

    #[test]
    fn runs_become_pairs_and_single_characters_stay() {
        assert_eq!(pairs("我是中国人。"), ["我是", "是中", "中国", "国人"]);
        assert_eq!(pairs("一 二三"), ["一", "二三"]);
        assert_eq!(pairs("𠀀𠀁の"), ["𠀀𠀁", "𠀁の"]);
    }

    #[test]
    fn words_of_other_scripts_part_runs_and_stay() {
        assert_eq!(pairs("中国abc人 x2"), ["中国", "abc", "人", "x2"]);
        assert_eq!(pairs("abc中国"), ["abc", "中国"]);
        assert_eq!(pairs("한글abc 한글"), ["한글abc", "한글"]);
    }

    #[test]
    fn a_run_joins_kana_and_ideographs_and_katakana_words_are_cut() {
        assert_eq!(pairs("漢字カタナ"), ["漢字", "字カ", "カタ", "タナ"]);
        assert_eq!(pairs("カタ・カナ"), ["カタ", "カナ"]);
    }

    #[test]
    fn ranges_are_in_order_and_do_not_overlap() {
        assert!(SCRIPTS.windows(2).all(|pair| pair[0].1 < pair[1].0));
        assert!(SCRIPTS.iter().all(|(first, last, _)| first <= last));
    }
}
