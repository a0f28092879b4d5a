//! The English steps besides the stemmer: possessive endings and stop words.

/// Cuts a trailing `'s` or `'S` (with U+0027, U+2019 or U+FF07), as Lucene's `EnglishPossessiveFilter` does.
pub fn strip_possessive(term: &str) -> &str {
    match term.as_bytes() {
        [.., b'\'', b's' | b'S'] => &term[..term.len() - 2],
        // The last bytes of U+2019 and of U+FF07.
        [.., 0x99 | 0x87, b's' | b'S'] => {
            let before = &term[..term.len() - 1];
            before.strip_suffix(['\u{2019}', '\u{FF07}']).unwrap_or(term)
        }
        _ => term,
    }
}

/// Whether `term`, already in lower case, is one of Lucene's 33 English stop words.
pub fn is_stop_word(term: &str) -> bool {
    match term.as_bytes() {
        [b'a'] => true,
        [first, second] => matches!(
            &[*first, *second],
            b"an"
                | b"as"
                | b"at"
                | b"be"
                | b"by"
                | b"if"
                | b"in"
                | b"is"
                | b"it"
                | b"no"
                | b"of"
                | b"on"
                | b"or"
                | b"to"
        ),
        [first, second, third] => {
            matches!(&[*first, *second, *third], b"and" | b"are" | b"but" | b"for" | b"not" | b"the" | b"was")
        }
        [first, second, third, fourth] => matches!(
            &[*first, *second, *third, *fourth],
            b"into" | b"such" | b"that" | b"then" | b"they" | b"this" | b"will" | b"with"
        ),
        [b't', b'h', b'e', b'i', b'r'] | [b't', b'h', b'e', b'r', b'e'] | [b't', b'h', b'e', b's', b'e'] => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exactly_the_33_stop_words_are_stop_words() {
        let words = "a an and are as at be but by for if in into is it no not of on or such that the their then there \
                     these they this to was will with";
        assert_eq!(words.split(' ').filter(|word| is_stop_word(word)).count(), 33);
        for word in ["", "i", "s", "he", "we", "were", "from", "these'", "The", "therein", "é"] {
            assert!(!is_stop_word(word), "{word}");
        }
    }

    #[test]
    fn a_possessive_ending_is_cut_with_any_of_three_apostrophes() {
        for (term, stripped) in [
            ("dog's", "dog"),
            ("DOG'S", "DOG"),
            ("dog\u{2019}s", "dog"),
            ("dog\u{FF07}S", "dog"),
            ("dogs'", "dogs'"),
            ("dog`s", "dog`s"),
            ("it's's", "it's"),
            ("\u{2018}\u{D9}s", "\u{2018}\u{D9}s"),
            ("\u{419}s", "\u{419}s"),
            ("s", "s"),
            ("'s", ""),
            ("", ""),
        ] {
            assert_eq!(strip_possessive(term), stripped, "{term}");
        }
    }
}
