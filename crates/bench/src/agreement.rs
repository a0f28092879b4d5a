//! Agreement first: our answers must be the oracle's before anything is timed; how far a peer's differ is stated.

use crate::engines::Engine;
use crate::error::BenchError;
use lanner::internals::oracle::{Oracle, Question};
use lanner::{Hit, Mode, Query, ScoreModel, Searcher};
use lanner_index::corpus::{Corpus, CorpusOptions};
use lanner_index::text::{Analyzer, Scratch};
use lanner_index::weight::Bm25;
use std::collections::HashSet;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Reads a collection into an oracle.
pub fn oracle_of(input: &Path, analyzer: &Analyzer, bm25: Bm25) -> Result<Oracle, BenchError> {
    oracle_about(input, analyzer, bm25, None)
}

/// Reads a collection into an oracle; with `wanted`, one that takes all other terms for one, so that large collections
/// fit: lengths and the lists of wanted terms are what they are.
pub fn oracle_about(
    input: &Path,
    analyzer: &Analyzer,
    bm25: Bm25,
    wanted: Option<&HashSet<String>>,
) -> Result<Oracle, BenchError> {
    let is_wanted = |term: &str| wanted.is_none_or(|wanted| wanted.contains(term));
    let mut corpus = Corpus::open(input, CorpusOptions { store: Vec::new(), ..CorpusOptions::default() })?;
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

/// Asks our engine and the oracle every query in every mode for every k; the first difference is an error.
pub fn check(
    searcher: &Searcher,
    oracle: &Oracle,
    queries: &[String],
    modes: &[Mode],
    k: &[usize],
) -> Result<(), BenchError> {
    let next = AtomicUsize::new(0);
    let work = || {
        while let Some(text) = queries.get(next.fetch_add(1, Ordering::Relaxed)) {
            for &mode in modes {
                check_one(searcher, oracle, text, mode, k)?;
            }
        }
        Ok(())
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        workers.into_iter().try_for_each(|worker| worker.join().expect("a worker does not panic"))
    })
}

fn check_one(searcher: &Searcher, oracle: &Oracle, text: &str, mode: Mode, k: &[usize]) -> Result<(), BenchError> {
    let mut previous: Option<(usize, Vec<Hit>)> = None;
    let mut descending = k.to_vec();
    descending.sort_unstable_by(|a, b| b.cmp(a));
    for k in descending {
        let query = Query::new(text).mode(mode).k(k).score(ScoreModel::Bm25);
        let expected = match &previous {
            // The order of hits is total: fewer hits are the first of many. AND+OR may change from one to the other.
            Some((_, hits)) if mode != Mode::AndOr => hits[..hits.len().min(k)].to_vec(),
            _ => ask_oracle(searcher, oracle, &query)?,
        };
        let found = searcher.search(&query)?.hits;
        if found != expected {
            let (reference, difference) = ("the oracle", first_difference(&found, &expected));
            let (engine, query, mode) = ("lanner".to_owned(), text.to_owned(), mode.to_string());
            return Err(BenchError::Disagreement { engine, reference, query, mode, k, difference });
        }
        previous = Some((k, expected));
    }
    Ok(())
}

/// Where two answers differ first, in words.
pub fn first_difference(found: &[Hit], expected: &[Hit]) -> String {
    let place = found.iter().zip(expected).take_while(|(found, expected)| found == expected).count();
    format!("at rank {}, {:?} instead of {:?}", place + 1, found.get(place), expected.get(place))
}

fn ask_oracle(searcher: &Searcher, oracle: &Oracle, query: &Query) -> Result<Vec<Hit>, BenchError> {
    let terms = query.terms(searcher.index().analyzer()).map_err(|error| BenchError::Usage(error.to_string()))?;
    let terms: Vec<(String, f64)> = terms.into_iter().map(|term| (term.term, term.weight)).collect();
    let range = 0..oracle.documents();
    let score = ScoreModel::Bm25;
    Ok(oracle.answer(&Question { terms: &terms, mode: query.mode, k: query.k, score, range, filter: None }))
}

/// The mean share of the documents that two engines have in common in their answers.
pub fn overlap(
    ours: &dyn Engine,
    peer: &dyn Engine,
    queries: &[String],
    mode: Mode,
    k: usize,
) -> Result<f64, BenchError> {
    let mut sum = 0.0;
    for text in queries {
        let (ours, peers) = (ours.answer(text, mode, k)?, peer.answer(text, mode, k)?);
        sum += share_in_common(ours.iter(), peers.iter());
    }
    Ok(sum / queries.len().max(1) as f64)
}

/// The share of the longer of two answers that both hold; 1 where both are empty.
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

    fn index(folder: &Path, documents: Vec<(String, String, String)>) -> (Searcher, Oracle) {
        let options = BuildOptions { analyzer: Analyzer::parse("simple").unwrap(), threads: 1, ..Default::default() };
        let texts: Vec<String> = documents.iter().map(|(_, title, text)| format!("{title} {text}")).collect();
        let oracle = Oracle::from_texts(options.bm25, &options.analyzer, texts);
        let corpus = Corpus::from_documents(documents, CorpusOptions::default()).unwrap();
        build(folder, corpus, &options, &Quiet).unwrap();
        (Searcher::open(folder).unwrap(), oracle)
    }

    #[test]
    fn a_wrong_answer_stops_the_measurement_and_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let documents = synthetic_documents(200);
        let (searcher, oracle) = index(folder.path(), documents.clone());
        let queries = synthetic_queries(20);
        let modes = [Mode::And, Mode::Or, Mode::AndOr];
        check(&searcher, &oracle, &queries, &modes, &[10, 3]).unwrap();

        let other = tempfile::tempdir().unwrap();
        let (other_searcher, _) = index(other.path(), documents[1..].to_vec());
        let error = check(&other_searcher, &oracle, &queries, &modes, &[3]).unwrap_err().to_string();
        assert!(error.contains("other than the oracle") && error.contains("no time is printed"), "{error}");
    }

    #[test]
    fn two_answers_have_a_share_in_common() {
        assert_eq!(share_in_common(["a", "b"].into_iter(), ["b", "c"].into_iter()), 0.5);
        assert_eq!(share_in_common(["a"].into_iter(), ["a", "b", "c", "d"].into_iter()), 0.25);
        assert_eq!(share_in_common([].into_iter(), [].into_iter()), 1.0);
    }
}
