//! Inner loops do not allocate: the allocations of a query are counted and compared between short and long lists.
//!
//! Allocations may depend on the terms and the hits of a query, not on the length of its lists. So the same query runs
//! on a small collection and on one many times larger, after a first run that lets the workspace grow.
#![expect(unsafe_code, reason = "a counting allocator is an implementation of an unsafe trait")]

use lanner::internals::executors::{Cpu, Executor};
use lanner::internals::query::planner::Planner;
use lanner::{Algorithm, DocId, DocumentSet, Index, Mode, Plan, Query, ScoreModel};
use lanner_index::TermId;
use lanner_index::build::{BuildOptions, Quiet, build};
use lanner_index::codec::{BLOCK, CodecName, Codecs, qmx};
use lanner_index::corpus::{Corpus, CorpusOptions};
use lanner_index::open::Column;
use lanner_index::text::Analyzer;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::hint::black_box;
use std::sync::Arc;

/// The allocations of a thread: their number and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Allocated {
    times: u64,
    bytes: u64,
}

thread_local! {
    // Initialized by a constant, and without a destructor: reading it does not allocate.
    static ALLOCATED: Cell<Allocated> = const { Cell::new(Allocated { times: 0, bytes: 0 }) };
}

struct Counting;

#[global_allocator]
static COUNTING: Counting = Counting;

fn count(bytes: usize) {
    let Allocated { times, bytes: before } = ALLOCATED.get();
    ALLOCATED.set(Allocated { times: times + 1, bytes: before + bytes as u64 });
}

