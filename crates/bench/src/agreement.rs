//! Checks of answers before anything is timed: Lanner's must equal the oracle's; overlap with peers is reported.

use crate::collection;
use crate::engines::Engine;
use crate::error::{BenchError, Result};
use crate::result::Measurement;
use crate::statistics::mean;
use crate::table::Table;
use lanner::internals::oracle::{Oracle, Question};
use lanner::internals::query::answer::Scored;
use lanner::{Mode, Query, ScoreModel, Searcher};
use lanner_index::text::{Analyzer, Scratch};
use lanner_index::weight::Bm25;
use rayon::prelude::*;
use std::collections::HashSet;
use std::fmt::Debug;
use std::path::Path;

/// A query whose answer is compared with a reference.
#[derive(Clone, Debug)]
pub struct Asked<'a> {
    pub engine: &'a str,
    /// The name of the reference.
    pub reference: &'static str,
    pub query: &'a str,
    pub mode: String,
    pub k: usize,
}

impl Asked<'_> {
    /// Returns an error that names the first difference between two answers.
    pub fn compare<T: PartialEq + Debug>(self, found: &[T], expected: &[T]) -> Result<()> {
        if found == expected {
            return Ok(());
        }
        let same = found.iter().zip(expected).take_while(|(found, expected)| found == expected).count();
        let difference = format!("at rank {}, {:?} instead of {:?}", same + 1, found.get(same), expected.get(same));
        let Asked { engine, reference, query, mode, k } = self;
        Err(BenchError::Disagreement { engine: engine.into(), reference, query: query.into(), mode, k, difference })
    }
}

/// Reads a collection into an oracle. With `wanted`, all other terms count as one term, so that large collections fit
/// in memory; document lengths and the lists of wanted terms stay the same.
pub fn oracle_of(input: &Path, analyzer: &Analyzer, bm25: Bm25, wanted: Option<&HashSet<String>>) -> Result<Oracle> {
    let is_wanted = |term: &str| wanted.is_none_or(|wanted| wanted.contains(term));
    let mut corpus = collection::open(input)?;
    let mut oracle = Oracle::new(bm25);
    let mut scratch = Scratch::default();
    while let Some(batch) = corpus.next_batch()? {
        batch.documents(&mut |record| {
            let Ok(document) = record else { return };
            let mut terms: Vec<String> = Vec::new();
            for text in &document.indexed {
                analyzer.analyze(text, &mut scratch, &mut |term| {
                    terms.push(if is_wanted(term) { term.to_owned() } else { String::new() });
                });
            }
            oracle.add(terms);
        });
    }
    Ok(oracle)
}

/// Compares Lanner's answers with the oracle's.
pub struct Check<'a> {
    pub searcher: &'a Searcher,
    pub oracle: &'a Oracle,
    pub modes: &'a [Mode],
    pub k: &'a [usize],
}

impl Check<'_> {
    /// Checks every query, mode and k; the first difference is an error.
    pub fn run(&self, queries: &[String]) -> Result<()> {
        queries.par_iter().try_for_each(|text| self.modes.iter().try_for_each(|&mode| self.check(text, mode)))
    }

    fn check(&self, text: &str, mode: Mode) -> Result<()> {
        let mut previous: Option<Vec<Scored>> = None;
        let mut descending = self.k.to_vec();
        descending.sort_unstable_by(|a, b| b.cmp(a));
        for k in descending {
            let query = Query::new(text).mode(mode).k(k).score(ScoreModel::Bm25);
            let expected = match &previous {
                // The top k are the first k of a longer answer, except for AND+OR, which may switch from AND to OR.
                Some(hits) if mode != Mode::AndOr => hits[..hits.len().min(k)].to_vec(),
                _ => self.ask_oracle(&query)?,
            };
            let asked = Asked { engine: "lanner", reference: "the oracle", query: text, mode: mode.to_string(), k };
            let found: Vec<Scored> = self.searcher.search(&query)?.hits.into_iter().map(Scored::from).collect();
            asked.compare(&found, &expected)?;
            previous = Some(expected);
        }
        Ok(())
    }

    fn ask_oracle(&self, query: &Query) -> Result<Vec<Scored>> {
        let analyzer = self.searcher.index().analyzer();
        let terms = query.terms(analyzer).map_err(|error| BenchError::Usage(error.to_string()))?;
        let terms: Vec<(String, f64)> = terms.into_iter().map(|term| (term.term, term.weight)).collect();
        let (range, score) = (0..self.oracle.documents(), ScoreModel::Bm25);
        let question = Question { terms: &terms, mode: query.mode, k: query.k, score, range, filter: None };
        Ok(self.oracle.answer(&question))
    }
}

