//! A query as a user states it: text, how its terms combine, how many hits, and how they are scored.

pub mod answer;
pub mod cost;
pub mod document_set;
pub mod plan;
pub mod planner;
pub mod score;
pub mod syntax;

use document_set::DocumentSet;
use hashbrown::HashTable;
use lanner_index::format::lexicon;
use lanner_index::text::{Analyzer, Scratch};
use score::ScoreModel;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

/// The largest number of different terms in a query.
pub const MOST_TERMS: usize = 1024;
/// Repeated terms are found by comparing with the first terms one by one, and with later ones by hash.
const COMPARED_TERMS: usize = 16;
/// The initial capacity of the hash table for later terms.
const HASHED_TERMS_CAPACITY: usize = 112;
/// The smallest weight of a term in a query.
pub const SMALLEST_WEIGHT: f64 = 1e-6;
/// The largest weight of a term in a query.
pub const LARGEST_WEIGHT: f64 = 1e6;

/// How the terms of a query combine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// A hit has all of the terms.
    And,
    /// A hit has at least one of the terms.
    Or,
    /// The AND answer if it has k hits, else the OR answer.
    AndOr,
}

/// The algorithms by name. Each is exact, unless a budget stops score-at-a-time: the choice changes the time, not the
/// answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Algorithm {
    /// The planner chooses.
    Auto,
    /// AND and OR: adds up every posting.
    Exhaustive,
    /// AND: the shortest list drives, the others skip.
    Conjunction,
    /// OR: MaxScore. Lists that cannot lift a document over the threshold by themselves are only looked up.
    Maxscore,
    /// OR: MaxScore with the bounds of blocks, which end lookups earlier.
    BlockMaxMaxscore,
    /// OR: sparse lists are scattered into accumulators, dense lists are looked up for documents that can still enter.
    Scatter,
    /// OR by impacts: impact-ordered lists, highest impacts first.
    ScoreAtATime,
    /// AND on a GPU: lists are intersected one after the other, merged or searched depending on the ratio of lengths.
    TermAtATime,
    /// AND on a GPU, one list after the other, always merged by MergePath.
    MergePath,
    /// AND on a GPU, one list after the other, always searched over skip pointers.
    SkipSearch,
    /// AND on a GPU, one list after the other, always searched by Parallel Merge Find.
    ParallelMergeFind,
    /// OR on a GPU: every posting is added to the accumulator of its document.
    Accumulators,
}

/// An unknown name, with the known ones.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown {what} {name:?}; give one of {known}")]
pub struct UnknownName {
    what: &'static str,
    name: String,
    known: String,
}

/// The value that prints as `name`.
pub(crate) fn parse_name<T: Copy + fmt::Display>(what: &'static str, name: &str, all: &[T]) -> Result<T, UnknownName> {
    let found = all.iter().copied().find(|value| value.to_string() == name);
    found.ok_or_else(|| {
        let known: Vec<String> = all.iter().map(T::to_string).collect();
        UnknownName { what, name: name.to_owned(), known: known.join(", ") }
    })
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Mode::And => "and",
            Mode::Or => "or",
            Mode::AndOr => "and-or",
        })
    }
}

impl FromStr for Mode {
    type Err = UnknownName;

    fn from_str(name: &str) -> Result<Self, UnknownName> {
        parse_name("mode", name, &[Mode::And, Mode::Or, Mode::AndOr])
    }
}

impl Algorithm {
    /// Every algorithm, `auto` first.
    pub const ALL: [Algorithm; 12] = [
        Algorithm::Auto,
        Algorithm::Exhaustive,
        Algorithm::Conjunction,
        Algorithm::Maxscore,
        Algorithm::BlockMaxMaxscore,
        Algorithm::Scatter,
        Algorithm::ScoreAtATime,
        Algorithm::TermAtATime,
        Algorithm::MergePath,
        Algorithm::SkipSearch,
        Algorithm::ParallelMergeFind,
        Algorithm::Accumulators,
    ];

