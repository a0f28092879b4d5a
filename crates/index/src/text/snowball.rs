//! The stemmers of Snowball, with the stems of Lucene's `SnowballFilter` (10.5).
//!
//! Snowball has changed some of its algorithms since the version that Lucene has. No crate has that version, so each language
//! is stemmed by the one of two whose algorithm is the same: `snowball_stemmers_rs`, of Snowball 3.0, or `rust-stemmers`,
//! which is older. For English, French, German and Swedish the older one is right but for a few words, see [`Variant`].
//! Golden files compare all languages with Lucene; docs/analyzers.md has the reasons.

use rust_stemmers as older;
use snowball_stemmers_rs as newer;
use std::fmt;

/// A language that has a stemmer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Language {
    name: &'static str,
    variant: Variant,
}

/// Which algorithm gives the stems of a language.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Variant {
    Newer(newer::Algorithm),
    Older(older::Algorithm),
    English,
    French,
    German,
    Swedish,
}

const LANGUAGES: [Language; 29] = {
    use Variant::{English, French, German, Newer, Older, Swedish};
    const fn language(name: &'static str, variant: Variant) -> Language {
        Language { name, variant }
    }
    [
        language("arabic", Newer(newer::Algorithm::Arabic)),
        language("armenian", Newer(newer::Algorithm::Armenian)),
        language("basque", Newer(newer::Algorithm::Basque)),
        language("catalan", Newer(newer::Algorithm::Catalan)),
        language("danish", Newer(newer::Algorithm::Danish)),
        // Snowball 3.0 has another algorithm of this name.
        language("dutch", Newer(newer::Algorithm::DutchPorter)),
        language("english", English),
        language("estonian", Newer(newer::Algorithm::Estonian)),
        language("finnish", Newer(newer::Algorithm::Finnish)),
        language("french", French),
        language("german", German),
        language("greek", Older(older::Algorithm::Greek)),
        language("hindi", Newer(newer::Algorithm::Hindi)),
        language("hungarian", Newer(newer::Algorithm::Hungarian)),
        language("indonesian", Newer(newer::Algorithm::Indonesian)),
        language("irish", Newer(newer::Algorithm::Irish)),
        language("italian", Newer(newer::Algorithm::Italian)),
        language("nepali", Newer(newer::Algorithm::Nepali)),
        language("norwegian", Older(older::Algorithm::Norwegian)),
        language("porter", Newer(newer::Algorithm::Porter)),
        language("portuguese", Newer(newer::Algorithm::Portuguese)),
        language("romanian", Newer(newer::Algorithm::Romanian)),
        language("russian", Newer(newer::Algorithm::Russian)),
        language("serbian", Newer(newer::Algorithm::Serbian)),
        language("spanish", Older(older::Algorithm::Spanish)),
        language("swedish", Swedish),
        language("tamil", Newer(newer::Algorithm::Tamil)),
        language("turkish", Older(older::Algorithm::Turkish)),
        language("yiddish", Newer(newer::Algorithm::Yiddish)),
    ]
};

impl Language {
    /// The language of a name in lower case.
    pub fn of(name: &str) -> Option<Language> {
        LANGUAGES.into_iter().find(|language| language.name == name)
    }

    /// The names of all languages, separated by commas.
    pub fn names() -> String {
        LANGUAGES.map(|language| language.name).join(", ")
    }

    /// Whether this is English.
    pub fn is_english(self) -> bool {
        matches!(self.name, "english" | "porter")
    }

    /// Replaces `word`, in lower case, by its stem.
    pub fn stem(self, word: &mut String) {
        let stem = match self.variant {
            Variant::Newer(algorithm) => by_newer(algorithm, word),
            Variant::Older(algorithm) => by_older(algorithm, word),
            Variant::English if begins_with_doubled(word) => by_newer(newer::Algorithm::English, word),
            Variant::English => by_older(older::Algorithm::English, word),
            Variant::French if needs_newer_french(word) => by_newer(newer::Algorithm::French, word),
            Variant::French => by_older(older::Algorithm::French, word),
            Variant::German => german(word),
            Variant::Swedish => swedish(word),
        };
        *word = stem;
    }
}

impl fmt::Display for Language {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name)
    }
}

fn by_newer(algorithm: newer::Algorithm, word: &str) -> String {
    newer::Stemmer::create(algorithm).stem(word).into_owned()
}

fn by_older(algorithm: older::Algorithm, word: &str) -> String {
    older::Stemmer::create(algorithm).stem(word).into_owned()
}

/// Whether a word is one like `added` or `erring`, whose doubled consonant stays; it did not in the older algorithm.
fn begins_with_doubled(word: &str) -> bool {
    match word.as_bytes() {
        [b'\'', rest @ ..] | rest => {
            matches!(rest, [b'a' | b'e' | b'o', first, second, b'e' | b'i', ..] if first == second)
        }
    }
}

/// Whether a word has an `ë` or `ï`, which the older algorithm takes for a vowel like others, and none of the endings that
/// the newer one alone cuts.
fn needs_newer_french(word: &str) -> bool {
    word.contains(['\u{EB}', '\u{EF}']) && !["ais", "aise", "aises", "oux"].iter().any(|ending| word.ends_with(ending))
}

