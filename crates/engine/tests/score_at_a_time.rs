//! Score-at-a-time beyond the agreement tests: every variant, the budget, and the queries that it refuses.

use lanner::internals::algorithms::{EarlierHits, Task};
use lanner::internals::papers::accumulator_heap::{ClauseCounts, NoCounts};
use lanner::internals::papers::saat_variants::{self, Accumulators, Decoding, Heap, Memory, Options};
use lanner::internals::query::answer::Scored;
use lanner::internals::query::planner::Planner;
use lanner::{Algorithm, DocId, DocumentSet, Index, Mode, Plan, Query, ScoreModel, Searcher};
use lanner_index::build::{BuildOptions, Quiet, build};
use lanner_index::corpus::{Corpus, CorpusOptions};
use lanner_index::text::Analyzer;
use std::sync::{Arc, OnceLock};

const DOCUMENTS: u32 = 3000;
const TEXTS: [&str; 6] = ["w1", "w1 w2 w3", "w0 w1^2.5 w40 w41", "w700 w900", "all all w3^0.01", "w1^900 all^800 w2"];

fn build_index(impact_ordered: bool) -> Arc<Index> {
    let mut state = 7u64;
    let mut draw = move |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let text = |_| {
        let words: Vec<String> = (0..30)
            .map(|_| {
                let rarest = draw(1000) + 1;
                format!("w{}", draw(rarest))
            })
            .collect();
        format!("all {}", words.join(" "))
    };
    let texts: Vec<String> = (0..DOCUMENTS).map(text).collect();
    let documents = texts.into_iter().enumerate().map(|(number, text)| (number.to_string(), String::new(), text));
    let corpus = Corpus::from_documents(documents.collect::<Vec<_>>(), CorpusOptions::default()).unwrap();
    let analyzer = Analyzer::parse("whitespace").unwrap();
    let options = BuildOptions { analyzer, threads: 1, impacts: true, impact_ordered, ..BuildOptions::default() };
    let folder = tempfile::tempdir().unwrap();
    build(folder.path(), corpus, &options, &Quiet).unwrap();
    // The mapping outlives the name of the file.
    Arc::new(Index::open(folder.path()).unwrap())
}

fn index() -> &'static Arc<Index> {
    static INDEX: OnceLock<Arc<Index>> = OnceLock::new();
    INDEX.get_or_init(|| build_index(true))
}

fn query(text: &str) -> Query {
    Query::new(text).score(ScoreModel::Impact).algorithm(Algorithm::ScoreAtATime)
}

fn expected(query: &Query) -> Vec<Scored> {
    let query = Query { budget: None, ..query.clone().algorithm(Algorithm::Exhaustive) };
    let hits = Searcher::new(Arc::clone(index())).search(&query).unwrap().hits;
    hits.into_iter().map(Scored::from).collect()
}

fn variants() -> Vec<Options> {
    let mut variants = Vec::new();
    for accumulators in [Accumulators::Dynamic, Accumulators::Array] {
        for heap in [Heap::Algorithm1, Heap::Algorithm2, Heap::Never] {
            for decoding in [Decoding::Separate, Decoding::Fused] {
                for (is_inlined, is_seeded) in [(true, true), (true, false), (false, true), (false, false)] {
                    variants.push(Options { accumulators, heap, is_inlined, decoding, is_seeded });
                }
            }
        }
    }
    variants
}

fn run(plan: &Plan, options: &Options, memory: &mut Memory) -> Vec<Scored> {
    let task = Task { plan, stage: &plan.stages[0], index: index(), earlier: &EarlierHits::default() };
    saat_variants::run(&task, options, memory, &mut NoCounts).unwrap()
}

