//! Indexes in another document order have the same documents and postings, under other numbers.

mod support;

use lanner_index::build::{BuildOptions, Order, Progress, Quiet, build, build_from_ciff};
use lanner_index::codec::BLOCK;
use lanner_index::corpus::{Corpus, CorpusOptions};
use lanner_index::format::manifest::Manifest;
use lanner_index::open::{Column, Index, export_ciff};
use lanner_index::text::Analyzer;
use lanner_index::{DocId, TermId};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use support::{Row, build_index, documents, options};

fn bisection() -> BuildOptions {
    BuildOptions { order: Order::Bisection, ..options() }
}

/// Documents about a hundred topics, shuffled.
fn mixed(count: u32) -> Vec<Row> {
    let mut rows = documents(count, 3000);
    for (number, row) in rows.iter_mut().enumerate() {
        let topic = (number as u32).wrapping_mul(2_654_435_761) % 100;
        let words = (0..30).map(|word| format!(" t{topic}-{}", (number * 31 + word * word) % 50));
        row.2.extend(words);
    }
    rows
}

/// Every posting by term and external id.
fn postings(index: &Index, column: Column) -> BTreeMap<(u64, String), u32> {
    let (ids, mut found) = (ids(index), BTreeMap::new());
    let (mut documents, mut weights) = ([0; BLOCK], [0; BLOCK]);
    for term in 0..index.segment().header().terms {
        let list = index.list(TermId(term)).unwrap();
        for block in 0..list.blocks() {
            let count = list.decode_documents(block, &mut documents);
            list.decode_values(column, block, &mut weights);
            for (document, weight) in documents[..count].iter().zip(weights) {
                found.insert((term, ids[*document as usize].clone()), weight);
            }
        }
    }
    found
}

/// Length, rank and stored fields of every document, by external id.
type Facts = BTreeMap<String, (u32, Option<f32>, Vec<(String, String)>)>;

fn facts(index: &Index) -> Facts {
    let fact = |document| {
        let stored = index.stored(DocId(document)).unwrap().into_iter().map(|(name, text)| (name.to_owned(), text));
        let rank = index.segment().rank(document);
        (index.id(DocId(document)).unwrap(), (index.length(DocId(document)), rank, stored.collect()))
    };
    (0..index.documents()).map(fact).collect()
}

fn ids(index: &Index) -> Vec<String> {
    (0..index.documents()).map(|document| index.id(DocId(document)).unwrap()).collect()
}

fn assert_same_but_for_numbers(given: &Index, ordered: &Index) {
    given.verify().unwrap();
    ordered.verify().unwrap();
    assert_eq!(given.manifest().order, Order::Given);
    assert_eq!(ordered.manifest().order, Order::Bisection);
    assert_eq!(given.statistics(), ordered.statistics());
    assert_ne!(ids(given), ids(ordered), "the order differs");
    assert_eq!(facts(given), facts(ordered));
    for column in [Column::Frequency, Column::Impact] {
        assert!(postings(given, column) == postings(ordered, column), "{column:?}");
    }
    for term in 0..given.segment().header().terms {
        let (given, ordered) = (given.list(TermId(term)).unwrap(), ordered.list(TermId(term)).unwrap());
        assert_eq!(given.largest_impacts(), ordered.largest_impacts());
    }
}

#[test]
fn a_bisected_index_holds_the_same_under_other_numbers() {
    let folder = tempfile::tempdir().unwrap();
    let ranks = folder.path().join("ranks.tsv");
    fs::write(&ranks, "doc-1\t0.5\ndoc-600\t2\n").unwrap();
    let mut rows = mixed(900);
    // Documents with repeated ids are dropped before anything is ordered.
    rows[3].0 = "doc-1".to_owned();
    rows[700].0 = "doc-1".to_owned();
    let build = |name: &str, options: BuildOptions| {
        let options = BuildOptions { impacts: true, ranks: Some(ranks.clone()), ..options };
        let report = build_index(&folder.path().join(name), rows.clone(), &options).unwrap();
        assert_eq!((report.documents, report.duplicates, report.runs), (898, 2, 0));
        Index::open(folder.path().join(name)).unwrap()
    };
    assert_same_but_for_numbers(&build("given", options()), &build("bisection", bisection()));
}

