//! Ids in TREC runs, whose columns are separated by white space.
//!
//! White space and control characters of an id are percent-coded as in URLs, byte by byte of their UTF-8, and nothing
//! else is, except a `%` that would be taken for the beginning of such a code. So most ids stay as they are, `100%` and
//! `caf%C3%A9` among them, two ids never become one, and [`decode`] gives back every id.

use std::borrow::Cow;
use std::fmt::Write;

use lanner_index::corpus::is_separator;

/// Returns an id as a run holds it.
pub(super) fn encode(id: &str) -> Cow<'_, str> {
    if !id.contains(|character| character == '%' || is_separator(character)) {
        return Cow::Borrowed(id);
    }
    let mut coded = String::with_capacity(id.len() + 8);
    for (at, character) in id.char_indices() {
        if is_separator(character) || (character == '%' && code_at_start(&id[at..]).is_some()) {
            let mut bytes = [0; 4];
            for byte in character.encode_utf8(&mut bytes).bytes() {
                write!(coded, "%{byte:02X}").expect("a String takes any text");
            }
        } else {
            coded.push(character);
        }
    }
    Cow::Owned(coded)
}

/// Returns the id that a run holds as `coded`.
pub(super) fn decode(coded: &str) -> Cow<'_, str> {
    if !coded.contains('%') {
        return Cow::Borrowed(coded);
    }
    let mut id = String::with_capacity(coded.len());
    let mut rest = coded;
    while let Some(at) = rest.find('%') {
        id.push_str(&rest[..at]);
        rest = &rest[at..];
        let (character, length) = code_at_start(rest).unwrap_or(('%', 1));
        id.push(character);
        rest = &rest[length..];
    }
    id.push_str(rest);
    Cow::Owned(id)
}

/// Returns the character that a code at the start of the text stands for, and the length of the code; `None` for codes
/// of characters that are not coded.
fn code_at_start(text: &str) -> Option<(char, usize)> {
    let mut bytes = [0; 4];
    for length in 1..=bytes.len() {
        let [b'%', high, low] = text.as_bytes().get(3 * length - 3..3 * length)? else { return None };
        let digit = |digit: &u8| char::from(*digit).to_digit(16);
        bytes[length - 1] = (digit(high)? * 16 + digit(low)?) as u8;
        if let Ok(decoded) = std::str::from_utf8(&bytes[..length]) {
            let character = decoded.chars().next()?;
            return (character == '%' || is_separator(character)).then_some((character, 3 * length));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn only_what_separates_and_what_looks_coded_is_coded() {
        let cases = [
            ("plain", "plain"),
            ("a b\tc\n", "a%20b%09c%0A"),
            ("a\u{a0}b\u{3000}", "a%C2%A0b%E3%80%80"),
            ("100%", "100%"),
            ("100%41 caf%C3%A9", "100%41%20caf%C3%A9"),
            ("a%20b", "a%2520b"),
            ("%25", "%2525"),
            ("%c2%a0", "%25c2%a0"),
            ("é😀", "é😀"),
            ("\u{7f}", "%7F"),
        ];
        for (id, coded) in cases {
            assert_eq!(encode(id), coded);
            assert_eq!(decode(coded), id);
        }
        assert_eq!(decode("a%20b %0a"), "a b \n");
    }

    proptest! {
        #[test]
        fn every_id_comes_back(id in "(%|2|0|5|[cC]2|[aA]0|E3|80| |\u{a0}|\u{3000}|\t|é|x){0,12}|.{0,12}") {
            let coded = encode(&id);
            prop_assert!(!coded.contains(is_separator));
            prop_assert_eq!(decode(&coded), &*id);
        }
    }
}
