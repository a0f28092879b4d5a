//! The entities of SGML and HTML that TREC collections have: numbers, and names of characters of Latin-1 and of
//! typography.

/// The length of the longest entity that is recognized: `&#x10FFFF;`.
const ENTITY_BYTES: usize = 10;

/// The names of the characters from U+00A0 on, as in HTML 4.
const LATIN_1: [&str; 96] = [
    "nbsp", "iexcl", "cent", "pound", "curren", "yen", "brvbar", "sect", "uml", "copy", "ordf", "laquo", "not", "shy",
    "reg", "macr", "deg", "plusmn", "sup2", "sup3", "acute", "micro", "para", "middot", "cedil", "sup1", "ordm",
    "raquo", "frac14", "frac12", "frac34", "iquest", "Agrave", "Aacute", "Acirc", "Atilde", "Auml", "Aring", "AElig",
    "Ccedil", "Egrave", "Eacute", "Ecirc", "Euml", "Igrave", "Iacute", "Icirc", "Iuml", "ETH", "Ntilde", "Ograve",
    "Oacute", "Ocirc", "Otilde", "Ouml", "times", "Oslash", "Ugrave", "Uacute", "Ucirc", "Uuml", "Yacute", "THORN",
    "szlig", "agrave", "aacute", "acirc", "atilde", "auml", "aring", "aelig", "ccedil", "egrave", "eacute", "ecirc",
    "euml", "igrave", "iacute", "icirc", "iuml", "eth", "ntilde", "ograve", "oacute", "ocirc", "otilde", "ouml",
    "divide", "oslash", "ugrave", "uacute", "ucirc", "uuml", "yacute", "thorn", "yuml",
];

/// Other names. `blank` and `hyph` are those of the Federal Register and the Wall Street Journal.
const OTHERS: [(&str, char); 23] = [
    ("amp", '&'),
    ("lt", '<'),
    ("gt", '>'),
    ("quot", '"'),
    ("apos", '\''),
    ("nbsp", ' '),
    ("blank", ' '),
    ("hyph", '-'),
    ("hyphen", '-'),
    ("ensp", ' '),
    ("emsp", ' '),
    ("thinsp", ' '),
    ("ndash", '–'),
    ("mdash", '—'),
    ("lsquo", '‘'),
    ("rsquo", '’'),
    ("sbquo", '‚'),
    ("ldquo", '“'),
    ("rdquo", '”'),
    ("bull", '•'),
    ("hellip", '…'),
    ("trade", '™'),
    ("euro", '€'),
];

/// Decodes an entity at the start of the text; returns its character and its length.
pub(super) fn entity(text: &str) -> Option<(char, usize)> {
    let inner = text.strip_prefix('&')?;
    let window = &inner.as_bytes()[..inner.len().min(ENTITY_BYTES - 1)];
    let end = memchr::memchr(b';', window)?;
    let name = &inner[..end];
    let character = match name.strip_prefix('#') {
        Some(number) => numbered(number)?,
        None => named(name)?,
    };
    Some((character, 1 + end + 1))
}

fn numbered(number: &str) -> Option<char> {
    let code = match number.strip_prefix(['x', 'X']) {
        Some(digits) => u32::from_str_radix(digits, 16),
        None => number.parse(),
    };
    char::from_u32(code.ok()?).filter(|character| *character != '\0')
}

fn named(name: &str) -> Option<char> {
    let other = OTHERS.iter().find(|(other, _)| *other == name).map(|(_, character)| *character);
    other.or_else(|| {
        let at = LATIN_1.iter().position(|other| *other == name)?;
        char::from_u32(0xa0 + at as u32)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_are_decoded_and_others_are_not() {
        let cases = [
            ("&amp;", '&'),
            ("&nbsp;", ' '),
            ("&cent;", '¢'),
            ("&frac12;x", '½'),
            ("&Agrave;", 'À'),
            ("&szlig;", 'ß'),
            ("&eacute;", 'é'),
            ("&yuml;", 'ÿ'),
            ("&rsquo;", '’'),
            ("&hyph;", '-'),
            ("&#233;", 'é'),
            ("&#xE9;", 'é'),
            ("&#x10FFFF;", '\u{10ffff}'),
        ];
        for (text, character) in cases {
            assert_eq!(entity(text), Some((character, text.find(';').unwrap() + 1)), "{text}");
        }
        for text in ["&", "&;", "&#0;", "&#x110000;", "&#;", "&nosuch;", "&eacute", "eacute;", "&#xD800;", "&EACUTE;"] {
            assert_eq!(entity(text), None, "{text}");
        }
    }
}
