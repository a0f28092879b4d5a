//! Filters and static ranks: sets that are short, empty, or without the best documents; all shares of the rank; ranks of
//! any kind; more filters than a device keeps.

use crate::collection::{Ask, Collection, Content, Lists};
use crate::device;
use crate::engine::Engine;
use crate::table::{Agreement, device_test};
use lanner::internals::executors::{Executor, Keep};
use lanner::internals::query::planner::Planner;
use lanner::{Algorithm, DocId, DocumentSet, Engine as LannerEngine, GpuOptions, Mode, Plan, ScoreModel};
use lanner_index::weight::Bm25;
use libtest_mimic::Trial;
use std::sync::OnceLock;
use std::sync::atomic::Ordering;

const DOCUMENTS: u32 = 1000;

/// `all`, `half` and `third` are dense. The best documents are the first of each hundred.
fn words(document: u32) -> Content {
    let mut words = vec!["all"];
    let mut add = |word, times: u32| words.extend((0..times).map(|_| word));
    add("half", u32::from(document.is_multiple_of(2)) * (1 + document % 3));
    add("third", u32::from(document.is_multiple_of(3)));
    add("seldom", u32::from(document.is_multiple_of(31)));
    add("rare", u32::from(document % 97 < 2));
    if document.is_multiple_of(100) {
        ["half", "third", "seldom", "rare"].into_iter().for_each(|word| add(word, 9));
    }
    Content::words(&words)
}

fn set(passes: impl Fn(u32) -> bool) -> DocumentSet {
    (0..DOCUMENTS).filter(|&document| passes(document)).map(DocId).collect()
}

fn asks() -> Vec<Ask> {
    let short = || set(|document| document < 200);
    let without_the_best = || set(|document| !document.is_multiple_of(100));
    let few = || set(|document| [0, 63, 64, 350, 702, DOCUMENTS - 1].contains(&document));
    let mut beyond = set(|document| document % 5 < 3);
    beyond.insert(DocId(1_000_000));
    vec![
        Ask::plain("all half"),
        Ask::plain("all half").filtered(short()),
        Ask::plain("third half").filtered(without_the_best()),
        Ask::plain("all third half").filtered(few()),
        Ask::plain("all").filtered(few()),
        Ask::plain("rare seldom").filtered(without_the_best()),
        Ask::plain("rare seldom all").filtered(short()),
        Ask::plain("seldom third").filtered(beyond),
        Ask::plain("rare half").filtered(DocumentSet::default()),
        Ask::plain("all half").filtered(DocumentSet::default()),
        Ask::plain("rare seldom half"),
    ]
}

fn collection() -> Collection {
    Collection::new("whitespace", Bm25::default(), (0..DOCUMENTS).map(words).collect()).with_asks(asks())
}

fn by_rank(alphas: &[f32]) -> Vec<ScoreModel> {
    alphas.iter().map(|&alpha| ScoreModel::RankBm25 { alpha }).collect()
}

pub fn trials() -> Vec<Trial> {
    let mut trials = vec![
        device_test(ranks_too_large_for_device_memory_are_read_in_host_memory),
        device_test(ranks_that_no_kernel_can_read_are_left_to_the_cpu),
    ];
    trials.extend(Agreement::new(filters_of_all_kinds).trials());
    trials.extend(Agreement::new(filters_in_single_queries_and_parts).trials());
    trials.extend(Agreement::new(more_filters_than_a_device_keeps).trials());
    let has_ranks = |engine: &Engine| engine.algorithm != Algorithm::ScoreAtATime;
    trials.extend(Agreement::new(all_shares_of_the_rank).only(has_ranks).trials());
    trials.extend(Agreement::new(ranks_that_count_as_nothing).only(has_ranks).trials());
    trials.extend(Agreement::new(blocks_that_only_ranks_lift_to_the_threshold).only(has_ranks).trials());
    trials
}

fn filters_of_all_kinds(engine: &Engine) {
    static FILTERED: OnceLock<Collection> = OnceLock::new();
    engine.check(FILTERED.get_or_init(collection), if engine.is_slow() { &[10] } else { &[1, 10, 1000] });
}

fn filters_in_single_queries_and_parts(engine: &Engine) {
    static FILTERED: OnceLock<Collection> = OnceLock::new();
    let collection = FILTERED.get_or_init(collection);
    engine.check_split(collection, &[10]);
    engine.check_parts(collection, &[10], &[64, 100, 701]);
}

/// Each question has a filter of its own; a device keeps at most 64.
fn more_filters_than_a_device_keeps(engine: &Engine) {
    static MANY: OnceLock<Collection> = OnceLock::new();
    let collection = MANY.get_or_init(|| {
        let filtered = |number| set(|document| document % 70 != number && document % 3 != number % 3);
        let texts = ["all half", "rare third", "seldom"];
        let asks = (0..70u32).map(|number| Ask::plain(texts[number as usize % 3]).filtered(filtered(number)));
        collection().with_asks(asks.collect()).with_models(vec![ScoreModel::Impact])
    });
    engine.check(collection, &[3]);
}