// SAFETY: every call is forwarded unchanged to the system's allocator, which keeps the contract of the trait.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller keeps the contract of `alloc_zeroed`.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        count(bytes);
        // SAFETY: the caller keeps the contract of `realloc`, and its pointer came from the system's allocator.
        unsafe { System.realloc(pointer, layout, bytes) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract of `dealloc`, and its pointer came from the system's allocator.
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// Counts the allocations of a function on this thread.
fn allocated_by<T>(function: impl FnOnce() -> T) -> (Allocated, T) {
    let before = ALLOCATED.get();
    let result = black_box(function());
    let after = ALLOCATED.get();
    (Allocated { times: after.times - before.times, bytes: after.bytes - before.bytes }, result)
}

#[test]
fn the_counter_counts() {
    let (allocated, vector) = allocated_by(|| black_box(vec![1u8; 100]));
    assert_eq!((allocated, vector.len()), (Allocated { times: 1, bytes: 100 }, 100));
    let mut grown = Vec::with_capacity(4);
    let (allocated, ()) = allocated_by(|| grown.resize(8, 0u8));
    assert_eq!(allocated, Allocated { times: 1, bytes: 8 });
    assert_eq!(allocated_by(|| black_box([0u8; 64])).0, Allocated::default());
}

const SMALL: u32 = 4000;
/// More than two windows of the index.
const LARGE: u32 = 70_000;

/// Words in every n-th document, and one in only three documents.
fn text(document: u32) -> String {
    let mut words = vec!["all"; 1 + document as usize % 6];
    for (word, every) in [("half", 2), ("fifth", 5), ("thirtieth", 30), ("fortieth", 40), ("hundredth", 100)] {
        if document.is_multiple_of(every) {
            // Some frequencies do not fit the bits of a dense list.
            words.extend(std::iter::repeat_n(word, 1 + (document / every) as usize % 19));
        }
    }
    if [600, 1200, 1800].contains(&document) {
        words.push("three");
    }
    words.join(" ")
}

fn build_index(documents: u32, dense: bool, codec: CodecName) -> Arc<Index> {
    let texts = (0..documents).map(|document| (document.to_string(), String::new(), text(document)));
    let options = CorpusOptions { store: Some(Vec::new()), ..CorpusOptions::default() };
    let corpus = Corpus::from_documents(texts.collect::<Vec<_>>(), options).unwrap();
    let options = BuildOptions {
        analyzer: Analyzer::parse("whitespace").unwrap(),
        threads: 1,
        codecs: Codecs { documents: codec, weights: codec },
        dense,
        impacts: true,
        impact_ordered: true,
        ..BuildOptions::default()
    };
    let folder = tempfile::tempdir().unwrap();
    build(folder.path(), corpus, &options, &Quiet).unwrap();
    // The mapping outlives the name of the file.
    Arc::new(Index::open(folder.path()).unwrap())
}

/// Counts the allocations for a query that was answered before, and its hits.
fn allocated_for(cpu: &Cpu, index: &Index, query: &Query) -> (Allocated, usize) {
    let plan: [Plan; 1] = [Planner::new(index).plan(query).unwrap()];
    for _ in 0..2 {
        cpu.run(&plan).unwrap();
    }
    let (allocated, answers) = allocated_by(|| cpu.run(&plan).unwrap());
    (allocated, answers[0].hits.len())
}

const ALGORITHMS: [(Algorithm, Mode); 10] = [
    (Algorithm::Scatter, Mode::Or),
    (Algorithm::Conjunction, Mode::And),
    (Algorithm::Maxscore, Mode::Or),
    (Algorithm::BlockMaxMaxscore, Mode::Or),
    (Algorithm::Exhaustive, Mode::Or),
    (Algorithm::Exhaustive, Mode::And),
    (Algorithm::ScoreAtATime, Mode::Or),
    (Algorithm::Auto, Mode::AndOr),
    (Algorithm::Maxscore, Mode::AndOr),
    (Algorithm::Exhaustive, Mode::AndOr),
];

/// Queries of dense lists, of sparse ones and of both; the last has three hits by AND, fewer than any k.
const TEXTS: [&str; 5] = ["all", "all half fifth", "fortieth hundredth", "all thirtieth fortieth", "three all half"];

/// The most allocations for a query of three terms: arrays of its lists, its hits, the answer and its trace.
const MOST: u64 = 16;
/// What an OR allocates in addition if it ends as an AND: the order of its lists, and those that are open.
const MOST_OF_AN_AND: Allocated = Allocated { times: 2, bytes: 1024 };

fn queries() -> Vec<Query> {
    let mut queries = Vec::new();
    for (algorithm, mode) in ALGORITHMS {
        for text in TEXTS {
            let query = Query::new(text).mode(mode).algorithm(algorithm);
            if algorithm != Algorithm::ScoreAtATime {
                queries.push(query.clone().score(ScoreModel::Bm25));
            } else {
                queries.push(query.clone().score(ScoreModel::Impact).budget(100));
            }
            queries.push(query.score(ScoreModel::Impact));
        }
    }
    queries
}

fn check(dense: bool) {
    let indexes = [SMALL, LARGE].map(|documents| build_index(documents, dense, CodecName::Bitpack));
    let executors = indexes.clone().map(|index| Cpu::new(index, 1));
    let filter: Arc<DocumentSet> = Arc::new((0..LARGE).filter(|document| document % 400 != 200).map(DocId).collect());
    let mut most = 0;
    for query in queries() {
        for query in [query.clone(), query.filter(Arc::clone(&filter))] {
            let name = Query { filter: None, ..query.clone() };
            let name = format!("{name:?}, filter {}", query.filter.is_some());
            let mut times = Vec::new();
            // Which ORs end as an AND depends on the scores.
            let may_end_as_and = query.algorithm == Algorithm::Scatter;
            let spread = if may_end_as_and { MOST_OF_AN_AND } else { Allocated { times: 0, bytes: 0 } };
            for k in [4, 7, 10] {
                let query = query.clone().k(k);
                let [small, large] = [0, 1].map(|number| allocated_for(&executors[number], &indexes[number], &query));
                assert_eq!(small.1, large.1, "hits, small and large collection: {name}");
                assert!(small.1 > 0, "no hits: {name}");
                let bytes = small.0.bytes.abs_diff(large.0.bytes);
                assert!(bytes <= spread.bytes, "{bytes} bytes more or less in a large collection: {name}");
                times.extend([small.0.times, large.0.times]);
            }
            let (least, largest) = (times.iter().min().unwrap(), times.iter().max().unwrap());
            assert!(largest - least <= spread.times, "{times:?} allocations for each k, small and large: {name}");
            most = most.max(*largest);
        }
    }
    println!("at most {most} allocations a query");
    assert!(most <= MOST, "{most} allocations for a query");
}

#[test]
fn what_a_query_allocates_does_not_depend_on_the_length_of_dense_lists() {
    check(true);
}

#[test]
fn what_a_query_allocates_does_not_depend_on_the_length_of_sparse_lists() {
    check(false);
}

#[test]
fn decoders_allocate_nothing() {
    let dense = std::iter::once((true, CodecName::Bitpack));
    for (dense, codec) in dense.chain(CodecName::ALL.into_iter().map(|codec| (false, codec))) {
        let index = build_index(SMALL, dense, codec);
        let (allocated, postings) = allocated_by(|| decode_all(&index));
        assert!(postings > u64::from(SMALL), "{postings} postings");
        assert_eq!(allocated, Allocated::default(), "dense {dense}, {codec}");
    }
}

/// Decodes every list in every way, and counts the postings.
fn decode_all(index: &Index) -> u64 {
    let (mut documents, mut weights, mut postings) = ([0; BLOCK], [0; BLOCK], 0);
    for term in 0..index.segment().header().terms {
        let list = index.list(TermId(term)).unwrap();
        for block in 0..list.blocks() {
            let count = list.decode_documents(block, &mut documents);
            for column in [Column::Frequency, Column::Impact] {
                assert_eq!(list.decode_values(column, block, &mut weights), count);
                (0..count).for_each(|i| assert_eq!(list.value_at(column, block, i), weights[i]));
            }
            black_box((
                list.saturation_bound(block..block + 1),
                list.impact_bound(block),
                list.find_block(0, documents[0]),
            ));
            postings += count as u64;
        }
        black_box((list.largest(index.norms(), index.length_codes()), list.largest_impacts()));
        for segment in index.impact_ordered(TermId(term)).unwrap().into_iter().flat_map(|list| list.segments()) {
            let mut decoded = [0; SMALL as usize];
            qmx::decode(segment.documents, 0, &mut decoded[..segment.postings as usize]);
        }
    }
    postings
}