#[test]
fn learned_weights_and_ciff_are_ordered_too() {
    let folder = tempfile::tempdir().unwrap();
    let vectors = mixed(400).into_iter().map(|(id, _, text)| {
        let weights: BTreeMap<&str, f32> = text.split(' ').map(|word| (word, word.len() as f32 / 4.0)).collect();
        format!("{}\n", serde_json::json!({ "id": id, "vector": weights }))
    });
    let input = folder.path().join("vectors.jsonl");
    fs::write(&input, vectors.collect::<String>()).unwrap();
    let analyzer = Analyzer::parse("pretokenized").unwrap();
    let build_vectors = |name: &str, options: BuildOptions| {
        let options = BuildOptions { impacts: true, analyzer: analyzer.clone(), ..options };
        let corpus_options = CorpusOptions { vector_field: Some("vector".into()), ..Default::default() };
        let path = folder.path().join(name);
        build(&path, Corpus::open(&input, corpus_options).unwrap(), &options, &Quiet).unwrap();
        Index::open(path).unwrap()
    };
    let given = build_vectors("given", options());
    assert_same_but_for_numbers(&given, &build_vectors("bisection", bisection()));
    let mut ciff = Vec::new();
    export_ciff(&given, Column::Frequency, &mut ciff).unwrap();
    let file = folder.path().join("index.ciff");
    fs::write(&file, &ciff).unwrap();
    let import = |name: &str, options: BuildOptions| {
        let path = folder.path().join(name);
        build_from_ciff(&path, &file, &BuildOptions { impacts: true, ..options }, &Quiet).unwrap();
        Index::open(path).unwrap()
    };
    assert_same_but_for_numbers(&import("given-ciff", options()), &import("bisection-ciff", bisection()));
}

fn segment(folder: &Path) -> Vec<u8> {
    let file = &Index::open(folder).unwrap().manifest().segments[0].file.clone();
    fs::read(folder.join(file)).unwrap()
}

#[test]
fn bisected_files_are_the_same_bytes_for_any_threads_and_memory() {
    let folder = tempfile::tempdir().unwrap();
    // Too much text for the smallest memory to hold all fields at once.
    let rows = mixed(20_000);
    let mut first: Option<Vec<u8>> = None;
    for (threads, memory_bytes) in [(1, 1 << 30), (2, 32 << 20), (7, 1 << 30)] {
        let options = BuildOptions { threads, memory_bytes, ..bisection() };
        build_index(folder.path(), rows.clone(), &options).unwrap();
        let bytes = segment(folder.path());
        assert!(*first.get_or_insert_with(|| bytes.clone()) == bytes, "{threads} threads, {memory_bytes} bytes");
    }
    Index::open(folder.path()).unwrap().verify().unwrap();
}

#[test]
fn small_and_empty_collections_keep_their_order() {
    let folder = tempfile::tempdir().unwrap();
    for count in [0, 1, 2, 20] {
        build_index(folder.path(), mixed(count), &BuildOptions { allow_empty: true, ..bisection() }).unwrap();
        let index = Index::open(folder.path()).unwrap();
        index.verify().unwrap();
        assert_eq!(ids(&index), (0..count).map(|number| format!("doc-{number}")).collect::<Vec<_>>());
    }
}

#[derive(Default)]
struct Watch {
    done: AtomicU64,
    total: AtomicU64,
}

impl Progress for Watch {
    fn inverted(&self, _documents: u64, _bytes_read: u64, _bytes_total: Option<u64>) {}
    fn skipped(&self, _problem: &str) {}
    fn ordered(&self, done: u64, total: u64) {
        assert!(self.done.swap(done, Ordering::Relaxed) <= done, "progress does not go back");
        self.total.store(total, Ordering::Relaxed);
    }
    fn merged(&self, _postings: u64, _total: u64) {}
}

#[test]
fn the_progress_of_ordering_is_reported_to_its_end() {
    let folder = tempfile::tempdir().unwrap();
    for (order, is_told) in [(Order::Given, false), (Order::Bisection, true)] {
        let watch = Watch::default();
        let corpus = Corpus::from_documents(mixed(3000), CorpusOptions::default()).unwrap();
        build(folder.path(), corpus, &BuildOptions { order, threads: 2, ..options() }, &watch).unwrap();
        let (done, total) = (watch.done.into_inner(), watch.total.into_inner());
        assert_eq!((done, total > 0), (total, is_told), "{order}");
    }
}

#[test]
fn a_manifest_without_an_order_means_the_given_order() {
    let folder = tempfile::tempdir().unwrap();
    build_index(folder.path(), documents(10, 5), &options()).unwrap();
    let mut json = serde_json::to_value(Index::open(folder.path()).unwrap().manifest()).unwrap();
    assert_eq!(json["order"].take(), "given");
    json.as_object_mut().unwrap().remove("order");
    assert_eq!(serde_json::from_value::<Manifest>(json).unwrap().order, Order::Given);
}