#[test]
fn every_variant_gives_the_answer_of_the_exhaustive_algorithm() {
    let mut memory = Memory::default();
    let filter: Arc<DocumentSet> = Arc::new((0..DOCUMENTS).step_by(3).map(DocId).collect());
    for text in TEXTS {
        for k in [1, 3, 10, 1000, 5000] {
            for query in [query(text).k(k), query(text).k(k).filter(Arc::clone(&filter))] {
                let plan = Planner::new(index()).plan(&query).unwrap();
                let expected = expected(&query);
                for options in variants() {
                    assert_eq!(run(&plan, &options, &mut memory), expected, "{text:?}, k {k}, {options:?}");
                }
            }
        }
    }
}

#[test]
fn every_variant_stays_within_a_part_of_a_plan() {
    let mut memory = Memory::default();
    for text in TEXTS {
        let plan = Planner::new(index()).plan(&query(text).k(5000)).unwrap();
        let whole = expected(&query(text).k(5000));
        let part: Vec<Scored> = whole.into_iter().filter(|hit| (700..1501).contains(&hit.document.0)).collect();
        for options in variants() {
            assert_eq!(run(&plan.over(700..1501), &options, &mut memory), part, "{text:?}, {options:?}");
        }
    }
}

#[test]
fn both_algorithms_of_the_heap_count_every_posting() {
    let plan = Planner::new(index()).plan(&query("all w1 w2")).unwrap();
    let postings: u64 = plan.lists.iter().map(|list| u64::from(list.postings)).sum();
    for heap in [Heap::Algorithm1, Heap::Algorithm2] {
        let mut counts = ClauseCounts::default();
        let options = Options { heap, is_seeded: false, ..Options::default() };
        let task = Task { plan: &plan, stage: &plan.stages[0], index: index(), earlier: &EarlierHits::default() };
        saat_variants::run(&task, &options, &mut Memory::default(), &mut counts).unwrap();
        assert_eq!(counts.0.iter().sum::<u64>(), postings);
        assert!(counts.0[3] > postings / 2, "most postings change nothing: {counts:?}");
    }
}

#[test]
fn a_budget_takes_the_strongest_postings_and_says_so() {
    let searcher = Searcher::new(Arc::clone(index()));
    let whole = searcher.search(&query("all w1 w2")).unwrap();
    assert!(whole.exact);
    let postings = whole.work.postings_decoded;
    let same = searcher.search(&query("all w1 w2").budget(postings)).unwrap();
    assert_eq!((same.exact, same.hits), (true, whole.hits));
    for budget in [0, 1, 100, postings - 1] {
        let answer = searcher.search(&query("all w1 w2").budget(budget)).unwrap();
        assert!(!answer.exact);
        assert_eq!(answer.work.postings_decoded, budget);
        assert_eq!(answer.hits.is_empty(), budget == 0);
    }
    // With one list the strongest postings are the best documents.
    let best = searcher.search(&query("w1").budget(40)).unwrap();
    let best: Vec<Scored> = best.hits.into_iter().map(Scored::from).collect();
    assert_eq!(best, expected(&query("w1")));
}

#[test]
fn what_it_cannot_answer_is_refused_with_the_reason() {
    let searcher = Searcher::new(Arc::clone(index()));
    let message = |searcher: &Searcher, query: Query| searcher.search(&query).unwrap_err().to_string();
    let by_bm25 = message(&searcher, query("w1").score(ScoreModel::Bm25));
    assert!(by_bm25.contains("does not answer by bm25; score by impact"), "{by_bm25}");
    for mode in [Mode::And, Mode::AndOr] {
        let refused = message(&searcher, query("w1").mode(mode));
        assert!(refused.contains(&format!("answers only `or` queries, not `{mode}`")), "{refused}");
    }
    let budget = message(&searcher, query("w1").algorithm(Algorithm::Auto).budget(5));
    assert!(budget.contains("only score-at-a-time keeps a budget"), "{budget}");
    let without = message(&Searcher::new(build_index(false)), query("w1"));
    assert!(without.contains("rebuild the index with impact-ordered lists"), "{without}");
}
