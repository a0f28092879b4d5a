//! How a query that somebody typed was read, where it may have been meant otherwise.

use crate::failure::Failure;
use lanner::Query;
use lanner::internals::query::syntax::{Syntax, check_weights, foreign};
use lanner_index::text::Analyzer;

/// Says how the parts of a query that mean something else in other search engines are read, and which words are left
/// out if no other is left. Fails on numbers that are meant as weights and are none.
pub fn notes(query: &Query, analyzer: &Analyzer) -> Result<Vec<String>, Failure> {
    check_weights(&query.text)?;
    let read = foreign(&query.text).into_iter();
    let mut notes: Vec<String> = read
        .map(|part| {
            let (read, why) = (reading(part.text, analyzer)?, reason(part.syntax));
            Ok(format!("{} is read as {read}: {why}", part.text))
        })
        .collect::<Result<_, Failure>>()?;
    if query.terms(analyzer)?.is_empty() {
        notes.push(nothing_left(&query.text, analyzer));
    }
    Ok(notes)
}

/// The terms of a part, with their weights.
fn reading(text: &str, analyzer: &Analyzer) -> Result<String, Failure> {
    let terms = Query::new(text).terms(analyzer)?;
    let shown = terms.iter().map(|term| match term.weight == 1.0 {
        true => term.term.clone(),
        false => format!("{}^{}", term.term, term.weight),
    });
    let shown: Vec<String> = shown.collect();
    Ok(match &shown[..] {
        [] => "no term, since the index leaves it out".to_owned(),
        [term] => format!("the term {term}"),
        terms => format!("the terms {}", terms.join(", ")),
    })
}

fn reason(syntax: Syntax) -> &'static str {
    match syntax {
        Syntax::Phrase => "there are no phrases, words may stand anywhere in a document",
        Syntax::Required => "no single word can be required; --mode and requires all",
        Syntax::Excluded => "no word can be excluded",
        Syntax::Field => "a query names no field, words may stand in any that is indexed",
        Syntax::Wildcard => "there are no wildcards",
        Syntax::Fuzzy => "there is no search for similar words",
        Syntax::Operator => "words are joined by --mode or (any of them) or --mode and (all)",
        Syntax::Weight => "a weight is a decimal number right behind a word, as in word^2.5",
    }
}

/// Why a query has no terms.
fn nothing_left(text: &str, analyzer: &Analyzer) -> String {
    let words: Vec<&str> = text.split_whitespace().filter(|word| word.contains(char::is_alphanumeric)).collect();
    let has_stop_words = analyzer.chain().split('+').any(|step| step == "stop");
    match (words.is_empty(), has_stop_words) {
        (true, _) => "the query has no words".to_owned(),
        (false, true) => {
            format!("nothing is left of the query: the index leaves out stop words, here {}", words.join(", "))
        }
        (false, false) => format!("nothing is left of the query: the index leaves out {}", words.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(analyzer: &str, text: &str) -> Vec<String> {
        notes(&Query::new(text), &Analyzer::parse(analyzer).unwrap()).unwrap()
    }

    #[test]
    fn a_note_says_how_a_part_is_read() {
        let notes = said("english", "\"open Countries\" AND hunting^2 -owls");
        let expected = [
            "\"open Countries\" is read as the terms open, countri: there are no phrases, words may stand anywhere in a document",
            "AND is read as no term, since the index leaves it out: words are joined by --mode or (any of them) or --mode and (all)",
            "-owls is read as the term owl: no word can be excluded",
        ];
        assert_eq!(notes, expected);
        assert_eq!(
            said("whitespace", "title:owl^2")[0].split(": ").next(),
            Some("title:owl^2 is read as the term title:owl^2")
        );
        assert_eq!(said("english", "falcons hunting^2 in pairs"), [""; 0]);
    }

    #[test]
    fn words_that_are_left_out_are_named_if_no_other_is_left() {
        let expected = "nothing is left of the query: the index leaves out stop words, here The, of";
        assert_eq!(said("english", "The of"), [expected]);
        assert_eq!(said("english", "the owl"), [""; 0]);
        assert_eq!(said("english", " ... "), ["the query has no words"]);
        assert_eq!(said("english", ""), ["the query has no words"]);
    }
}