    /// Its name in commands, plans and traces.
    pub fn name(self) -> &'static str {
        match self {
            Algorithm::Auto => "auto",
            Algorithm::Exhaustive => "exhaustive",
            Algorithm::Conjunction => "conjunction",
            Algorithm::Maxscore => "maxscore",
            Algorithm::BlockMaxMaxscore => "block-max-maxscore",
            Algorithm::Scatter => "scatter",
            Algorithm::ScoreAtATime => "score-at-a-time",
            Algorithm::TermAtATime => "term-at-a-time",
            Algorithm::MergePath => "merge-path",
            Algorithm::SkipSearch => "skip-search",
            Algorithm::ParallelMergeFind => "parallel-merge-find",
            Algorithm::Accumulators => "accumulators",
        }
    }

    /// The algorithm that the CPU runs instead: itself, except for those that only a device runs.
    pub fn on_cpu(self) -> Algorithm {
        match self {
            Algorithm::TermAtATime | Algorithm::MergePath | Algorithm::SkipSearch | Algorithm::ParallelMergeFind => {
                Algorithm::Conjunction
            }
            Algorithm::Accumulators => Algorithm::Exhaustive,
            itself => itself,
        }
    }

    /// Whether only a device runs it.
    pub fn needs_device(self) -> bool {
        self.on_cpu() != self
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Algorithm {
    type Err = UnknownName;

    fn from_str(name: &str) -> Result<Self, UnknownName> {
        parse_name("algorithm", name, &Algorithm::ALL)
    }
}

/// A query. [`Query::new`] gives OR, ten hits, the index's default score model and the planner's choice of algorithm.
///
/// In the text `word^2.5` weighs a word: `^` and a decimal number at the end of a word, up to the next white space. The
/// weight holds for every term that the word yields, and only the ratios of weights count. All other punctuation is text for the index's analyzer, so that the
/// lines of a query log need no quoting; the program says so about queries that somebody typed.
#[derive(Clone, Debug)]
pub struct Query {
    /// The words, some with weights.
    pub text: String,
    /// How the terms combine.
    pub mode: Mode,
    /// How many hits.
    pub k: usize,
    /// How hits are scored; `None` is BM25 if the index stores frequencies, else impacts.
    pub score: Option<ScoreModel>,
    /// How the answer is found.
    pub algorithm: Algorithm,
    /// The documents that may be hits; `None` for all.
    pub filter: Option<Arc<DocumentSet>>,
    /// The most postings that score-at-a-time processes, highest impacts first; [`Answer::exact`](crate::Answer::exact)
    /// says whether these were all.
    pub budget: Option<u64>,
    /// How long the answer may take, from when the engine gets the query; `None` for as long as it takes.
    pub deadline: Option<Duration>,
    /// Whether the best hits so far are an answer when the deadline passes; otherwise that is an error.
    pub allow_partial: bool,
}

impl Query {
    /// A query for the ten best documents with any of the words.
    pub fn new(text: impl Into<String>) -> Query {
        Query {
            text: text.into(),
            mode: Mode::Or,
            k: 10,
            score: None,
            algorithm: Algorithm::Auto,
            filter: None,
            budget: None,
            deadline: None,
            allow_partial: false,
        }
    }

    /// Sets how the terms combine.
    pub fn mode(self, mode: Mode) -> Query {
        Query { mode, ..self }
    }

    /// Asks for `k` hits.
    pub fn k(self, k: usize) -> Query {
        Query { k, ..self }
    }

    /// Sets the score model.
    pub fn score(self, model: ScoreModel) -> Query {
        Query { score: Some(model), ..self }
    }

    /// Sets the algorithm.
    pub fn algorithm(self, algorithm: Algorithm) -> Query {
        Query { algorithm, ..self }
    }

    /// Lets only these documents be hits; [`Searcher::filter`](crate::Searcher::filter) makes a set from external ids.
    pub fn filter(self, filter: impl Into<Arc<DocumentSet>>) -> Query {
        Query { filter: Some(filter.into()), ..self }
    }

    /// Stops score-at-a-time after this many postings.
    pub fn budget(self, postings: u64) -> Query {
        Query { budget: Some(postings), ..self }
    }

    /// Gives up after this time, from when the engine gets the query: with an error, or with the best hits so far if
    /// [`Query::allow_partial`] is set. It is checked about once a millisecond, and never while a GPU is at work.
    pub fn deadline(self, deadline: Duration) -> Query {
        Query { deadline: Some(deadline), ..self }
    }

    /// Takes the best hits so far as an answer when the deadline passes; [`Answer::coverage`](crate::Answer::coverage)
    /// says how many documents were searched.
    pub fn allow_partial(self) -> Query {
        Query { allow_partial: true, ..self }
    }

    /// The different terms of the text, by first occurrence; the weights of repeated terms are added up.
    #[doc(hidden)]
    pub fn terms(&self, analyzer: &Analyzer) -> Result<Vec<QueryTerm>, QueryError> {
        let mut terms: Vec<QueryTerm> = Vec::new();
        // Positions of the later terms. A short query is compared faster than hashed.
        let mut positions: HashTable<usize> = HashTable::new();
        let mut scratch = Scratch::default();
        let mut is_too_many = false;
        let mut add = |Piece { text, weight }: Piece<'_>| {
            check_weight(text, weight)?;
            analyzer.analyze(text, &mut scratch, &mut |term| {
                let first = terms.iter().take(COMPARED_TERMS).position(|known| known.term == term);
                let hash = if terms.len() >= COMPARED_TERMS { lexicon::hash(term.as_bytes()) } else { 0 };
                let later = || positions.find(hash, |&position| terms[position].term == term).copied();
                match first.or_else(later) {
                    Some(position) => terms[position].weight += weight,
                    None if terms.len() == MOST_TERMS => is_too_many = true,
                    None => {
                        if terms.len() >= COMPARED_TERMS {
                            if positions.is_empty() {
                                positions.reserve(HASHED_TERMS_CAPACITY, |_| 0);
                            }
                            let hash_of = |&position: &usize| lexicon::hash(terms[position].term.as_bytes());
                            positions.insert_unique(hash, terms.len(), hash_of);
                        }
                        terms.push(QueryTerm { term: term.to_owned(), weight });
                    }
                }
            });
            Ok(())
        };
        // Few queries have weights, and looking for them word by word would show in the time of a short one.
        match self.text.contains('^') {
            true => pieces(&self.text).into_iter().try_for_each(add)?,
            false => add(Piece { text: &self.text, weight: 1.0 })?,
        }
        if is_too_many {
            return Err(QueryError::TooManyTerms);
        }
        terms.iter().try_for_each(|term| check_weight(&term.term, term.weight))?;
        Ok(terms)
    }
}