/// An empty table of agreement.
pub fn table(title: &str) -> Table {
    Table::new(title, 2, &["log", "claim", "queries", "share"]).notes(&[
        "Peers encode lengths, round and break ties differently: for them, the share is the mean share of documents \
         that both answers contain.",
    ])
}

/// Adds a row for queries of a log whose answers are equal.
pub fn equal_row(table: &mut Table, log: &str, claim: &str, (checked, queries): (usize, usize)) {
    table.row([log.to_owned(), claim.to_owned(), format!("{checked} of {queries}"), "1".to_owned()]);
}

/// Adds a row for a peer, whose measurement has the share of documents in common with Lanner.
pub fn peer_row(table: &mut Table, row: &Measurement, queries: usize) {
    let [log, engine, mode, k] = ["log", "engine", "mode", "k"].map(|name| row.label(name));
    let (claim, share) = (format!("{engine} and lanner, {mode}, k {k}"), format!("{:.4}", row.value("share")));
    table.row([log.to_owned(), claim, queries.to_string(), share]);
}

/// What [`Check`] verifies.
pub const EQUALS_ORACLE: &str = "lanner gives the oracle's hits, scores and order, every mode and k";

/// Returns the mean share of documents that the answers of two engines have in common.
pub fn overlap(one: &dyn Engine, other: &dyn Engine, queries: &[String], (mode, k): (Mode, usize)) -> Result<f64> {
    let share = |text: &String| {
        let (one, other) = (one.answer(text, mode, k)?, other.answer(text, mode, k)?);
        Ok(share_in_common(one.iter(), other.iter()))
    };
    Ok(mean(queries.iter().map(share).collect::<Result<Vec<f64>>>()?))
}

/// Returns the share of the longer of two answers that is in both; 1 if both are empty.
pub fn share_in_common<'a>(first: impl Iterator<Item = &'a str>, second: impl Iterator<Item = &'a str>) -> f64 {
    let (first, second): (HashSet<&str>, Vec<&str>) = (first.collect(), second.collect());
    let longer = first.len().max(second.len());
    if longer == 0 {
        return 1.0;
    }
    second.iter().filter(|&id| first.contains(id)).count() as f64 / longer as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collection::{synthetic_documents, synthetic_queries};
    use lanner_index::build::{BuildOptions, Quiet, build};
    use lanner_index::corpus::{Corpus, CorpusOptions};

    fn index(folder: &Path, documents: Vec<(String, String, String)>) -> (Searcher, Oracle) {
        let options = BuildOptions { analyzer: Analyzer::parse("simple").unwrap(), threads: 1, ..Default::default() };
        let texts: Vec<String> = documents.iter().map(|(_, title, text)| format!("{title} {text}")).collect();
        let oracle = Oracle::from_texts(options.bm25, &options.analyzer, texts);
        let corpus = Corpus::from_documents(documents, CorpusOptions::default()).unwrap();
        build(folder, corpus, &options, &Quiet).unwrap();
        (Searcher::open(folder).unwrap(), oracle)
    }

    #[test]
    fn a_wrong_answer_is_an_error_that_names_the_query() {
        let folder = tempfile::tempdir().unwrap();
        let documents = synthetic_documents(200);
        let (searcher, oracle) = index(folder.path(), documents.clone());
        let queries = synthetic_queries(20);
        let modes = [Mode::And, Mode::Or, Mode::AndOr];
        Check { searcher: &searcher, oracle: &oracle, modes: &modes, k: &[10, 3] }.run(&queries).unwrap();

        let other = tempfile::tempdir().unwrap();
        let (other_searcher, _) = index(other.path(), documents[1..].to_vec());
        let check = Check { searcher: &other_searcher, oracle: &oracle, modes: &modes, k: &[3] };
        let error = check.run(&queries).unwrap_err().to_string();
        assert!(error.contains("differently from the oracle") && error.contains("no times are printed"), "{error}");
    }

    #[test]
    fn two_answers_have_a_share_in_common() {
        assert_eq!(share_in_common(["a", "b"].into_iter(), ["b", "c"].into_iter()), 0.5);
        assert_eq!(share_in_common(["a"].into_iter(), ["a", "b", "c", "d"].into_iter()), 0.25);
        assert_eq!(share_in_common([].into_iter(), [].into_iter()), 1.0);
    }
}
