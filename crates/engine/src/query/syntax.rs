//! Syntax of other search engines that a query does not have. A query takes it as text; who typed the query is told so.

use super::QueryError;
use super::weighted;
use std::ops::Range;

/// What a part of a query means elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Syntax {
    /// `"a phrase"`: these words, one after the other.
    Phrase,
    /// `+word`: hits must have it.
    Required,
    /// `-word` or `!word`: hits must not have it.
    Excluded,
    /// `title:word`: the word in one field.
    Field,
    /// `wor*` or `w?rd`: any letters.
    Wildcard,
    /// `word~1`: similar words.
    Fuzzy,
    /// `AND`, `OR`, `NOT`, `&&` or `||` between words.
    Operator,
    /// `word^x`: a weight that is no number.
    Weight,
}

/// A part of a query that means something else elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Foreign<'a> {
    /// The part, as it stands in the query.
    pub text: &'a str,
    /// Its meaning elsewhere.
    pub syntax: Syntax,
}

/// Finds foreign syntax in the text of a query, in its order. Punctuation that is common in plain text (`C++`, `12:30`,
/// `std::vec`, `https://…`, a question mark at the end) is none.
pub fn foreign(text: &str) -> Vec<Foreign<'_>> {
    let words = words(text);
    let last = words.len().saturating_sub(1);
    let found = words.iter().enumerate().filter_map(|(i, range)| {
        let text = &text[range.clone()];
        let syntax = operator(text, i > 0, i < last).or_else(|| of_word(text))?;
        Some(Foreign { text, syntax })
    });
    found.collect()
}

/// Checks that what stands behind `^` at the end of a word is a decimal number if it is a number at all: `^-1`,
/// `^1e-40` and `^nan` are meant as weights, though the text of a query has no such weights.
pub fn check_weights(text: &str) -> Result<(), QueryError> {
    let wrong = text.split_whitespace().find_map(|word| {
        let (before, number) = word.rsplit_once('^').filter(|(before, _)| !before.is_empty())?;
        (weighted(word).is_none() && number.parse::<f64>().is_ok()).then_some((before, number))
    });
    wrong.map_or(Ok(()), |(word, weight)| {
        Err(QueryError::NotAWeight { word: word.to_owned(), weight: weight.to_owned() })
    })
}

/// Cuts text at white space, but not inside quotation marks at the start of a word.
fn words(text: &str) -> Vec<Range<usize>> {
    let mut words = Vec::new();
    let mut at = 0;
    while let Some(skipped) = text[at..].find(|character: char| !character.is_whitespace()) {
        let start = at + skipped;
        let quoted = quotation(&text[start..]).map_or(start, |length| start + length);
        at = text[quoted..].find(char::is_whitespace).map_or(text.len(), |length| quoted + length);
        words.push(start..at);
    }
    words
}

/// The bytes up to the closing quotation mark, if a word starts with an opening one, maybe behind `+`, `-`, `!`, `(` or
/// the name of a field.
fn quotation(text: &str) -> Option<usize> {
    let open = text.find(is_quote)?;
    let opens = text[..open].chars().all(|before| matches!(before, '+' | '-' | '!' | '(')) || is_field(&text[..open]);
    let inside = open + text[open..].chars().next()?.len_utf8();
    let length = text[inside..].find(is_quote).filter(|_| opens)?;
    Some(inside + length)
}

fn is_quote(character: char) -> bool {
    matches!(character, '"' | '\u{201c}' | '\u{201d}' | '\u{201e}')
}

/// `AND` and its like, where they have the operands that they need.
fn operator(word: &str, has_left: bool, has_right: bool) -> Option<Syntax> {
    let is_operator = match word {
        "AND" | "OR" | "&&" | "||" => has_left && has_right,
        "NOT" => has_right,
        _ => false,
    };
    is_operator.then_some(Syntax::Operator)
}

fn of_word(word: &str) -> Option<Syntax> {
    let word = word.trim_start_matches('(');
    let after = |sign: char| word.strip_prefix(sign).is_some_and(|rest| rest.starts_with(is_word_start));
    if after('+') {
        return Some(Syntax::Required);
    }
    if after('-') || after('!') {
        return Some(Syntax::Excluded);
    }
    if word.starts_with(is_quote) && word.contains(char::is_alphanumeric) {
        return Some(Syntax::Phrase);
    }
    // A weight is not part of the word.
    let (plain, is_weighted) = weighted(word).map_or((word, false), |piece| (piece.text, true));
    let plain = plain.trim_end_matches(')');
    if plain
        .split_once(':')
        .is_some_and(|(name, rest)| is_field(&word[..=name.len()]) && rest.starts_with(is_word_start))
    {
        return Some(Syntax::Field);
    }
    if is_fuzzy(plain) {
        return Some(Syntax::Fuzzy);
    }
    if is_wildcard(plain) {
        return Some(Syntax::Wildcard);
    }
    let (before, after) = word.rsplit_once('^').filter(|_| !is_weighted)?;
    (before.ends_with(char::is_alphanumeric) || after.starts_with(char::is_alphanumeric)).then_some(Syntax::Weight)
}

fn is_word_start(character: char) -> bool {
    character.is_alphanumeric() || is_quote(character)
}