/// A term of an analyzed query.
#[derive(Clone, Debug, PartialEq)]
pub struct QueryTerm {
    /// The term as the analyzer gave it.
    pub term: String,
    /// How much it counts: the sum over its occurrences.
    pub weight: f64,
}

/// What is wrong with a query's text.
#[derive(Debug, PartialEq, thiserror::Error)]
pub enum QueryError {
    /// More different terms than a query may have.
    #[error("the query has more than {MOST_TERMS} different terms; shorten it or ask in parts")]
    TooManyTerms,
    /// A weight that is out of range.
    #[error("the weight {weight} of {word:?} is out of range; give one from {SMALLEST_WEIGHT} to {LARGEST_WEIGHT}")]
    Weight {
        /// The word or term.
        word: String,
        /// Its weight.
        weight: f64,
    },
    /// A number that is not written as weights are.
    #[error(
        "{weight:?} is no weight of {word:?}; give a decimal number from {SMALLEST_WEIGHT} to {LARGEST_WEIGHT}, such as 2.5"
    )]
    NotAWeight {
        /// The word.
        word: String,
        /// What stands behind its `^`.
        weight: String,
    },
}

fn check_weight(word: &str, weight: f64) -> Result<(), QueryError> {
    if (SMALLEST_WEIGHT..=LARGEST_WEIGHT).contains(&weight) {
        return Ok(());
    }
    Err(QueryError::Weight { word: word.to_owned(), weight })
}

/// Text with one weight.
#[derive(Debug, PartialEq)]
struct Piece<'a> {
    text: &'a str,
    weight: f64,
}

/// Splits text at weighted words. The text between them stays whole, so that it is analyzed as in a document.
fn pieces(text: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut plain = 0..0;
    for segment in text.split_inclusive(char::is_whitespace) {
        let end = plain.end + segment.len();
        match weighted(segment.trim_end()) {
            Some(piece) => {
                pieces.extend(plain_piece(&text[plain]));
                pieces.push(piece);
                plain = end..end;
            }
            None => plain.end = end,
        }
    }
    pieces.extend(plain_piece(&text[plain]));
    pieces
}