fn all_shares_of_the_rank(engine: &Engine) {
    static RANKED: OnceLock<Collection> = OnceLock::new();
    let ranked = RANKED.get_or_init(|| collection().with_models(by_rank(&[0.0, 1e-5, 0.9, 1.0])));
    engine.check(ranked, if engine.is_slow() { &[10] } else { &[1, 100] });
}

/// No build writes them, but an index that other software wrote may have them.
fn ranks_that_count_as_nothing(engine: &Engine) {
    static FOREIGN: OnceLock<Collection> = OnceLock::new();
    let foreign = FOREIGN.get_or_init(|| {
        let ranks = [1.0, f32::NAN, -1.0, 0.25, f32::NEG_INFINITY, -0.0, f32::MIN_POSITIVE / 2.0, -f32::NAN, 1e-6];
        let asks = asks().into_iter().take(8).collect();
        let collection = collection().with_asks(asks).with_models(by_rank(&[0.5, 1.0]));
        collection.with_foreign_ranks(|document| ranks[document % ranks.len()])
    });
    engine.check(foreign, &[10]);
}

/// Every third block has long documents with low weights and, late in the collection, the highest ranks. With the
/// weights alone they stay below what the other documents have.
fn blocks_that_only_ranks_lift_to_the_threshold(engine: &Engine) {
    static LIFTED: OnceLock<Collection> = OnceLock::new();
    let is_long = |document: usize| document / 128 % 3 == 2;
    let lifted = LIFTED.get_or_init(|| {
        let text = |document| match is_long(document) {
            true => Content::words(&[&["heron", "egret"][..], &["reed"; 40]].concat()),
            false => Content::words(&["heron", "egret", "heron", "egret"]),
        };
        let contents = (0..24_576).map(text).collect();
        let collection = Collection::new("whitespace", Bm25::default(), contents);
        let rank = move |document| if is_long(document) { document as f32 / 24_576.0 } else { 0.0 };
        let asks = vec![Ask::plain("heron egret")];
        collection.with_foreign_ranks(rank).with_asks(asks).with_models(by_rank(&[0.5]))
    });
    engine.check(lifted, &[1, 5]);
    engine.check_split(lifted, &[1]);
}

/// How many of the plans by rank, and of the others, a device answers that has an eighth less memory than eight times
/// the ranks. All answers are compared with the oracle's.
fn answered_with_little_memory(usage: fn(GpuOptions) -> GpuOptions) -> [u64; 2] {
    static LARGE: OnceLock<Collection> = OnceLock::new();
    let documents = 150_000;
    let large = LARGE.get_or_init(|| {
        let text = |document: u32| Content::words(&["all", ["half", "other"][document as usize % 2]]);
        let asks = vec![Ask::plain("all half"), Ask::plain("half").filtered((5..70_000).map(DocId).collect())];
        Collection::new("whitespace", Bm25::default(), (0..documents).map(text).collect()).with_asks(asks)
    });
    let index = large.index(Lists::Dense);
    let options = GpuOptions::new(Box::new(|| Ok(device::open(3)))).memory(u64::from(documents) * 28);
    let engine = LannerEngine::new(index.clone()).gpu(usage(options));
    [ScoreModel::RankBm25 { alpha: 0.7 }, ScoreModel::Bm25].map(|score| {
        let cases = [(0, Mode::And), (0, Mode::Or), (1, Mode::Or)];
        let query = |(ask, mode): (usize, Mode)| large.asks[ask].query().mode(mode).score(score).k(10);
        let plans: Vec<Plan> = cases.iter().map(|case| Planner::new(&index).plan(&query(*case)).unwrap()).collect();
        let counters = engine.counters().unwrap();
        let count = || [&counters.answered, &counters.unsupported].map(|counter| counter.load(Ordering::Relaxed));
        let before = count();
        for (answer, (ask, mode)) in engine.run(&plans).unwrap().iter().zip(cases) {
            assert_eq!(answer.hits, large.expected(ask, mode, 10, score), "{mode} {score}");
        }
        let [answered, unsupported] = count();
        assert_eq!(answered + unsupported, before.iter().sum::<u64>() + cases.len() as u64);
        answered - before[0]
    })
}

fn ranks_too_large_for_device_memory_are_read_in_host_memory() {
    assert_eq!(answered_with_little_memory(|options| options.keep(Keep::Nothing)), [3, 3]);
    assert_eq!(answered_with_little_memory(|options| options.keep(Keep::Pieces)), [3, 3]);
}

fn ranks_that_no_kernel_can_read_are_left_to_the_cpu() {
    assert_eq!(answered_with_little_memory(GpuOptions::upload_lists), [0, 3]);
}