/// Lucene's algorithm is the older one after `ae`, `oe` and `ue` have become umlauts, except that `system` keeps its end.
fn german(word: &str) -> String {
    let spelled = with_umlauts(word);
    let spelled = spelled.as_deref().unwrap_or(word);
    if spelled.ends_with("system") {
        return spelled.replace('\u{DF}', "ss").replace('\u{E4}', "a").replace('\u{F6}', "o").replace('\u{FC}', "u");
    }
    by_older(older::Algorithm::German, spelled)
}

/// A German word with `ä`, `ö`, `ü` for `ae`, `oe`, `ue`, except for an `ue` after `q` or whose `u` stands between vowels;
/// `None` if that changes nothing.
fn with_umlauts(word: &str) -> Option<String> {
    if !["ae", "oe", "ue"].iter().any(|pair| word.contains(pair)) {
        return None;
    }
    let letters: Vec<char> = word.chars().collect();
    let is_vowel = |at: usize| letters.get(at).is_some_and(|letter| "aeiouyäöü".contains(*letter));
    // The letters that count as consonants, since they stand between vowels.
    let mut is_consonant = vec![false; letters.len()];
    let mut at = 0;
    while at < letters.len() {
        let found = is_vowel(at) && matches!(letters.get(at + 1), Some('u' | 'y')) && is_vowel(at + 2);
        if found {
            is_consonant[at + 1] = true;
        }
        at += if found { 2 } else { 1 };
    }
    let mut spelled = String::with_capacity(word.len());
    let mut at = 0;
    while let Some(&letter) = letters.get(at) {
        let (written, read) = match (letter, letters.get(at + 1)) {
            ('q', Some('u')) => ("qu", 2),
            ('a', Some('e')) => ("\u{E4}", 2),
            ('o', Some('e')) => ("\u{F6}", 2),
            ('u', Some('e')) if !is_consonant[at] => ("\u{FC}", 2),
            _ => ("", 1),
        };
        if written.is_empty() {
            spelled.push(letter);
        }
        spelled.push_str(written);
        at += read;
    }
    Some(spelled)
}

/// Lucene's algorithm also cuts the `t` of `öst` after some consonants, where the older one does so only after `l`, unless
/// it has cut another suffix there.
fn swedish(word: &str) -> String {
    let mut stem = by_older(older::Algorithm::Swedish, word);
    let Some(before) = stem.strip_suffix("\u{F6}st") else {
        return stem;
    };
    let was_cut =
        word.strip_prefix(&stem).is_some_and(|rest| ["lig", "ig", "els"].iter().any(|suffix| rest.starts_with(suffix)));
    if before.ends_with(['i', 'k', 'l', 'n', 'p', 'r', 't', 'u', 'v'])
        && before.len() >= swedish_region(word)
        && !was_cut
    {
        stem.pop();
    }
    stem
}

/// The start of Snowball's region R1 of a Swedish word: after the first consonant that follows a vowel, and after three
/// letters at least.
fn swedish_region(word: &str) -> usize {
    let is_vowel = |letter: char| "aeiouyäåö".contains(letter);
    let mut letters =
        word.char_indices().skip_while(|(_, letter)| !is_vowel(*letter)).skip_while(|(_, letter)| is_vowel(*letter));
    letters.next();
    let after_consonant = letters.next().map_or(word.len(), |(at, _)| at);
    let after_three = word.char_indices().nth(3).map_or(word.len(), |(at, _)| at);
    after_consonant.max(after_three)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn stem(language: &str, word: &str) -> String {
        let mut word = word.to_owned();
        Language::of(language).unwrap().stem(&mut word);
        word
    }

    #[test]
    fn words_that_the_older_algorithms_stem_otherwise_have_the_stems_of_lucene() {
        for (language, word, expected) in [
            ("english", "added", "add"),
            ("english", "'erring", "err"),
            ("english", "organization", "organ"),
            ("french", "h\u{E9}ro\u{EF}que", "h\u{E9}ro"),
            ("french", "mauvais", "mauv"),
            ("german", "michael", "michal"),
            ("german", "systems", "system"),
            ("german", "neue", "neu"),
            ("german", "quelle", "quell"),
            ("swedish", "nerv\u{F6}st", "nerv\u{F6}s"),
            ("swedish", "livet", "livet"),
            ("dutch", "lichamelijkheden", "licham"),
        ] {
            assert_eq!(stem(language, word), expected, "{language} {word}");
        }
    }

    #[test]
    fn languages_are_found_by_their_names_alone() {
        assert!(LANGUAGES.iter().all(|language| Language::of(&language.to_string()) == Some(*language)));
        assert_eq!([Language::of("German"), Language::of(""), Language::of("klingon")], [None; 3]);
    }

    proptest! {
        #[test]
        fn any_word_has_a_stem(
            word in prop_oneof![any::<String>(), "[a-zéëïäöüßåøşţ'0]{0,14}", "[а-яё]{0,12}", "[α-ώ]{0,12}", "\\p{Arabic}{0,9}"]
        ) {
            for language in LANGUAGES {
                language.stem(&mut word.clone());
            }
        }
    }
}
