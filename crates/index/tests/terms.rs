//! Lookup of terms, one by one and together: every term of the index is found with its list, and no other.

use lanner_index::build::{BuildOptions, Quiet, build};
use lanner_index::corpus::{Corpus, CorpusOptions};
use lanner_index::open::Index;
use lanner_index::text::Analyzer;
use proptest::prelude::*;
use std::collections::BTreeMap;

/// Words that share long prefixes, are long, or have characters of several bytes.
fn word() -> impl Strategy<Value = String> {
    prop_oneof![
        "[ab]{1,6}",
        "prefix[0-9]{1,4}",
        "same-start-of-sixteen-[a-d]{0,20}",
        "[a-zß東]{1,12}",
        "x{100,200}[yz]{1,2}",
    ]
}

fn index_of(words: &[String]) -> (tempfile::TempDir, Index) {
    let folder = tempfile::tempdir().unwrap();
    let row = |(number, word): (usize, &String)| (format!("d{number}"), String::new(), word.clone());
    let rows: Vec<_> = words.iter().enumerate().map(row).collect();
    let corpus = Corpus::from_documents(rows, CorpusOptions::default());
    let options = BuildOptions {
        analyzer: Analyzer::parse("whitespace").unwrap(),
        threads: 1,
        allow_empty: true,
        ..Default::default()
    };
    build(folder.path(), corpus.unwrap(), &options, &Quiet).unwrap();
    let index = Index::open(folder.path()).unwrap();
    (folder, index)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_term_is_found_and_no_other(
        words in prop::collection::vec(word(), 0..200),
        others in prop::collection::vec(word(), 0..50),
    ) {
        let (_folder, index) = index_of(&words);
        index.verify().unwrap();
        let mut expected: BTreeMap<&str, u32> = BTreeMap::new();
        words.iter().for_each(|word| *expected.entry(word).or_default() += 1);
        let (mut terms, mut found) = (index.segment().terms(), Vec::new());
        while let Some((number, term)) = terms.read().unwrap() {
            prop_assert_eq!(number, found.len() as u64);
            found.push(term.to_owned());
        }
        prop_assert!(found.iter().eq(expected.keys()), "the terms in the order of their bytes");
        let asked: Vec<&str> = words.iter().chain(&others).map(String::as_str).chain([""]).collect();
        let bytes = asked.iter().map(|term| term.as_bytes());
        for (&term, together) in asked.iter().zip(index.find_terms(bytes).unwrap()) {
            let postings = together.map(|(_, span)| index.list_at(span).unwrap().postings());
            prop_assert_eq!(postings, expected.get(term).copied(), "{}", term);
            let summary = together.map(|(_, span)| index.summary_at(span).unwrap().postings);
            prop_assert_eq!(summary, postings);
            prop_assert_eq!(index.lookup(term).unwrap(), together.map(|(id, _)| id));
            let by_number = together.map(|(id, _)| found[id.0 as usize].as_str());
            prop_assert_eq!(by_number, postings.map(|_| term));
        }
    }
}