/// Whether text is a name with a colon behind it: letters, digits, `_` and `.`, a letter first.
fn is_field(text: &str) -> bool {
    text.strip_suffix(':').is_some_and(|name| {
        let is_part = |character: char| character.is_ascii_alphanumeric() || matches!(character, '_' | '.');
        name.starts_with(|first: char| first.is_ascii_alphabetic()) && name.chars().all(is_part)
    })
}

/// Whether `~` follows a word, with nothing or a number behind it.
fn is_fuzzy(word: &str) -> bool {
    word.rsplit_once('~').is_some_and(|(before, distance)| {
        before.ends_with(is_word_start) && distance.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
    })
}

/// Whether `*` touches a letter or digit, or `?` stands between two, but for the parameters of an address.
fn is_wildcard(word: &str) -> bool {
    let touches = |at: usize, sign: char| {
        let before = word[..at].ends_with(char::is_alphanumeric);
        let after = word[at + 1..].starts_with(char::is_alphanumeric);
        if sign == '*' { before || after } else { before && after && !word.contains('/') }
    };
    word.match_indices(['*', '?']).any(|(at, sign)| touches(at, sign.chars().next().unwrap_or('*')))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn found(text: &str) -> Vec<(&str, Syntax)> {
        foreign(text).into_iter().map(|found| (found.text, found.syntax)).collect()
    }

    #[test]
    fn syntax_of_other_engines_is_found() {
        let cases = [
            ("\"open country\" owl", "\"open country\"", Syntax::Phrase),
            ("owl “open country”", "“open country”", Syntax::Phrase),
            ("\"open country\"~3", "\"open country\"~3", Syntax::Phrase),
            ("(\"open country\"^2)", "(\"open country\"^2)", Syntax::Phrase),
            ("owl \"open", "\"open", Syntax::Phrase),
            ("+owl", "+owl", Syntax::Required),
            ("owl -hunt", "-hunt", Syntax::Excluded),
            ("owl -\"open country\" kite", "-\"open country\"", Syntax::Excluded),
            ("owl !hunt", "!hunt", Syntax::Excluded),
            ("title:owl", "title:owl", Syntax::Field),
            ("title:\"barn owl\" kite", "title:\"barn owl\"", Syntax::Field),
            ("body.en_1:owl^2", "body.en_1:owl^2", Syntax::Field),
            ("falc*", "falc*", Syntax::Wildcard),
            ("falc*^2", "falc*^2", Syntax::Wildcard),
            ("*con", "*con", Syntax::Wildcard),
            ("f?lcon", "f?lcon", Syntax::Wildcard),
            ("falcon~1", "falcon~1", Syntax::Fuzzy),
            ("falcon~", "falcon~", Syntax::Fuzzy),
            ("owl AND kite", "AND", Syntax::Operator),
            ("owl || kite", "||", Syntax::Operator),
            ("NOT kite", "NOT", Syntax::Operator),
            ("falcon^", "falcon^", Syntax::Weight),
            ("falcon^big", "falcon^big", Syntax::Weight),
            ("^2", "^2", Syntax::Weight),
        ];
        for (text, part, syntax) in cases {
            assert_eq!(found(text), [(part, syntax)], "{text}");
        }
        assert_eq!(found("+a -b (c OR d)").len(), 3);
    }

    #[test]
    fn plain_text_has_none() {
        let texts = [
            "falcons hunting in pairs^2",
            "C++ and C#",
            "at 12:30",
            "std::vec::Vec",
            "https://a.example/b?c=d",
            "what is a falcon?",
            "a well-known fact - really",
            "5\" pipe 6\" pipe",
            "note: owl",
            "salt and pepper or not",
            "AND",
            "owl AND",
            "AT&T",
            "~5",
            "* * *",
            "rust (language)",
            "c:\\folder",
            "e-mail+tag",
            "hm... \"?\"",
            "",
            "  ",
            "x^2.5 y^.5",
        ];
        for text in texts {
            assert_eq!(found(text), [], "{text}");
        }
    }

    #[test]
    fn numbers_that_are_no_weights_are_refused() {
        for weight in ["-1", "+2", "1e-40", "1e3", "infinity", "inf", "-inf", "nan", "NaN"] {
            let error = check_weights(&format!("owl falcon^{weight} kite")).unwrap_err();
            assert_eq!(error, QueryError::NotAWeight { word: "falcon".to_owned(), weight: weight.to_owned() });
            let message = error.to_string();
            assert!(message.ends_with("give a decimal number from 0.000001 to 1000000, such as 2.5"), "{message}");
        }
        for text in ["falcon^2", "falcon^", "falcon^x", "^-1", "falcon^-x", "falcon", "a^2b"] {
            assert_eq!(check_weights(text), Ok(()), "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_cut_into_its_parts_in_order(text in "[ab:\"“\\s^2~*?+!(-]{0,30}|(a|AND|NOT|\"| ){0,12}") {
            let mut rest = text.as_str();
            for Foreign { text: part, .. } in foreign(&text) {
                let at = rest.find(part);
                prop_assert!(at.is_some());
                rest = &rest[at.unwrap_or(0) + part.len()..];
            }
            let _ = check_weights(&text);
        }
    }
}