fn plain_piece(text: &str) -> Option<Piece<'_>> {
    (!text.trim().is_empty()).then_some(Piece { text, weight: 1.0 })
}

/// Takes `word^number` apart; a `^` followed by anything else is text.
fn weighted(word: &str) -> Option<Piece<'_>> {
    let (text, number) = word.rsplit_once('^')?;
    let is_decimal = number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let weight = number.parse().ok().filter(|_| is_decimal && !text.is_empty())?;
    Some(Piece { text, weight })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn terms(analyzer: &str, text: &str) -> Result<Vec<(String, f64)>, QueryError> {
        let terms = Query::new(text).terms(&Analyzer::parse(analyzer).unwrap())?;
        Ok(terms.into_iter().map(|term| (term.term, term.weight)).collect())
    }

    fn owned(terms: &[(&str, f64)]) -> Vec<(String, f64)> {
        terms.iter().map(|&(term, weight)| (term.to_owned(), weight)).collect()
    }

    #[test]
    fn a_number_after_a_caret_at_the_end_of_a_word_weighs_it() {
        let piece = |text, weight| Piece { text, weight };
        assert_eq!(pieces("big cat^2.5 dog"), [piece("big ", 1.0), piece("cat", 2.5), piece("dog", 1.0)]);
        assert_eq!(pieces("a^.5\tb^3\u{3000}c^1."), [piece("a", 0.5), piece("b", 3.0), piece("c", 1.0)]);
        assert_eq!(pieces("  \n "), []);
        for text in ["a^", "^2", "a^x", "a^-1", "a^1e3", "a^inf", "a^2b", "a ^2", "a^2, b", "a^1.2.3", "a^."] {
            assert_eq!(pieces(text), [piece(text, 1.0)], "{text}");
        }
    }

    #[test]
    fn a_weight_holds_for_every_term_of_its_word_and_repeated_terms_add_up() {
        let expected = owned(&[("cat", 3.5), ("dog", 3.0)]);
        assert_eq!(terms("simple", "Cat CAT-dog^2 dog cat^0.5"), Ok(expected));
        assert_eq!(terms("english", "the and of"), Ok(vec![]));
        assert_eq!(terms("whitespace", "c++^2"), Ok(owned(&[("c++", 2.0)])));
    }

    #[test]
    fn weights_out_of_range_and_too_many_terms_are_refused() {
        for text in ["a^0", "a^0.0", "a^0.0000009", "a^1000001", "a^1000000 a"] {
            let error = terms("whitespace", text).unwrap_err();
            assert!(error.to_string().contains("\"a\" is out of range"), "{error}");
        }
        let huge = format!("a^{}", "9".repeat(400));
        assert!(matches!(terms("whitespace", &huge), Err(QueryError::Weight { weight, .. }) if weight.is_infinite()));
        let numbers = |count: usize| (0..count).map(|i| format!("t{i} t0")).collect::<Vec<_>>().join(" ");
        assert_eq!(terms("whitespace", &numbers(MOST_TERMS)).unwrap().len(), MOST_TERMS);
        assert_eq!(terms("whitespace", &numbers(MOST_TERMS + 1)), Err(QueryError::TooManyTerms));
    }

    #[test]
    fn names_are_parsed_from_what_they_print() {
        for mode in [Mode::And, Mode::Or, Mode::AndOr] {
            assert_eq!(mode.to_string().parse(), Ok(mode));
        }
        for algorithm in Algorithm::ALL {
            assert_eq!(algorithm.to_string().parse(), Ok(algorithm));
        }
        let error = "xor".parse::<Mode>().unwrap_err();
        assert_eq!(error.to_string(), "unknown mode \"xor\"; give one of and, or, and-or");
    }

    proptest! {
        #[test]
        fn no_text_makes_parsing_panic_and_none_is_lost(text in "[a-c^0-9.\\s\u{e9}\u{4e2d}]{0,30}") {
            let found: usize = pieces(&text).iter().map(|piece| piece.text.matches(['a', '\u{4e2d}']).count()).sum();
            prop_assert_eq!(found, text.matches(['a', '\u{4e2d}']).count());
        }
    }
}
