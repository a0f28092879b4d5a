//! The steps of analyzers give what Lucene's filters give: golden files that Lucene wrote, see
//! `tests/golden/text/Golden.java`.

use lanner_index::text::{Analyzer, AnalyzerChanges, Language, Stop, StopWords};
use std::path::Path;

/// The rows of a golden file, cut at tabs.
fn rows<const N: usize>(name: &str) -> Vec<[String; N]> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/text").join(name);
    let text = std::fs::read_to_string(path).unwrap();
    let row = |line: &str| {
        let columns: Vec<String> = line.split('\t').map(str::to_owned).collect();
        columns.try_into().unwrap_or_else(|columns| panic!("{name}: {columns:?}"))
    };
    text.lines().map(row).collect()
}

#[test]
fn stems_are_those_of_lucene() {
    let rows = rows::<3>("stems.tsv");
    let languages = Language::names();
    for language in languages.split(", ") {
        let analyzer = Analyzer::parse(&format!("whitespace+snowball:{language}")).unwrap();
        let of_language: Vec<_> = rows.iter().filter(|[name, ..]| name == language).collect();
        assert!(of_language.len() > 50, "{language}");
        for [_, word, stem] in of_language {
            assert_eq!(analyzer.terms(word), [stem.as_str()], "{language}: {word}");
        }
    }
    assert!(rows.iter().all(|[language, ..]| languages.split(", ").any(|name| name == language)));
}

#[test]
fn every_character_is_folded_as_by_lucene() {
    let analyzer = Analyzer::parse("whitespace+fold").unwrap();
    let mut rows = rows::<2>("fold.tsv").into_iter().peekable();
    for character in ('\u{80}'..=char::MAX).filter(|character| !character.is_whitespace()) {
        let character = character.to_string();
        let expected = rows.next_if(|[folded, _]| *folded == character).map_or(character.clone(), |[_, to]| to);
        assert_eq!(analyzer.terms(&character).concat(), expected, "{character:?}");
    }
    assert_eq!(rows.next(), None);
}

#[test]
fn the_same_characters_form_pairs_as_in_lucene() {
    let ranges: Vec<_> = rows::<2>("cjk.tsv")
        .iter()
        .map(|range| range.each_ref().map(|code| u32::from_str_radix(code, 16).unwrap()))
        .map(|[first, last]| first..=last)
        .collect();
    let [words, pairs] = ["words", "words+cjk-bigram"].map(|chain| Analyzer::parse(chain).unwrap());
    for character in '\u{80}'..=char::MAX {
        // A mark sticks to the ideograph before it, and is then one of its characters.
        let text = format!("\u{4E2D}{character}");
        if words.terms(&text).len() == 2 {
            let is_pair = pairs.terms(&text).len() == 1;
            assert_eq!(is_pair, ranges.iter().any(|range| range.contains(&u32::from(character))), "{character:?}");
        }
    }
}

#[test]
fn chains_give_the_terms_of_lucene() {
    for [chain, text, terms] in rows::<3>("chains.tsv") {
        let analyzer = match chain.contains("stop:own") {
            true => with_own_stop_words(&chain),
            false => Analyzer::parse(&chain).unwrap(),
        };
        assert_eq!(analyzer.chain(), chain);
        assert_eq!(analyzer.terms(&text).join(" "), terms, "{chain}: {text}");
    }
}

/// The analyzer of a chain whose list of stop words is that of the golden files.
fn with_own_stop_words(chain: &str) -> Analyzer {
    let words = StopWords::parse("der die und \u{FC}ber \u{E9}t\u{E9} \u{56FD}\u{4EBA}").unwrap();
    let changes = AnalyzerChanges { stop_words: Some(Stop::Own(words)), ..AnalyzerChanges::default() };
    Analyzer::parse(&chain.replace("+stop:own", "")).unwrap().with(&changes).unwrap()
}
